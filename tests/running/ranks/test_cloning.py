"""Behavioral cloning on several ranks: from demonstrations that all have, and from a teacher that each asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_tui.engine.learning.bc.settings import HELD_OUT, LOSS
from rl_tui.engine.session.messages import MetricsReported, Pause, Resume, SetHyperparameter, Stop
from tests.learning.sync.ranks import Ranks
from tests.running.ranks.rank_runs import Part, Script
from tests.running.ranks.test_ranks import as_one, parts_of, trained
from tests.running.runs import ENDLESS, run_to_end
from tests.running.test_offline import OFFLINE, offline, write
from tests.running.test_taught import taught

DEMONSTRATED = OFFLINE["hyperparameters"]


@pytest.fixture
def demonstrations(tmp_path: Path) -> str:
    """A file of some."""
    write(str(tmp_path / "a.demo"), num_choices=3)
    return str(tmp_path / "a.demo")


def losses(part: Part) -> list[tuple[int, float]]:
    """By step."""
    return [(event.step, event.metrics[LOSS]) for event in part.of(MetricsReported) if LOSS in event.metrics]


@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_ranks_learn_from_demonstrations_what_one_process_does(
    size: int, demonstrations: str, tmp_path: Path, two: Ranks, three: Ranks
) -> None:
    settings = {"max_steps": 3200, "hyperparameters": DEMONSTRATED | {"demo_path": demonstrations}}
    alone = run_to_end(offline(tmp_path / "alone", **settings))
    run = [offline(tmp_path, **settings, changes={"env_settings": {"num_envs": size}})] * size
    parts = parts_of({2: two, 3: three}[size], run)
    first = as_one(parts, needs_updates=False)
    expected = [(event.step, event.metrics[LOSS]) for event in alone.of(MetricsReported) if LOSS in event.metrics]
    assert [step for step, _ in losses(first)] == [step for step, _ in expected]
    assert [loss for _, loss in losses(first)] == pytest.approx([loss for _, loss in expected], rel=1e-3, abs=1e-5)


def change_and_stop(script: Script) -> None:
    """While it learns without experience."""
    run = script.run
    trained(script)
    assert run.send(SetHyperparameter("A", "learning_rate", 0.001)).ok
    assert run.send(Pause()).ok
    assert run.send(Resume()).ok
    trained(script)
    assert run.send(Stop()).ok


def test_a_change_comes_at_the_same_update_where_nothing_is_collected(
    demonstrations: str, tmp_path: Path, two: Ranks
) -> None:
    settings = {"max_steps": ENDLESS, "hyperparameters": DEMONSTRATED | {"demo_path": demonstrations}}
    first = as_one(parts_of(two, [offline(tmp_path, **settings)] * 2, change_and_stop), needs_updates=False)
    assert first.exit_code == 0, first.reason
    assert [change[2] for change in first.changes] == ["learning_rate"]


def test_ranks_ask_the_same_teacher_about_what_each_of_them_visits(
    demonstrations: str, tmp_path: Path, two: Ranks
) -> None:
    hyper = DEMONSTRATED | {"demo_path": demonstrations}
    teacher = run_to_end(offline(tmp_path / "first", max_steps=6400, hyperparameters=hyper))
    run = taught(tmp_path, teacher.folder, max_steps=2560, network_settings__normalize=True)
    first = as_one(parts_of(two, [run] * 2), needs_updates=False)
    assert first.exit_code == 0, first.reason
    newest = [event.metrics for event in first.of(MetricsReported) if LOSS in event.metrics][-1]
    assert newest[LOSS] < 0.1
    assert newest[HELD_OUT] < 0.1
