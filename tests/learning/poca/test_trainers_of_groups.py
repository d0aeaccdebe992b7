"""MA-POCA and MAPPO with every kind of observation, action and memory; what is saved; what they do without groups."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.mappo.trainer import MAPPOTrainer
from rl_tui.engine.learning.networks.attention import HEADS
from rl_tui.engine.learning.on_policy.group_settings import GroupSettings
from rl_tui.engine.learning.on_policy.group_trainer import GroupTrainer, whole_groups_terminated
from rl_tui.engine.learning.on_policy.rollout import Rollout
from rl_tui.engine.learning.poca.trainer import POCATrainer
from rl_tui.engine.learning.sync import ONE_RANK
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec, State, Trajectories
from tests.learning.poca.group_episodes import Groups
from tests.learning.rollouts import acted, observed

CPU = torch.device("cpu")
VECTOR, GOAL = ObservationSpec("seen", (3,)), ObservationSpec("goal", (2,), is_goal=True)
IMAGE, SET = ObservationSpec("camera", (20, 20, 1), "uint8"), ObservationSpec("others", (4, 2))
CONTINUOUS, DISCRETE, HYBRID = ActionSpec(2), ActionSpec(0, (3, 2)), ActionSpec(1, (3,))
MEMORY = {"sequence_length": 4, "memory_size": 6}
KINDS: dict[str, tuple[tuple[ObservationSpec, ...], ActionSpec, dict[str, Any]]] = {
    "vectors": ((VECTOR,), CONTINUOUS, {"normalize": True}),
    "images": ((VECTOR, IMAGE), DISCRETE, {}),
    "sets": ((VECTOR, SET), HYBRID, {}),
    "a goal": ((VECTOR, GOAL), DISCRETE, {"goal_conditioning_type": "hyper"}),
    "memory": ((VECTOR,), HYBRID, {"memory": MEMORY}),
    "memory of images": ((VECTOR, IMAGE), DISCRETE, {"memory": MEMORY}),
}
TRAINERS: dict[str, type[GroupTrainer[Any]]] = {"poca": POCATrainer, "mappo": MAPPOTrainer}


def made(
    trainer: str, kind: str, device: torch.device = CPU, is_curious: bool = True, **hyper: Any
) -> GroupTrainer[Any]:
    observations, actions, network = KINDS[kind]
    curiosity = {"curiosity": {"strength": 0.1, "network_settings": {"hidden_units": 8}}} if is_curious else {}
    settings = {
        "trainer_type": trainer,
        "hyperparameters": {"batch_size": 64, "learning_rate": 1e-3, **hyper},
        "network_settings": {"hidden_units": 8, "num_layers": 1, **network},
        "reward_signals": {"extrinsic": {}} | curiosity,
    }
    spec = BehaviorSpec("Team", observations, actions)
    return TRAINERS[trainer](spec, BehaviorConfig.model_validate(settings), 1, device)


def experience(trainer: GroupTrainer[Any], seed: int) -> Trajectories:
    """Of groups, whose agents see random things of the trainer's kind."""
    spec, random = trainer._spec, np.random.default_rng(seed)
    block = Groups(seed, 8, replace(spec, observations=(VECTOR,))).experience(30)
    assert block.next_mate_counts is not None
    memory = trainer._config.network_settings.memory
    return replace(
        block,
        observations=observed(random, block.num_rows, spec),
        next_observations=observed(random, block.num_segments, spec),
        next_mate_observations=observed(random, int(block.next_mate_counts.sum()), spec),
        memories=np.zeros((block.num_rows, memory.memory_size), np.float32) if memory else None,
    )


def same(ours: State, theirs: State) -> bool:
    return ours.values == theirs.values and all(
        np.array_equal(array, theirs.tensors[name]) for name, array in ours.tensors.items()
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TRAINERS)
def test_an_update_learns_from_every_kind_of_experience_and_goes_on_after_a_resume(name: str, kind: str) -> None:
    trainer, resumed = made(name, kind), made(name, kind)
    before = trainer.weights().arrays
    trainer.add(experience(trainer, 1))
    metrics = trainer.update(0)
    assert all(map(np.isfinite, metrics.values()))
    assert any(not np.array_equal(array, before[name]) for name, array in trainer.weights().arrays.items())
    baselines = {"Losses/Baseline Loss", "Policy/Extrinsic Baseline Estimate", "Policy/Curiosity Baseline Estimate"}
    assert metrics.keys() & baselines == (baselines if name == "poca" else set())
    assert {"Policy/Extrinsic Value Estimate", "Policy/Curiosity Value Estimate"} <= metrics.keys()

    saved = copy.deepcopy(trainer.state())
    losses = trainer.loss(experience(trainer, 3))
    assert all(map(np.isfinite, losses.values()))
    assert same(trainer.state(), saved), "a loss changes nothing"
    resumed.load(saved)
    for each in (trainer, resumed):
        each._agents = trainer._agents
        each.add(experience(each, 2))
        each.update(1000)
    assert same(trainer.state(), resumed.state())


def test_the_largest_group_is_what_numbers_of_agents_are_measured_by() -> None:
    trainer = made("poca", "vectors")
    block = experience(trainer, 1)
    trainer.add(block)
    trainer.update(0)
    assert trainer.state().values["groups"] == {"largest": int(Rollout(block, np.zeros(0)).joint_steps.sizes.max())}
    assert trainer._largest >= 4


@pytest.mark.parametrize("name", TRAINERS)
def test_agents_without_a_group_are_alone(name: str) -> None:
    """What one is worth does not depend on others, and nothing follows its end."""
    trainer = made(name, "vectors")
    random = np.random.default_rng(0)
    block = acted(trainer.make_policy(1), random, [5, 7, 4], trainer._spec)
    prepared = trainer._prepare(Rollout(block, trainer._streams.evaluate(block)), ONE_RANK)
    values = prepared.columns["values"].numpy()
    changed = block.observations[0].copy()
    changed[:5] += 1
    other = replace(block, observations=(changed,))
    found = trainer._prepare(Rollout(other, trainer._streams.evaluate(other)), ONE_RANK).columns["values"].numpy()
    assert (found[:5] != values[:5]).all()
    np.testing.assert_allclose(found[5:], values[5:], rtol=1e-5)
    np.testing.assert_array_equal(whole_groups_terminated(block), block.endings == 1)


def test_hidden_units_that_attention_cannot_divide_are_refused() -> None:
    settings = {"trainer_type": "poca", "network_settings": {"hidden_units": 10}}
    with pytest.raises(ValidationError, match=r"must be a multiple of 4, the heads of the attention of poca, got 10"):
        BehaviorConfig.model_validate(settings)
    assert GroupSettings.attention_heads == HEADS
    BehaviorConfig.model_validate(settings | {"trainer_type": "ppo"})
