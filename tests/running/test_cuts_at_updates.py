"""A trainer that learns from group mates gets whole updates: no mate's segment is unfinished."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.experience import join_trajectories
from rl_tui.engine.learning.joint_steps import find_joint_steps
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.learning.trainer import Metrics, Samples
from rl_tui.engine.specs import Trajectories
from tests.running.runs import behavior, configuration, run_to_end
from tests.sampling.skirmish import replay

INSTANCES = 3
WORLD = {"end": 400, "late": 1000, "can_vanish": False}


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> list[list[Trajectories]]:
    """The blocks that each update learned from."""
    found: list[list[Trajectories]] = [[]]
    original_add, original_update = PPOTrainer.add, PPOTrainer.update

    def add(trainer: PPOTrainer, block: Trajectories) -> Samples:
        found[-1].append(block)
        return original_add(trainer, block)

    def update(trainer: PPOTrainer, step: int, should_continue: Callable[[], bool] = lambda: True) -> Metrics:
        found.append([])
        return original_update(trainer, step, should_continue)

    monkeypatch.setattr(PPOTrainer, "add", add)
    monkeypatch.setattr(PPOTrainer, "update", update)
    return found


@pytest.mark.parametrize(("cuts", "workers"), [(True, 0), (True, 3), (False, 0)])
def test_every_mate_of_an_update_is_in_it_where_the_trainer_asks_for_that(
    cuts: bool, workers: int, tmp_path: Path, updates: list[list[Trajectories]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some soldiers act at every other step only, some join late: their segments reach the horizon at other times."""
    monkeypatch.setattr(PPOTrainer, "cuts_at_update", cuts)
    settings = behavior(time_horizon=16, max_steps=6000, hyperparameters__buffer_size=512)
    env = {
        "env": "tests.sampling.skirmish:Skirmish",
        "num_envs": INSTANCES,
        "num_workers": workers,
        "env_kwargs": WORLD,
    }
    run = run_to_end(configuration(tmp_path, {"Soldier": settings}, env_settings=env))
    assert run.launch.exit_code == 0, run.recent_events()
    whole = updates[:-1]
    assert len(whole) > 6
    sizes = [sum(block.num_rows for block in blocks) for blocks in whole]
    assert min(sizes) >= 512
    rollouts = [join_trajectories(blocks) for blocks in whole]
    missing = [num_missing(rollout, rollouts[:index]) for index, rollout in enumerate(rollouts)]
    assert any(missing) != cuts, missing


def num_missing(rollout: Trajectories, earlier: list[Trajectories]) -> int:
    """Mates that acted when a row did, and are neither in the rollout nor in an earlier one."""
    squads = replay(1 + INSTANCES, **WORLD).squads  # the run's seed is 1
    before = {(instance, agent, step) for each in earlier for instance, agent, step, _ in places(each)}
    found, count = find_joint_steps(rollout), 0
    for row, (instance, agent, step, group) in enumerate(places(rollout)):
        expected = squads.get((instance, group, step), set()) - {(agent, step)}
        expected -= {mate for mate in expected if (instance, *mate) in before}
        count += len(expected) - len(found.mates(row))
    return count


def places(rollout: Trajectories) -> list[list[int]]:
    """Instance, agent, step and group of each row."""
    found: list[list[int]] = rollout.observations[0].astype(np.int64).tolist()
    return found
