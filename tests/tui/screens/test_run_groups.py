"""Runs of one configuration as one line and one curve, and the order of the list."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.storage.archive import Archive
from rl_tui.tui.charts.band import band_curve, deviation_at, ends
from rl_tui.tui.charts.curve import Curve, plain_curve
from rl_tui.tui.runs.groups import group_key
from rl_tui.tui.runs.rows import RunRow, in_order, rows_of, shared_name
from rl_tui.tui.state.choices import RunsColumn, RunsOrder
from rl_tui.tui.state.preferences import Preferences
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.recorded import CONFIGURATION, record
from tests.tui.screens.test_runs import FakeRuns, summary
from tests.tui.snapshots import check


def configured(**changes: str) -> str:
    """A configuration with some of its values replaced."""
    text = CONFIGURATION.format(behavior="Walker", learning_rate="0.0003", run_id="a") + "  results_dir: results\n"
    text = text.replace("  num_envs: 8\n", "  num_envs: 8\n  seed: 1\n")
    for key, value in changes.items():
        text = re.sub(rf"{key}: .*", f"{key}: {value}", text)
    return text


@pytest.mark.parametrize("changes", [{"seed": "2"}, {"run_id": "b"}, {"results_dir": "/elsewhere"}])
def test_runs_that_differ_in_seed_name_or_folder_are_of_one_group(changes: dict[str, str]) -> None:
    assert group_key(configured(**changes)) == group_key(configured())


@pytest.mark.parametrize("changes", [{"learning_rate": "0.001"}, {"num_envs": "9"}, {"env": "gymnasium:Hopper-v5"}])
def test_runs_that_differ_in_any_other_setting_are_not(changes: dict[str, str]) -> None:
    assert group_key(configured(**changes)) != group_key(configured())


def test_seed_among_the_arguments_of_the_environment_is_a_setting_like_any_other() -> None:
    one, other = (configured() + f"  env_kwargs: {{seed: {seed}}}\n" for seed in (1, 2))
    assert group_key(one) != group_key(other)


@pytest.mark.parametrize(
    ("ids", "name"),
    [
        (["walker-1", "walker-2", "walker-10"], "walker"),
        (["walker-10", "walker-11"], "walker"),
        (["lr3e-4_s1", "lr3e-4_s2"], "lr3e-4_s"),
        (["bold", "shy"], "bold"),
        (["walker-1"], "walker-1"),
    ],
)
def test_group_is_called_what_its_runs_have_in_common(ids: list[str], name: str) -> None:
    assert shared_name(ids) == name


SORTED: list[tuple[RunsColumn, list[str]]] = [
    ("age", ["run-2", "run-10", "Run-1", "void"]),
    ("run", ["Run-1", "run-2", "run-10", "void"]),
    ("state", ["run-2", "run-10", "Run-1", "void"]),
    ("steps", ["run-10", "run-2", "Run-1", "void"]),
    ("best", ["run-10", "run-2", "Run-1", "void"]),
    ("took", ["run-2", "run-10", "Run-1", "void"]),
]


@pytest.mark.parametrize(("column", "expected"), SORTED)
def test_order_of_each_column_is_stable_with_missing_values_last(column: RunsColumn, expected: list[str]) -> None:
    def run(name: str, age: float, step: int, best: float) -> RunRow:
        behavior = scenes_behavior(step, best)
        return RunRow(name, (summary(name, behaviors=(behavior,), last_event_at=scenes.START - age),))

    void = summary("void", behaviors=(), state="unknown", last_event_at=None, elapsed_seconds=None)
    rows = [run("run-2", 1, 20, 5.0), run("run-10", 2, 30, 7.0), RunRow("void", (void,)), run("Run-1", 3, 10, 1.0)]
    assert [row.key for row in in_order(rows, column, is_reversed=False)] == expected
    backwards = [row.key for row in in_order(rows, column, is_reversed=True)]
    assert backwards[-1] == ("void" if column != "state" and column != "run" else backwards[-1])
    assert set(backwards) == set(expected)


def scenes_behavior(step: int, best: float) -> object:
    from rl_tui.engine.session.summaries import BehaviorSummary

    return BehaviorSummary("Walker", "ppo", step, 100, best, best)


def test_value_that_is_not_a_number_counts_as_missing() -> None:
    rows = [RunRow(str(best), (summary(str(best), behaviors=(scenes_behavior(1, best),)),)) for best in (np.nan, 1.0)]
    assert [row.key for row in in_order(rows, "best", is_reversed=False)] == ["1.0", "nan"]
    assert [row.key for row in in_order(rows, "best", is_reversed=True)] == ["1.0", "nan"]


def test_group_has_the_means_of_its_runs() -> None:
    runs = [summary(f"run-{best}", behaviors=(scenes_behavior(10, best),)) for best in (1.0, 3.0)]
    (row,) = rows_of(runs, {"run-1.0": "=x", "run-3.0": "=x"})
    assert (row.key, row.name, row.mean("best"), row.mean("steps")) == ("=x", "run", 2.0, 10)
    assert [row.key for row in rows_of(runs, {"run-1.0": "=x", "run-3.0": "=y"})] == ["run-1.0", "run-3.0"]


def line_to(last: float, height: float, first: float = 0.0) -> Curve:
    xs = np.linspace(first, last, 50)
    return plain_curve(xs, np.full(50, height))


def test_band_is_the_mean_within_lowest_and_highest_on_a_common_grid() -> None:
    xs = np.linspace(0, 100, 7), np.linspace(0, 100, 31)
    band = band_curve([plain_curve(xs[0], xs[0]), plain_curve(xs[1], 3 * xs[1])], (0, 100), 0.0)
    assert band is not None
    np.testing.assert_allclose(band.mean, 2 * band.xs)
    np.testing.assert_allclose(band.low, band.xs)
    np.testing.assert_allclose(band.high, 3 * band.xs)


def test_from_where_a_run_ends_the_mean_is_that_of_the_others() -> None:
    curves = [line_to(40, 0.0), line_to(100, 2.0), line_to(100, 4.0)]
    band = band_curve(curves, (0, 100), 0.0)
    assert band is not None
    assert set(band.mean[band.xs <= 40].round(9)) == {2.0}
    assert set(band.mean[band.xs > 40].round(9)) == {3.0}
    assert ends(curves) == [(40, 2)]
    assert band.extent == (0, 100)


def test_runs_that_end_almost_together_leave_no_step_at_the_end() -> None:
    curves = [line_to(99.2, 0.0), line_to(99.5, 2.0), line_to(100, 40.0)]
    band = band_curve(curves, (0, 100), 0.0)
    assert band is not None
    assert band.extent == (0, 99.2)
    assert set(band.mean.round(9)) == {14.0}
    assert ends(curves) == []


def test_band_begins_where_all_have_begun_and_is_nothing_where_none_is() -> None:
    curves = [line_to(100, 0.0), line_to(100, 2.0, first=10)]
    band = band_curve(curves, (0, 100), 0.5)
    assert band is not None
    assert band.extent[0] == 10
    assert band_curve(curves, (200, 300), 0.0) is None
    assert band_curve([], (0, 1), 0.0) is None


def test_values_that_are_not_finite_are_read_over() -> None:
    xs = np.arange(5.0)
    band = band_curve([plain_curve(xs, np.array([0, np.nan, 2, np.inf, 4])), plain_curve(xs, xs)], (0, 4), 0.0)
    assert band is not None
    np.testing.assert_allclose(band.mean, band.xs)


@pytest.fixture
def seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """Three runs of one configuration and one of another."""
    monkeypatch.chdir(tmp_path)
    for number, goal in enumerate((300.0, 360.0, 450.0), start=1):
        record(Path("results"), f"walker-{number}", goal, hours_ago=number, ends=number < 3)
    record(Path("results"), "bold", 200.0, hours_ago=9, learning_rate="0.001")
    return Archive(Path("results"))


async def compared(screen: Driven) -> str:
    """As soon as every run was read and is in every pane."""
    await screen.until(lambda text: "range" in text and "reading" not in text and "not read yet" not in text)
    return await screen.text()


@pytest.mark.parametrize(("name", "size"), [("80x24", (80, 24)), ("120x40", (120, 40))])
async def test_groups_look_as_they_should(name: str, size: tuple[int, int], seeds: Archive) -> None:
    async with Driven(scenes.healthy(1).view(), size, opened="runs", runs=seeds) as screen:
        await screen.until("bold")
        await screen.press("J")
        await screen.until("walker n=3")
        await screen.press("asterisk", "down", "asterisk", "home", "right")
        check(f"runs-grouped-{name}", await screen.press("right"))
        await screen.press("enter")
        check(f"comparison-grouped-{name}", await compared(screen))


async def test_keys_sort_by_the_columns_that_are_shown_and_say_so(seeds: Archive) -> None:
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=seeds) as screen:
        assert "age▲" in await screen.until("bold")
        text = await screen.press("right")
        assert "run▲" in text
        assert text.index("bold") < text.index("walker-1")
        assert "sorted by run, highest first" in (text := await screen.press("I"))
        assert "run▼" in text
        assert text.index("bold") > text.index("walker-1")
        await screen.press("right", "right", "right", "right", "right")
        assert "age▲" not in await screen.text()
        assert "age▲" in await screen.press("right")  # took has no room


async def test_single_runs_and_groups_are_compared_together(seeds: Archive) -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40), opened="runs", runs=seeds) as screen:
        await screen.until("bold")
        await screen.press("asterisk", "J")
        await screen.until("walker n=3")
        await screen.press("home", "asterisk", "enter")
        text = await compared(screen)
        assert "3 runs (1 group)" in text
        assert re.search(r"1 walker-1 +100k", text)
        assert re.search(r"2 walker n=3 +100k", text)
        assert "range" in text
        text = await screen.press("t")
        assert "since the start" in text  # the time of day would part them


async def test_one_key_draws_marked_runs_as_the_mean_of_their_group_and_back(seeds: Archive) -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40), opened="runs", runs=seeds) as screen:
        await screen.until("bold")
        await screen.press("asterisk", *["down", "asterisk"] * 3, "enter")
        text = await screen.until(lambda text: "reading" not in text and "Settings that differ · 1" in text)
        assert "4 runs · Return ·" in text
        singles = [re.search(rf"{label} {name} +100k", text) for label, name in enumerate(("walker-1", "walker-2"), 1)]
        assert all(singles)
        text = await screen.press("J")
        assert "4 runs (1 group) · Return, mean and range" in text
        assert re.search(r"1 walker n=3 +100k", text)  # with the label, and so the color, of its first run
        assert re.search(r"4 bold +100k", text)  # and every other run keeps its own
        text = await screen.press("x")
        assert "standard deviation " in text
        assert re.search(r"of 3 runs, range \d", text)
        text = await screen.press("J")
        assert "4 runs · Return ·" in text
        assert "standard deviation" not in text


async def test_same_key_draws_a_marked_group_as_its_runs_and_back(seeds: Archive) -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40), opened="runs", runs=seeds) as screen:
        await screen.until("bold")
        await screen.press("J")
        await screen.until("walker n=3")
        await screen.press("home", "asterisk", "enter")
        assert "4 runs (1 group)" in await compared(screen)  # with the run on this screen
        text = await screen.press("J")
        assert "4 runs · Return ·" in text
        assert all(re.search(rf"{number + 1} walker-{number} +100k", text) for number in (1, 2, 3))
        assert "4 runs (1 group)" in await screen.press("J")


async def test_group_key_says_why_nothing_can_be_grouped(seeds: Archive) -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40), opened="runs", runs=seeds) as screen:
        await screen.until("bold")
        await screen.press("asterisk", "end", "asterisk", "enter")
        await screen.until(lambda text: "reading" not in text and "Settings that differ · 1" in text)
        assert "no two of these runs differ in nothing but the seed" in await screen.press("J")


async def test_time_of_day_gives_way_to_time_since_the_start_when_runs_are_grouped(seeds: Archive) -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40), opened="runs", runs=seeds) as screen:
        await screen.until("bold")
        await screen.press("asterisk", "down", "asterisk", "enter")
        await screen.until(lambda text: "reading" not in text and "none: all settings are the same" in text)
        assert "by time of day" in await screen.press("t")
        assert "since the start" in await screen.press("J")


def test_deviation_is_that_of_the_runs_that_reach_so_far() -> None:
    curves = [line_to(40, 0.0), line_to(100, 2.0), line_to(100, 4.0)]
    assert deviation_at(curves, (0, 100), 0.0, 20) == (2.0, 3)
    deviation, number = deviation_at(curves, (0, 100), 0.0, 80) or (0.0, 0)
    assert (deviation, number) == (pytest.approx(2**0.5), 2)
    assert deviation_at(curves, (0, 100), 0.0, 100.4) is not None  # half a cell beyond the end
    assert deviation_at(curves[:1], (0, 100), 0.0, 20) is None


async def test_run_without_a_readable_configuration_stands_alone() -> None:
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=FakeRuns(summary("one"), summary("two"))) as screen:
        await screen.until("two")
        text = await screen.press("J")
        assert "by configuration" in text
        assert " one " in text
        assert " two " in text


async def test_click_on_a_title_sorts_by_it_and_again_from_the_other_end(seeds: Archive) -> None:
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=seeds) as screen:
        row = next(at for at, line in enumerate((await screen.until("bold")).splitlines()) if "best ckpt" in line)
        at = (await screen.text()).splitlines()[row].index("best") + 2
        for words in ("best ckpt▼", "best ckpt▲"):
            await screen.pilot.click(offset=(at, row))
            assert words in await screen.text()


async def test_order_is_remembered_whatever_is_opened_next(seeds: Archive, tmp_path: Path) -> None:
    preferences = Preferences(tmp_path / "state")
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=seeds, preferences=preferences) as screen:
        await screen.until("bold")
        await screen.press("right", "I", "J")
    assert Preferences(tmp_path / "state").runs_order() == RunsOrder("run", is_reversed=True, is_grouped=True)
    async with Driven(scenes.nan().view(), opened="runs", runs=seeds, preferences=preferences) as screen:
        assert "run▼" in await screen.until("walker n=3")


@pytest.mark.parametrize("written", ['{"runs": 3}', '{"runs": {"column": "weight"}}', "{}"])
def test_order_that_was_never_chosen_is_the_usual_one(written: str, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(written)
    assert Preferences(tmp_path).runs_order() == RunsOrder()
