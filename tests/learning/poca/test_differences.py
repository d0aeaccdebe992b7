"""Each difference from ML-Agents' MA-POCA that docs/groups.md lists, where ML-Agents' way would be seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.joint_steps import find_joint_steps, rewards_of_mates
from rl_tui.engine.learning.on_policy.group_networks import GroupOutputs
from rl_tui.engine.learning.on_policy.minibatches import split_rows
from rl_tui.engine.learning.on_policy.rollout import Rollout
from rl_tui.engine.learning.poca.trainer import POCATrainer, poca_loss
from rl_tui.engine.learning.sync import ONE_RANK
from rl_tui.engine.sampling.assembly import Assembly
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    Choice,
    DecisionSteps,
    ObservationSpec,
    Steps,
    TerminalSteps,
    Trajectories,
)

SPEC = BehaviorSpec("Team", (ObservationSpec("seen", (2,)),), ActionSpec(1))
MEMORY = {"sequence_length": 4, "memory_size": 8}


@dataclass(frozen=True)
class Seen:
    """What an agent of a group sees in a step, and has earned since its last action."""

    seen: float
    reward: float = 0.0
    group: int = 0


def played(steps: Sequence[tuple[Mapping[int, Seen], Mapping[int, Seen]]]) -> Trajectories:
    """Of steps in which agents, by number, act or have ended. In the last one all must have ended."""
    assembly = Assembly(SPEC, 32)
    for acting, ended in steps:
        decisions, over = DecisionSteps(**_columns(acting)), np.zeros(len(ended), np.bool_)
        assembly.receive(Steps(decisions, TerminalSteps(**_columns(ended), truncated=over)))
        if acting:
            continuous = np.full((len(acting), 1), 0.5, np.float32)
            chosen = Actions(continuous, np.zeros((len(acting), 0), np.int64))
            assembly.act(decisions, Choice(chosen, continuous, np.full_like(continuous, -1)))
    return assembly.drain()


def _columns(agents: Mapping[int, Seen]) -> dict[str, Any]:
    seen = [[one.seen, -one.seen] for one in agents.values()]
    return {
        "agent_ids": np.array(list(agents), np.int64),
        "observations": (np.array(seen, np.float32).reshape(-1, 2),),
        "rewards": np.array([one.reward for one in agents.values()], np.float32),
        "group_ids": np.array([one.group for one in agents.values()], np.int64),
        "group_rewards": np.zeros(len(agents), np.float32),
    }


def made(**settings: Any) -> POCATrainer:
    network = {"hidden_units": 8, "num_layers": 1} | settings.pop("network_settings", {})
    document = {"trainer_type": "poca", "network_settings": network, "hyperparameters": settings}
    return POCATrainer(SPEC, BehaviorConfig.model_validate(document), 1, torch.device("cpu"))


def learned_from(trainer: POCATrainer, block: Trajectories) -> dict[str, np.ndarray]:
    """Values, baselines and returns of the rows."""
    memory = trainer._config.network_settings.memory
    if memory:
        block = replace(block, memories=np.zeros((block.num_rows, memory.memory_size), np.float32))
    prepared = trainer._prepare(Rollout(block, trainer._evaluate(block)), ONE_RANK)
    return {name: prepared.columns[name].numpy()[:, 0] for name in ("values", "baselines", "returns")}


def with_death(final: float) -> Trajectories:
    """Agent 1 dies in the third step, where it sees this, and agent 0 goes on."""
    return played(
        [
            ({0: Seen(0.1), 1: Seen(0.2)}, {}),
            ({0: Seen(0.3), 1: Seen(0.4)}, {}),
            ({0: Seen(0.5)}, {1: Seen(final)}),
            ({}, {0: Seen(0.6, reward=1.0)}),
        ]
    )


def test_who_has_ended_is_not_valued_in_what_its_group_does_next() -> None:
    """ML-Agents values what is next for who has ended with its last observation."""
    trainer = made()
    first, second = (learned_from(trainer, with_death(final)) for final in (0.7, -9.0))
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)
    block = with_death(0.7)
    own = block.agent_ids.tolist().index(1)
    last = np.cumsum(block.lengths)[own] - 1
    follows = learned_from(trainer, block)["values"][block.observations[0][:, 0] == np.float32(0.5)]
    gamma = trainer._streams.gammas[0]
    np.testing.assert_allclose(first["returns"][last], gamma * follows, rtol=1e-5)


def test_what_a_mate_earns_counts_once_though_it_acts_less_often() -> None:
    """ML-Agents adds the newest reward of each mate at every step of an agent."""
    block = played(
        [
            ({0: Seen(0.1), 1: Seen(0.2)}, {}),
            ({0: Seen(0.3)}, {}),
            ({0: Seen(0.4), 1: Seen(0.5, reward=3.0)}, {}),
            ({0: Seen(0.6)}, {}),
            ({}, {0: Seen(0.7), 1: Seen(0.8, reward=2.0)}),
        ]
    )
    earned = rewards_of_mates(block, find_joint_steps(block))
    by_agent = np.split(earned, np.cumsum(block.lengths)[:-1])
    own = dict(zip(block.agent_ids.tolist(), by_agent, strict=True))
    np.testing.assert_array_equal(own[0], [3, 0, 2, 0])
    np.testing.assert_array_equal(own[1], [0, 0])


def of_two_groups(changed: float) -> Trajectories:
    """Agent 0 has two episodes, agent 1 of another group a single one. changed: what agent 0 sees first."""
    return played(
        [
            ({0: Seen(changed), 1: Seen(0.2, group=1)}, {}),
            ({0: Seen(0.3, group=2), 1: Seen(0.4, group=1)}, {0: Seen(0.9)}),
            ({0: Seen(0.5, group=2), 1: Seen(0.6, group=1)}, {}),
            ({}, {0: Seen(0.7, group=2), 1: Seen(0.8, group=1)}),
        ]
    )


def test_the_memory_of_a_critic_is_of_one_agent_and_one_episode() -> None:
    """In ML-Agents all agents share one, which goes on after an end."""
    trainer = made(network_settings={"memory": MEMORY})
    first, second = (of_two_groups(changed) for changed in (0.1, -5.0))
    found = [learned_from(trainer, block) for block in (first, second)]
    others = first.observations[0][:, 0] != np.float32(0.1)
    for name in ("values", "baselines"):
        one, other = (each[name] for each in found)
        assert (one[~others] != other[~others]).all(), "the memory is read"
        np.testing.assert_array_equal(one[others], other[others], err_msg=name)
    remembering = learned_from(trainer, of_two_groups(0.1))["values"]
    without = learned_from(made(), of_two_groups(0.1))["values"]
    assert not np.allclose(remembering, without)


@pytest.mark.parametrize(("clip", "is_clipped"), [(None, False), ("epsilon", True)])
def test_the_baseline_is_clipped_only_where_it_is_asked_for(clip: str | None, is_clipped: bool) -> None:
    """ML-Agents' error of a baseline that has moved by more than epsilon has no gradient."""
    trainer = made(baseline_clip=clip)
    zeros, far = np.zeros((4, 1), np.float32), np.full((4, 1), 10, np.float32)
    rows = {
        "continuous": zeros,
        "chosen": np.zeros((4, 0), np.float32),
        "log_probs": zeros - 1,
        "advantage": zeros[:, 0],
        "values": zeros,
        "baselines": zeros,
        "returns": far + 10,
    }
    outputs = GroupOutputs(zeros, zeros, np.zeros(1, np.float32), far)
    loss = poca_loss(outputs, rows, SPEC.actions, trainer._coefficients(0))
    assert isinstance(loss.gradients, GroupOutputs)
    assert np.allclose(np.asarray(loss.gradients.baselines), 0) == is_clipped
    expected = (20 - trainer._coefficients(0).epsilon) ** 2 if is_clipped else 10**2
    assert float(loss.terms["Losses/Baseline Loss"]) == pytest.approx(expected)


def test_a_joint_step_is_never_divided_between_mini_batches() -> None:
    """In ML-Agents a mini-batch has rows of any joint steps, and encodes all mates of each again."""
    joint = np.random.default_rng(0).integers(0, 40, 200)
    parts = split_rows(200, 7, np.random.default_rng(1), joint=joint)
    assert sorted(np.concatenate([part.rows for part in parts]).tolist()) == list(range(200))
    holders = [set(joint[part.rows].tolist()) for part in parts]
    assert sum(map(len, holders)) == len(set(joint.tolist()))
    assert len(holders) == 7
    assert all(holders)
