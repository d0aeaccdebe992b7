"""What environments report under names of their own arrives once, from every pool and through every block."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.experience import join_trajectories
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.instance import Instance
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.specs import HISTOGRAM_VALUES, Actions, GatheredStatistic, Statistic, Steps, Trajectories
from rl_tui.engine.statistics import gather, merge
from tests.deadline import DEADLINE_SECONDS
from tests.fakes import RandomPolicy
from tests.sampling.driving import discrete, history, receive_all
from tests.sampling.skirmish import Skirmish

AGENTS = 2


class Reporting(Line):
    """Reports the number of each step, with every method, and nothing at a reset."""

    def __init__(self) -> None:
        super().__init__("Walker", AGENTS)
        self._count = 0

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        answer = super().step(actions)
        answer["Walker"].statistics = (
            Statistic("Maze/Speed", self._count),
            Statistic("Maze/Level", self._count, "last"),
            Statistic("Falls", 1.0, "sum"),
            Statistic("Height ü", self._count / 2, "histogram"),
        )
        return answer


def pool_of(where: str, copies: int) -> EnvironmentPool:
    source = EnvironmentSource(f"{__name__}:Reporting", "Walker", {})
    return ProcessPool(source, copies, copies) if where == "process" else SerialPool("reporting", source.make, copies)


@pytest.fixture(params=["serial", "process"])
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_step_of_every_copy_reports_once(where: str) -> None:
    pool = pool_of(where, 2)
    try:
        pool.start()
        rounds = history(pool, 3)
    finally:
        pool.close()
    for number, answers in enumerate(rounds):
        for answer in answers.values():
            reported = answer["Walker"].statistics
            assert reported == (None if number == 0 else expected(number))


def expected(number: int) -> tuple[Statistic, ...]:
    speed, level = Statistic("Maze/Speed", number), Statistic("Maze/Level", number, "last")
    return speed, level, Statistic("Falls", 1.0, "sum"), Statistic("Height ü", number / 2, "histogram")


def test_statistics_of_an_answer_that_is_dropped_are_dropped_with_it() -> None:
    pool = pool_of("process", 1)
    try:
        pool.start()
        history(pool, 1)
        pool.send(0, {"Walker": discrete(*[0] * AGENTS)})
        pool.reset(1)
        assert receive_all(pool)[0]["Walker"].statistics is None
    finally:
        pool.close()


def test_blocks_hold_all_that_was_reported_since_the_last_one(where: str) -> None:
    pool = pool_of(where, 2)
    try:
        pool.start()
        blocks = collect(pool, num_blocks=3, reported="Maze/Level")
    finally:
        pool.close()
    falls = [block.statistics["Falls"] for block in blocks]
    assert all(each.total == each.count > 0 for each in falls)
    joined = join_trajectories(blocks).statistics
    assert joined["Falls"].value == sum(each.total for each in falls)
    assert blocks[0].statistics["Falls"].total == falls[0].count, "joining must not change a block"
    heights, speed = joined["Height ü"], joined["Maze/Speed"]
    assert (len(heights.values), heights.value) == (heights.count, pytest.approx(speed.value / 2))
    levels = [block.statistics["Maze/Level"].value for block in blocks if "Maze/Level" in block.statistics]
    assert joined["Maze/Level"].value == levels[-1] == max(levels)


def collect(pool: EnvironmentPool, num_blocks: int, reported: str) -> list[Trajectories]:
    """At least so many blocks, and one with that statistic: a copy may answer once while another does many times."""
    collector = Collector(pool, {"Walker": RandomPolicy(pool.specs["Walker"].actions)}, {"Walker": 4})
    pool.reset(1)
    blocks: list[Trajectories] = []
    while len(blocks) < num_blocks or all(reported not in block.statistics for block in blocks):
        assert collector.receive(DEADLINE_SECONDS)
        if collector.is_due("Walker", 1):
            blocks.append(collector.drain("Walker"))
        collector.act()
    return blocks


class Numbered(Line):
    """Reports its number at every step, as the most recent value and in an average."""

    def __init__(self, number: int) -> None:
        super().__init__("Walker", AGENTS)
        self._number = number

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        answer = super().step(actions)
        number = self._number
        answer["Walker"].statistics = Statistic("Lesson", number, "last"), Statistic("Speed", number)
        return answer


def test_most_recent_values_are_those_of_the_first_instance() -> None:
    pool = SerialPool("numbered", lambda first, count: [Numbered(first + number) for number in range(count)], 3)
    pool.start()
    try:
        [block] = collect(pool, num_blocks=1, reported="Lesson")
    finally:
        pool.close()
    assert (block.statistics["Lesson"].value, block.statistics["Speed"].value) == (0, 1)


SHARED = (Statistic("Shots", 3.0, "sum"),)


class Reporters(Skirmish):
    """Each team reports the same tuple, or a statistic of its own."""

    def __init__(self, has_shared: bool) -> None:
        super().__init__()
        self._has_shared = has_shared

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        answer = super().step(actions)
        for name, steps in answer.items():
            steps.statistics = SHARED if self._has_shared else (Statistic(f"Hits of {name}", 1.0),)
        return answer


@pytest.mark.parametrize(
    ("has_shared", "names"), [(True, ["Shots"]), (False, ["Hits of Soldier?team=0", "Hits of Soldier?team=1"])]
)
def test_what_all_teams_have_counts_once_and_what_each_has_counts_for_each(has_shared: bool, names: list[str]) -> None:
    instance = Instance(Reporters(has_shared))
    instance.reset(1)
    reported = instance.step({})["Soldier"].statistics
    assert reported is not None
    assert [each.name for each in reported] == names


@pytest.mark.parametrize(
    ("statistics", "words"),
    [
        ([Statistic("", 1.0)], "the name of a statistic must be text, which is not empty, got ''"),
        ([Statistic("a\ud800", 1.0)], r"the name of a statistic must be text, .*, got 'a\\ud800'"),
        (
            [Statistic("Speed", 1.0, "mean")],  # type: ignore[arg-type]  # what is refused
            "the method of statistic 'Speed' must be one of average, last, sum, histogram, got 'mean'",
        ),
        ([Statistic("Speed", "fast")], "the statistic 'Speed' must be a number, got 'fast'"),  # type: ignore[arg-type]
        ([Statistic(5, 1.0)], r"statistics\[0\].name must be text, got 5"),  # type: ignore[arg-type]
        ([("Speed", 1.0)], r"statistics\[0\] must be a Statistic, got a tuple"),
        ({"Speed": 1.0}, "statistics must be a tuple of Statistic, got a dict"),
    ],
)
def test_what_is_no_statistic_is_refused(statistics: object, words: str) -> None:
    class Wrong(Line):
        def reset(self, seed: int | None) -> Mapping[str, Steps]:
            answer = super().reset(seed)
            answer["Walker"].statistics = statistics  # type: ignore[assignment]  # what is refused
            return answer

    with pytest.raises(EnvironmentFailure, match=f"^Walker: {words}$"):
        Instance(Wrong("Walker", 1)).reset(1)


def test_values_that_are_not_finite_are_left_out_and_counted() -> None:
    gathered: dict[str, GatheredStatistic] = {}
    gather(gathered, [Statistic("Speed", value, "last") for value in (1.0, math.nan, 2.0, math.inf)])
    merge(gathered, {"Speed": GatheredStatistic("last", num_not_finite=1)})
    assert (gathered["Speed"].value, gathered["Speed"].count, gathered["Speed"].num_not_finite) == (2.0, 2, 3)


def test_name_with_another_method_begins_anew() -> None:
    gathered: dict[str, GatheredStatistic] = {}
    gather(gathered, [Statistic("Speed", 100.0), Statistic("Speed", 2.0, "sum"), Statistic("Speed", 3.0, "sum")])
    assert gathered["Speed"].value == 5.0
    merge(gathered, {"Speed": GatheredStatistic("average", 8.0, 2, 1.0)})
    assert gathered["Speed"].value == 4.0


def test_only_the_newest_values_of_a_histogram_are_kept() -> None:
    gathered: dict[str, GatheredStatistic] = {}
    gather(gathered, [Statistic("Height", value, "histogram") for value in range(HISTOGRAM_VALUES + 5)])
    merge(gathered, gathered.copy())
    assert len(gathered["Height"].values) == HISTOGRAM_VALUES
    assert gathered["Height"].values[0] == 5
    assert gathered["Height"].count == 2 * (HISTOGRAM_VALUES + 5)
