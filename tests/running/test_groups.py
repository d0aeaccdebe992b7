"""Whole runs of groups: what a log says of them, in worker processes, with self-play and with memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.running.group_notes import GroupNotes
from rl_tui.engine.running.summaries import LearnerSettings, SummaryReporter
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import LeagueReported, LogEmitted, MetricsReported
from tests.fakes import RandomPolicy
from tests.learning.rollouts import SPEC, acted
from tests.running.runs import behavior, configuration, run_to_end

PONG = {"env": "toy:pong", "env_kwargs": {"players": 2}, "num_envs": 4}
SETTINGS: dict[str, Any] = {"max_steps": 2000, "time_horizon": 16, "summary_freq": 500}
HYPER = {"batch_size": 64, "buffer_size": 512}
ADDED = "the rewards of its groups are added to those of their agents"
CREDITED = "its groups earn rewards, and each agent is credited with what it contributes"


def run_of(tmp_path: Path, trainer: str, env: dict[str, Any], **settings: Any) -> Any:
    given = behavior(trainer_type=trainer, **{f"hyperparameters__{key}": value for key, value in HYPER.items()})
    run = run_to_end(configuration(tmp_path, {"Pong": {**given, **SETTINGS, **settings}}, env_settings=env))
    assert run.launch.exit_code == 0, run.recent_events()
    return run


def notes(run: Any) -> list[str]:
    return [event.message for event in run.of(LogEmitted) if "group" in event.message]


def test_a_trainer_that_sees_single_agents_names_those_that_see_groups(tmp_path: Path) -> None:
    assert notes(run_of(tmp_path, "ppo", PONG)) == [
        f"{ADDED}; trainer_type poca or mappo credits each with what it contributes"
    ]


@pytest.mark.parametrize("trainer", ["poca", "mappo"])
@pytest.mark.parametrize("workers", [0, 2])
def test_groups_learn_in_self_play_with_memory_and_in_workers(trainer: str, workers: int, tmp_path: Path) -> None:
    memory = {"hidden_units": 8, "num_layers": 1, "memory": {"sequence_length": 8, "memory_size": 8}}
    own_play = {"save_steps": 256, "swap_steps": 64, "team_change": 512}
    env = {**PONG, "num_workers": workers}
    run = run_of(tmp_path, trainer, env, network_settings=memory, self_play=own_play)
    assert notes(run) == [CREDITED]
    assert len(run.of(LeagueReported)[-1].snapshots) > 1
    reported = {tag for event in run.of(MetricsReported) for tag in event.metrics}
    assert ("Losses/Baseline Loss" in reported) == (trainer == "poca")


def test_agents_without_groups_are_said_to_be_alone(tmp_path: Path) -> None:
    assert notes(run_of(tmp_path, "poca", {"env": "toy:pong", "num_envs": 4})) == [
        "none of its agents has a group: to poca each is alone, as to ppo, which is faster"
    ]


def test_rewards_of_a_group_that_no_one_is_in_are_named_once() -> None:
    bus = EventBus()
    mailbox = bus.subscribe()
    config = BehaviorConfig.model_validate({"trainer_type": "poca"})
    seen = GroupNotes("Team", config, bus)
    block = acted(RandomPolicy(SPEC.actions), np.random.default_rng(0), [3, 2])
    groups = np.array([4, 4, 4, -1, -1])
    for rewards in ([1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0]):
        seen.see(replace(block, group_ids=groups, group_rewards=np.array(rewards, np.float32)))
    texts = [envelope.event for envelope in mailbox.drain()]
    assert [event.message for event in texts if isinstance(event, LogEmitted) and event.level == "warning"] == [
        "agents without a group earned rewards of a group; these count as their own"
    ]


@pytest.mark.parametrize(("trainer", "ranked"), [("poca", 2.0), ("mappo", 2.0), ("ppo", -0.5)])
def test_checkpoints_of_a_trainer_that_sees_groups_are_ranked_by_what_groups_earn(trainer: str, ranked: float) -> None:
    config = BehaviorConfig.model_validate({"trainer_type": trainer})
    reporter = SummaryReporter(LearnerSettings("Team", config, True, 0.0), EventBus())
    block = acted(RandomPolicy(SPEC.actions), np.random.default_rng(0), [3, 2])
    lone = replace(block, episode_returns=np.array([-1, 0], np.float32), episode_lengths=np.array([3, 2]))
    grouped = replace(lone, group_ids=np.array([4, 4, 4, 4, 4]), group_returns=np.empty(0, np.float32))
    reporter.add_block(grouped, None)
    assert reporter.ranking_return == (-0.5 if trainer == "ppo" else None), "no group has ended"
    reporter.add_block(replace(grouped, group_returns=np.array([1, 3], np.float32)), None)
    assert reporter.ranking_return == ranked
    assert reporter.mean_return == -0.5
    reporter.restart()
    assert reporter.ranking_return is None


def test_agents_without_groups_are_ranked_by_their_own_returns() -> None:
    config = BehaviorConfig.model_validate({"trainer_type": "poca"})
    reporter = SummaryReporter(LearnerSettings("Team", config, True, 0.0), EventBus())
    block = acted(RandomPolicy(SPEC.actions), np.random.default_rng(0), [3, 2])
    reporter.add_block(
        replace(block, episode_returns=np.array([1, 2], np.float32), episode_lengths=np.array([3, 2])), None
    )
    assert reporter.ranking_return == 1.5
