"""The policy in a saved state is the one that the whole trainer would act with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.saved_actor import SavedActor
from rl_tui.engine.learning.trainer import make_trainer
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Ending, ObservationSpec
from tests.learning.rollouts import SPEC, acted, decisions

IMAGES = BehaviorSpec("Eye", (ObservationSpec("eye", (20, 20, 3), "uint8"), *SPEC.observations), ActionSpec(2, (3,)))
MEMORY = {"memory": {"sequence_length": 4, "memory_size": 6}}


@pytest.mark.parametrize("trainer_type", ["ppo", "sac", "poca", "mappo"])
@pytest.mark.parametrize(
    ("spec", "network"),
    [(SPEC, {}), (SPEC, {"normalize": False}), (SPEC, MEMORY), (IMAGES, {}), (IMAGES, MEMORY)],
    ids=["vectors", "as they are", "memory", "images", "images and memory"],
)
def test_policy_of_a_saved_state_acts_like_the_trainer_that_was_saved(
    trainer_type: str, spec: BehaviorSpec, network: dict[str, Any]
) -> None:
    settings = {"hidden_units": 8, "num_layers": 1, "normalize": True} | network
    document = {"trainer_type": trainer_type, "network_settings": settings, "time_horizon": 8}
    document["hyperparameters"] = {"batch_size": 16, "buffer_size": 64}
    config = BehaviorConfig.model_validate(document)
    trainer = make_trainer(spec, config, 3, torch.device("cpu"))
    block = acted(trainer.make_policy(1), np.random.default_rng(2), [8] * 9, spec, ending=Ending.TERMINATED)
    if not settings.get("memory"):
        trainer.add(block)
        trainer.update(100)
    state = trainer.state()
    prefix = vars(registry.implementation("trainers", trainer_type))["actor_prefix"]
    actor = SavedActor(prefix, spec, config.network_settings, config.hyperparameters.squashes_actions)
    expected, found = actor.expected(), actor.found(state)
    assert {name: array.shape for name, array in found.items()} == {
        name: array.shape for name, array in expected.items()
    }
    seen = decisions(np.random.default_rng(5), 6, spec)
    ours, theirs = (policy.act(seen) for policy in (actor.policy(state, 9), trainer.make_policy(9)))
    assert np.array_equal(ours.continuous, theirs.continuous)
    assert np.array_equal(ours.actions.discrete, theirs.actions.discrete)
    assert np.array_equal(ours.log_probs, theirs.log_probs)
