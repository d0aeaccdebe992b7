"""Some agents of a run act by a policy that does not learn: what is learned from, and what is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.learning.trainer import Samples, Trainer
from rl_tui.engine.running import learner
from rl_tui.engine.running.behavior_building import BehaviorBuilder
from rl_tui.engine.running.checkpoint_parts import COUNTS
from rl_tui.engine.running.summaries import UNLEARNED_LENGTH, UNLEARNED_RETURN
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    CheckpointSaved,
    EpisodesFinished,
    MetricsReported,
    ProgressReported,
)
from rl_tui.engine.specs import Policy, Trajectories
from rl_tui.engine.storage.checkpoint_format import read
from tests.running.fencing import OPPONENT, SWAP, SwappingTeams, earned
from tests.running.runs import LiveRun, behavior, configuration, run_to_end

MAX_STEPS = 4000


class Recorder:
    """What every learner of the process is given, and what its trainer is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.collected: list[Trajectories] = []
        self.learned: list[Trajectories] = []
        original_add, original_part = PPOTrainer.add, learner.learned_part
        original_policy = BehaviorBuilder._acting_policy

        def add(trainer: PPOTrainer, block: Trajectories) -> Samples:
            self.learned.append(block)
            return original_add(trainer, block)

        def part(block: Trajectories) -> Trajectories | None:
            self.collected.append(block)
            return original_part(block)

        def policy(builder: BehaviorBuilder, trainer: Trainer, *step: int) -> Policy:
            return SwappingTeams(original_policy(builder, trainer, *step))

        monkeypatch.setattr(PPOTrainer, "add", add)
        monkeypatch.setattr(learner, "learned_part", part)
        monkeypatch.setattr(BehaviorBuilder, "_acting_policy", policy)

    @property
    def num_collected(self) -> int:
        return sum(block.num_rows for block in self.collected)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(monkeypatch)


def fencing(folder: Path, threaded: bool, workers: int, **changes: Any) -> LiveRun:
    """Two copies of the game, whose memory has to follow who acts."""
    env_settings = {"num_envs": 2, "num_workers": workers, "env": "tests.running.fencing:Fencing"}
    memory = {"memory_size": 4, "sequence_length": 8}
    settings = behavior(
        threaded=threaded, summary_freq=500, network_settings__memory=memory, **{"max_steps": MAX_STEPS, **changes}
    )
    resume = {"resume": True} if "max_steps" in changes else {}
    sections = {"env_settings": env_settings, "checkpoint_settings": resume}
    run = run_to_end(configuration(folder, {"Fencer": settings}, **sections))
    assert run.launch.exit_code == 0, run.recent_events()
    return run


@pytest.mark.parametrize(("threaded", "workers"), [(False, 0), (False, 2), (True, 0)])
def test_only_the_steps_of_the_policy_that_learns_are_learned_and_counted(
    threaded: bool, workers: int, tmp_path: Path, recorder: Recorder
) -> None:
    run = fencing(tmp_path, threaded, workers)
    num_learned = check_rows(recorder.learned, is_learned=True)
    everything = [segment for block in recorder.collected for segment in range(block.num_segments)]
    assert len(everything) > sum(block.num_segments for block in recorder.learned) > 0
    check_rows(recorder.collected, is_learned=False)

    saved = run.of(CheckpointSaved)[-1]
    assert saved.step == num_learned
    assert MAX_STEPS <= num_learned < MAX_STEPS + 12, "segments are cut where the last step that counts is made"
    counts = read(run.folder / saved.path)[0].part(COUNTS)
    assert counts.number("num_sampled") == recorder.num_collected
    assert 1.5 < recorder.num_collected / num_learned < 3

    progress = run.of(ProgressReported)
    assert all(event.step <= event.num_learned <= event.sampled for event in progress)
    last = progress[-1]
    assert last.step == num_learned
    assert last.sampled >= recorder.num_collected
    check_returns(run, recorder)


def check_rows(blocks: list[Trajectories], is_learned: bool) -> int:
    """Each reward is in its row; no segment has two policies or a gap; no row is there twice. Returns their number."""
    seen: set[tuple[int, int, int]] = set()
    for block in blocks:
        agents, steps = block.observations[0][:, 0].astype(np.int64), block.observations[0][:, 1].astype(np.int64)
        actions = block.continuous_actions[:, 0]
        by_opponent = actions == OPPONENT
        np.testing.assert_array_equal(block.rewards, earned(agents, steps, np.where(by_opponent, OPPONENT, 0)))
        learned = np.ones(block.num_segments, np.bool_) if block.is_learned is None else block.is_learned
        np.testing.assert_array_equal(by_opponent, ~learned.repeat(block.lengths))
        assert not is_learned or learned.all()
        assert block.team_ids is not None
        np.testing.assert_array_equal(block.team_ids, agents // 10)
        ends = np.cumsum(block.lengths)
        for begin, end in zip(ends - block.lengths, ends, strict=True):
            np.testing.assert_array_equal(steps[begin:end], steps[begin] + np.arange(end - begin))
            assert len(set(agents[begin:end])) == 1
        ids = block.agent_ids.repeat(block.lengths)
        rows = set(zip(ids.tolist(), agents.tolist(), steps.tolist(), strict=True))
        assert len(rows) == block.num_rows
        assert not rows & seen
        seen |= rows
    teams = {agent // 10 for _, agent, _ in seen}
    assert teams == {0, 1}
    return len(seen)


def check_returns(run: LiveRun, recorder: Recorder) -> None:
    """Those of the policy that learns are in the curves, the others in a metric of their own."""
    own = np.concatenate([block.episode_returns for block in recorder.collected])
    others = np.concatenate([block.unlearned_returns for block in recorder.collected])
    lengths = np.concatenate([block.unlearned_lengths for block in recorder.collected])
    assert min(len(own), len(others)) > 50
    summaries = run.of(MetricsReported)
    counted = sum(summary.counts.get(UNLEARNED_RETURN, 0) for summary in summaries)
    total = sum(summary.metrics[UNLEARNED_RETURN] * summary.counts[UNLEARNED_RETURN] for summary in summaries)
    assert 0 < counted <= len(others)
    assert total == pytest.approx(float(others[:counted].sum(dtype=np.float64)), rel=1e-6)
    assert all(summary.metrics[UNLEARNED_LENGTH] <= lengths.max() for summary in summaries)
    finished = run.of(EpisodesFinished)
    assert sum(event.count for event in finished) >= len(own)
    assert max(event.step for event in finished) <= run.of(ProgressReported)[-1].num_learned


def test_a_resumed_run_counts_on(tmp_path: Path, recorder: Recorder) -> None:
    first = fencing(tmp_path, threaded=False, workers=0)
    sampled = recorder.num_collected
    resumed = fencing(tmp_path, threaded=False, workers=0, max_steps=MAX_STEPS + 2 * SWAP)
    start, step = resumed.of(BehaviorStarted)[0], first.of(CheckpointSaved)[-1].step
    assert start.step == step
    assert resumed.of(ProgressReported)[0].sampled >= sampled
    saved = resumed.of(CheckpointSaved)[-1]
    assert read(resumed.folder / saved.path)[0].part(COUNTS).number("num_sampled") == recorder.num_collected > sampled
