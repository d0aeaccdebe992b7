"""Weights of untrained policies, as a trainer hands them out, for every kind of agent."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from rl_tui.engine.config.encoders import encoder_settings
from rl_tui.engine.config.network import MemorySettings, NetworkSettings
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec, Weights

CARTPOLE = BehaviorSpec("CartPole", (ObservationSpec("observation", (4,)),), ActionSpec(branches=(2,)))
HOPPER = BehaviorSpec("Hopper", (ObservationSpec("observation", (11,)),), ActionSpec(continuous=3))
MIXED = BehaviorSpec(
    "Mixed",
    (ObservationSpec("position", (3,)), ObservationSpec("gear", (4,)), ObservationSpec("speed", (1,))),
    ActionSpec(continuous=2, branches=(3, 2)),
)
SMALL = NetworkSettings(hidden_units=16)
REMEMBERING = SMALL.model_copy(update={"memory": MemorySettings(sequence_length=4, memory_size=8)})


@dataclass(frozen=True)
class Kind:
    """An agent and its network."""

    spec: BehaviorSpec
    network: NetworkSettings = SMALL
    is_squashed: bool = False
    is_normalized: bool = False

    def weights(self, seed: int = 0) -> Weights:
        """Means and logits large enough that actions differ from row to row."""
        random, layout = np.random.default_rng(seed), FeatureLayout.of(self.spec.observations, self.network)
        actor = Actor(random, layout, self.spec.actions, self.network, self.is_squashed)
        with torch.no_grad():
            actor.head.weight *= 12
            for name, parameter in actor.named_parameters():
                if "bias" in name:
                    parameter.add_(torch.from_numpy(random.normal(0, 0.1, parameter.shape).astype(np.float32)))
            if self.spec.actions.continuous and not self.is_squashed:
                actor.log_sigma.copy_(torch.from_numpy(random.normal(-0.5, 0.3, self.spec.actions.continuous)))
        arrays = {name: parameter.detach().numpy() for name, parameter in actor.named_parameters()}
        if self.is_normalized:
            arrays["normalizer.mean"] = random.normal(0, 10, layout.columns).astype(np.float32)
            arrays["normalizer.scale"] = np.exp(random.normal(0, 3, layout.columns)).astype(np.float32)
        return Weights(1, arrays)


def _seen(name: str, actions: ActionSpec, *observations: ObservationSpec) -> BehaviorSpec:
    return BehaviorSpec(name, observations, actions)


def _encoder(name: str) -> NetworkSettings:
    return SMALL.model_copy(update={"vis_encode_type": name, "encoder_settings": encoder_settings(name)()})


_VECTOR = ObservationSpec("vector", (3,))
_SET = ObservationSpec("set", (4, 3))
_GOAL = ObservationSpec("goal", (2,), is_goal=True)
_CAMERA = ObservationSpec("camera", (20, 24, 3), "uint8")
_CONTINUOUS, _DISCRETE, _HYBRID = ActionSpec(2), ActionSpec(0, (3, 2)), ActionSpec(2, (3, 2))

KINDS = {
    "ppo discrete": Kind(CARTPOLE),
    "ppo continuous normalized": Kind(HOPPER, is_normalized=True),
    "ppo hybrid": Kind(MIXED),
    "ppo hybrid memory normalized": Kind(MIXED, REMEMBERING, is_normalized=True),
    "sac continuous normalized": Kind(HOPPER, is_squashed=True, is_normalized=True),
    "sac discrete": Kind(CARTPOLE, is_squashed=True),
    "sac hybrid memory": Kind(MIXED, REMEMBERING, is_squashed=True),
    "ppo image": Kind(_seen("Image", _DISCRETE, _CAMERA)),
    "sac two cameras memory": Kind(
        _seen("Cameras", _CONTINUOUS, _CAMERA, _VECTOR, replace(_CAMERA, name="rear", shape=(22, 20, 1))),
        REMEMBERING,
        is_squashed=True,
        is_normalized=True,
    ),
    "ppo resnet float": Kind(_seen("ResNet", _CONTINUOUS, ObservationSpec("camera", (15, 17, 2))), _encoder("resnet")),
    "sac match3": Kind(
        _seen("Match3", _DISCRETE, ObservationSpec("board", (6, 5, 4), "uint8")), _encoder("match3"), is_squashed=True
    ),
    "ppo nature": Kind(
        _seen("Nature", _DISCRETE, ObservationSpec("camera", (36, 36, 1), "uint8")), _encoder("nature_cnn")
    ),
    "ppo flat image": Kind(
        _seen("Flat", _HYBRID, ObservationSpec("camera", (3, 4, 2), "uint8"), _VECTOR), _encoder("fully_connected")
    ),
    "ppo small images normalized": Kind(
        _seen(
            "Small", _HYBRID, ObservationSpec("board", (3, 4, 2)), _VECTOR, ObservationSpec("map", (2, 7, 3), "uint8")
        ),
        is_normalized=True,
    ),
    "sac small image goal": Kind(
        _seen("SmallGoal", _CONTINUOUS, ObservationSpec("map", (4, 3, 1), is_goal=True), _CAMERA), is_squashed=True
    ),
    "ppo set memory": Kind(_seen("Set", _HYBRID, _VECTOR, _SET), REMEMBERING, is_normalized=True),
    "sac sets only": Kind(_seen("Sets", _CONTINUOUS, _SET, ObservationSpec("others", (2, 5))), is_squashed=True),
    "ppo goal": Kind(_seen("Goal", _CONTINUOUS, _VECTOR, _GOAL), is_normalized=True),
    "sac goal image memory": Kind(
        _seen("GoalImage", _HYBRID, _GOAL, replace(_CAMERA, is_goal=True), _VECTOR), REMEMBERING, is_squashed=True
    ),
    "ppo ordinary goal": Kind(
        _seen("OrdinaryGoal", _DISCRETE, _GOAL, replace(_SET, is_goal=True)),
        SMALL.model_copy(update={"goal_conditioning_type": "none"}),
    ),
    "ppo unused observation": Kind(_seen("Unused", _HYBRID, ObservationSpec("nothing", (0,)), _VECTOR)),
}
