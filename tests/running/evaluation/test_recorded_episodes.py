"""Episodes that are played and written to a .demo file: those that count in an evaluation, and no others."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.demonstrations.episode_recorder import EpisodeRecorder
from rl_tui.engine.demonstrations.opening import open_demonstrations
from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.running.evaluation.episodes import Scores, play
from rl_tui.engine.running.evaluation.saved_policy import SavedRun
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.quota import RestartQuota
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.session.messages import CheckpointSaved
from rl_tui.engine.specs import TERMINATED
from rl_tui.tui.cli import main
from tests.running.environments import Pair, Uneven
from tests.running.evaluation.test_episodes import MORTAL, Counting
from tests.running.evaluation.test_saved_policy import finished, request
from tests.running.runs import DEADLINE_SECONDS, behavior, configuration, run_to_end


def recorded(path: Path, pool: EnvironmentPool, num_episodes: int, behavior: str = "Walker") -> Scores:
    """The scores of episodes that are also in the file."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    pool.start()
    try:
        with EpisodeRecorder(path, lambda: pool.specs[behavior]) as recorder:
            scores = play(
                pool,
                lambda spec: Counting(),
                behavior,
                num_episodes,
                1,
                lambda: time.monotonic() < deadline,
                recorder=recorder,
            )
    finally:
        pool.close()
    assert scores is not None
    return scores


def require_counted(path: Path, scores: Scores) -> None:
    """The file has the episodes of these scores, each from its first step, which observes 0, to its last."""
    opened = open_demonstrations(path)
    assert sorted(opened.steps.episode_lengths.tolist()) == sorted(scores.lengths.tolist())
    assert sorted(opened.steps.episode_returns.tolist()) == sorted(scores.returns.tolist())
    steps = opened.transitions(np.arange(opened.num_steps))
    for first, last in opened.episodes.tolist():
        assert steps.observations[0][first:last].ravel().tolist() == list(range(last - first))
        assert steps.next_observations[0][first:last].ravel().tolist() == list(range(1, last - first + 1))
        assert opened.steps.endings[last - 1] == TERMINATED


@pytest.mark.parametrize(
    ("num_episodes", "environments"),
    [
        (6, [Uneven((1, 3, 9))]),
        (8, [Uneven((1, 9)), Uneven((2, 5))]),
        (2, [Uneven((1, 3, 9))]),
        (6, [Uneven((1, 9), is_reborn=True)]),
    ],
)
def test_episodes_that_count_are_written_whole(
    tmp_path: Path, num_episodes: int, environments: list[Environment]
) -> None:
    pool = SerialPool("test", lambda first, count: environments, len(environments))
    scores = recorded(tmp_path / "walk.demo", pool, num_episodes)
    assert len(scores.lengths) == num_episodes
    require_counted(tmp_path / "walk.demo", scores)


def test_episodes_that_are_lost_with_their_worker_are_not_written(tmp_path: Path) -> None:
    source = EnvironmentSource(MORTAL, "Walker", {"folder": str(tmp_path), "lengths": [6, 2, 1]})
    pool = ProcessPool(source, 1, 1, make_quota=partial(RestartQuota, 1, 1, 60.0))
    require_counted(tmp_path / "walk.demo", recorded(tmp_path / "walk.demo", pool, 7))


def test_nothing_is_written_where_an_environment_fails(tmp_path: Path) -> None:
    class Broken(Uneven):
        def step(self, actions):  # type: ignore[no-untyped-def]
            raise OSError("anything")

    pool = SerialPool("test", lambda first, count: [Broken((3,))], 1)
    with pytest.raises(EnvironmentFailure, match="anything"):
        recorded(tmp_path / "walk.demo", pool, 2)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("walker"))


def test_command_records_what_an_evaluation_plays(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "walk.demo"
    words = ["demonstrations", "record", str(run), "--episodes", "5", str(path), "--seed", "3"]
    assert main(words) == 0
    first, second = capsys.readouterr().out.splitlines()
    played = SavedRun(run).play(request(episodes=5, seed=3)).scores["greedy"]
    opened = open_demonstrations(path)
    assert sorted(opened.steps.episode_lengths.tolist()) == sorted(played.lengths.tolist())
    np.testing.assert_allclose(sorted(opened.steps.episode_returns), sorted(played.returns), rtol=1e-6)
    assert first.startswith("Walker at step 256, seed 3, greedy: 5 episodes, ")
    assert second == f"recorded    {path}"
    assert main(words) == 2
    assert capsys.readouterr().err == f"{path}: already exists; choose another name or use --force\n"
    assert main([*words, "--force", "--stochastic"]) == 0
    sampled = SavedRun(run).play(request(episodes=5, seed=3, ways=("sampled",))).scores["sampled"]
    assert sorted(open_demonstrations(path).steps.episode_lengths.tolist()) == sorted(sampled.lengths.tolist())


def test_demonstrations_of_one_of_several_behaviors_are_recorded(tmp_path: Path) -> None:
    walkers = {name: behavior(max_steps=64) for name in Pair().specs}
    made = run_to_end(configuration(tmp_path, walkers, "tests.running.environments:Pair"))
    assert made.of(CheckpointSaved)
    name = sorted(walkers)[0]
    words = ["demonstrations", "record", str(made.folder), str(tmp_path / "one.demo"), "--episodes", "3"]
    assert main(words) == 2
    assert main([*words, "--behavior", name]) == 0
    opened = open_demonstrations(tmp_path / "one.demo", Pair().specs[name])
    assert (opened.spec.name, len(opened.episodes)) == (name, 3)
