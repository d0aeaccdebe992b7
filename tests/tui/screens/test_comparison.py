"""Several runs in one chart: every key, runs that are slow, broken or gone."""

from __future__ import annotations

import csv
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.session.messages import Envelope, EpisodesFinished, ProgressReported, RunStarted
from rl_tui.engine.session.summaries import RunSummary
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.archive import Archive
from rl_tui.tui.charts.threshold import first_at
from rl_tui.tui.runs.browsing import no_view
from rl_tui.tui.runs.comparing import Comparison, RunChoice
from rl_tui.tui.runs.groups import SEED
from rl_tui.tui.screens.comparison import ComparisonScreen
from tests.deadline import DEADLINE_SECONDS
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.recorded import CONFIGURATION, record, some_runs, story_of, write
from tests.tui.snapshots import check

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}


class Open(Driven):
    """A comparison of these runs, opened over the overview."""

    def __init__(
        self, runs: object, *names: str, size: tuple[int, int] = (80, 24), view: RunView | None = None,
        is_ascii: bool = False,
    ):  # fmt: skip
        super().__init__(view or scenes.healthy(2).view(), size, runs=runs, is_ascii=is_ascii)  # type: ignore[arg-type]  # or a fake
        self._names = names

    async def __aenter__(self) -> Open:
        await super().__aenter__()
        chosen = [RunChoice(name, (name,)) for name in self._names]
        self.comparison = ComparisonScreen(self.app.context, "comparison", chosen)
        await self.app.push_screen(self.comparison)
        return self

    async def settled(self) -> str:
        """As soon as nothing is read any more."""
        await self.until(lambda text: "reading" not in text and "Settings that differ" in text)
        return await self.text()  # the last run may have been read between the drawing of the chart and of its legend


@pytest.mark.parametrize("size", ["80x24", "120x40"])
async def test_comparison_looks_as_it_should(size: str, tmp_path: Path) -> None:
    async with Open(some_runs(tmp_path), "bold", "cut-short", "duo", size=SIZES[size]) as screen:
        check(f"comparison-{size}", await screen.settled())


async def test_runs_without_a_return_open_on_the_losses_that_they_report(tmp_path: Path) -> None:
    for run_id, learning_rate in (("one", "0.001"), ("two", "0.003")):
        write(tmp_path, run_id, scenes.cloned(), learning_rate=learning_rate)
    async with Open(Archive(tmp_path), "one", "two", size=(120, 40)) as screen:
        text = await screen.settled()
        assert "Held-Out Cloning Loss + Cloning Loss" in text
        assert re.search(r"1 one .* 0\.\d+", text)
        assert "Held-Out" not in await screen.press("m"), "the next metric"


async def test_comparison_with_the_crosshair_and_without_color_or_unicode(tmp_path: Path) -> None:
    async with Open(some_runs(tmp_path), "bold", "cut-short", size=(120, 40)) as screen:
        await screen.settled()
        check("comparison-crosshair-120x40", await screen.press("x", "left", "left"))


@pytest.mark.parametrize("size", SIZES.values())
async def test_every_run_has_a_line_with_its_figures(size: tuple[int, int], tmp_path: Path) -> None:
    async with Open(some_runs(tmp_path), "bold", "cut-short", size=size) as screen:
        text = await screen.settled()
        assert re.search(r"1 bold +100k +424\.5 +\S+ +424\.5", text)
        assert re.search(r"2 cut-short +100k +-118\.2 ", text)
        assert re.search(r"learning_rate +0\.001 +0\.0003", text)
        assert "batch_size" not in text  # they agree on it


@pytest.mark.parametrize(("size", "is_beside"), [((200, 60), True), ((100, 40), False), ((80, 24), False)])
async def test_tables_stand_side_by_side_where_both_fit(tmp_path: Path, size: tuple[int, int], is_beside: bool) -> None:
    async with Open(some_runs(tmp_path), "bold", "cut-short", size=size) as screen:
        await screen.settled()
        rows = (await screen.text()).splitlines()
        (row,) = [row for row in rows if "Return smoothed" in row]
        assert ("Settings that differ" in row) == is_beside
        assert any("learning_rate" in row for row in rows)
        both_end = [row for row in rows if row.startswith("╰") and row.count("╯") == 2]
        assert len(both_end) == int(is_beside)


async def test_steps_to_a_threshold_are_those_of_the_curve_as_it_is_drawn(tmp_path: Path) -> None:
    async with Open(some_runs(tmp_path), "bold", "cut-short", size=(120, 40)) as screen:
        text = await screen.settled()
        found = re.search(r"Return smoothed 0\.6 · to (\S+): 90% of lowest to highest", text)
        assert found is not None
        assert f"to {found[1]} " in text
        assert re.search(r"2 cut-short +100k +\S+ +- ", text), "it never is that high"
        figure = screen.comparison._curves.drawn()
        assert figure is not None
        first = first_at(figure, figure.curves[0], float(found[1]))
        assert first is not None
        row = re.search(r"1 bold +100k +\S+ +(\S+)k ", text)
        assert row is not None
        assert float(row[1]) == pytest.approx(first / 1000, abs=0.1)
        assert "· to " not in await screen.press("m"), "entropy has nothing to reach"
        await screen.press("m")
        for run in screen.comparison.comparison.runs.values():
            for behavior in run.view.behaviors.values() if run.view is not None else ():
                behavior.reward_threshold = 300.0
        screen.app.context.redraw()
        assert "to 300.0: solved" in await screen.press("s")


@pytest.mark.parametrize("has_run", [True, False])
async def test_keys_of_screens_that_need_a_run_are_offered_only_with_one(tmp_path: Path, has_run: bool) -> None:
    view = scenes.healthy(2).view() if has_run else no_view()
    async with Open(some_runs(tmp_path), "bold", "cut-short", size=(200, 60), view=view) as screen:
        await screen.settled()
        keys = (await screen.text()).splitlines()[-1]
        assert all((word in keys) == has_run for word in ("f chart", "k checkpoints", "l log", "freeze view")), keys
        assert "m metric" in keys
        assert "group" in keys


async def test_own_run_is_shown_as_it_goes_on(tmp_path: Path) -> None:
    async with Open(some_runs(tmp_path), "walker-ppo", "bold") as screen:
        await screen.settled()
        await screen.press("s", "s")
        text = await screen.publish(
            ProgressReported("Walker", 222_000, 222_000, 1.0, 1),
            EpisodesFinished("Walker", 222_000, 1000, 777.0, 777.0, 777.0, 1.0),
        )
        assert re.search(r"1 walker-ppo +222k +777\.0 +222k +777\.0", text)


async def test_screenshot_has_a_table_of_every_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with Open(some_runs(tmp_path / "runs"), "bold", "cut-short", size=(120, 40)) as screen:
        await screen.settled()
        await screen.press("s", "s", "o")  # not smoothed
        await screen.app.workers.wait_for_complete()
        figure = screen.comparison._curves.drawn()
    (file,) = (tmp_path / "state").rglob("*.csv")
    header, *rows = list(csv.reader(file.read_text(encoding="utf-8").splitlines()))
    runs = ("bold/Walker/Return", "cut-short/Walker/Return")
    assert header == ["step", *(f"{run} {name}" for run in runs for name in ("mean", "lowest", "highest"))]
    assert figure is not None
    for column, curve in zip((1, 4), figure.curves, strict=True):
        published = [(float(row[0]), float(row[column])) for row in rows if row[column]]
        assert published == list(zip(curve.xs.tolist(), curve.mean.tolist(), strict=True))


async def test_metric_keys(tmp_path: Path) -> None:
    async with Open(some_runs(tmp_path), "bold", "duo") as screen:
        await screen.settled()
        text = await screen.press("m")
        assert "2 runs · Entropy" in text
        assert "highest" in text
        assert "2 runs · Return" in await screen.press("m")
        assert "Entropy" in await screen.press("M")
        assert "2 runs · Entropy" in await screen.press(*"entr", "enter")


async def test_metric_that_none_has_is_reported(tmp_path: Path) -> None:
    async with Open(some_runs(tmp_path), "bold") as screen:
        await screen.settled()
        screen.comparison.chart_state.metrics = ["Losses/Nothing"]
        text = await screen.text()
        assert "none of these runs reports Nothing" in text
        assert "▸ 1 run ·" in text
        assert "no value" in text
        assert "Return" in await screen.press("m")


async def test_x_axis_smoothing_zoom_and_log_keys_act_on_this_chart_alone(tmp_path: Path) -> None:
    async with Open(some_runs(tmp_path), "bold", "duo", size=(120, 40)) as screen:
        await screen.settled()
        assert "by steps" in await screen.text()
        assert "by time of day" in await screen.press("t")
        assert "since the start" in await screen.press("t")
        assert "smooth 0.9" in await screen.press("s")
        assert "· last 1m45" in await screen.press("plus")
        assert " to " in await screen.press("shift+left")
        assert "· last " in await screen.press("end")
        assert "· last " not in await screen.press("0")
        assert "· last " not in await screen.press("plus", "minus")
        assert "log y" in await screen.press("L")
        await screen.press("S")
        assert "smooth 0.25" in await screen.press(*["backspace"] * 3, *"0.25", "enter")
        assert "smooth 0.25 · y 0 to 100, log y" in await screen.press("B", *["backspace"] * 4, *"0 100", "enter")
        assert "▲ " in await screen.press("L")
        assert "both ends of this y axis are set" in await screen.press("O")
        assert "y from 0, clipped" in await screen.press("B", *["backspace"] * 8, *"0 ..", "enter")
        assert screen.app.context.state.chart.y_ranges == {}
        assert screen.app.context.state.chart.x_axis == "steps"
        assert screen.app.context.state.chart.smoothing == 0.6
        assert screen.app.context.state.chart.window is None


async def test_crosshair_reads_every_run_and_is_copied(tmp_path: Path) -> None:
    archive = some_runs(tmp_path)
    async with Open(archive, "bold", "duo", size=(120, 40)) as screen:
        await screen.settled()
        text = await screen.press("x")
        assert "at 100k" in text
        rows = [re.search(rf"{name} +100k +([\d.]+)", text) for name in ("bold", "duo")]
        assert [float(row[1]) for row in rows if row] == pytest.approx([431.0, 250.0], rel=0.02)
        text = await screen.press(*["left"] * 30)
        assert "at 100k" not in text
        await screen.press("y")
        assert re.fullmatch(r"bold [\d.]+, duo [\d.]+", screen.clipboard)
        assert " at " not in await screen.press("x")


@pytest.mark.parametrize("is_ascii", [False, True])
async def test_legend_shows_how_each_curve_is_drawn_where_color_does_not(
    is_ascii: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with Open(some_runs(tmp_path), "bold", "cut-short", "duo", size=(80, 40), is_ascii=is_ascii) as screen:
        rows = (await screen.settled()).splitlines()
        samples = [next(row for row in rows if f" {number} {name} " in row) for number, name in
                   ((1, "bold"), (2, "cut-short"), (3, "duo"))]  # fmt: skip
        samples = [row.split(str(number))[0].strip("│| ") for number, row in enumerate(samples, start=1)]
    assert samples == (["******", "++++++", "oooooo"] if is_ascii else ["⠤⠤⠤⠤⠤⠤", "⠤ ⠤ ⠤", "⠤⠤⠄ ⠤⠤"])


async def test_settings_that_differ_scroll_and_each_run_has_a_column(tmp_path: Path) -> None:
    archive = some_runs(tmp_path)
    for at, name in enumerate(("bold", "cut-short")):
        path = tmp_path / name / "configuration.yaml"
        many = "".join(f"  extra_{number}: {at}\n" for number in range(20))
        path.write_text(path.read_text().replace("env_settings:\n", "env_settings:\n" + many))
    async with Open(archive, "bold", "cut-short") as screen:
        text = await screen.settled()
        assert "Settings that differ · 21" in text
        assert re.search(r"setting +1 bold +2 cut-short", text)
        assert re.search(r"extra_0 +0 +1", text)
        assert "extra_19" not in text
        text = await screen.press("tab", "end")
        assert re.search(r"extra_19 +0 +1", text)


async def test_drawn_seed_is_the_first_that_was_drawn() -> None:
    class Resumed(Endless):
        def configuration(self, name: str) -> str:
            return super().configuration(name).replace("  num_envs: 8", "  num_envs: 8\n  seed: -1")

        def events(self, name: str) -> Iterator[Envelope]:
            story = story_of(name, scenes.START, 400.0, ("Walker",), ends=False)
            story.publish(RunStarted(name, name, 77, "cpu", True, {}))
            yield from story.published

    comparison = Comparison([RunChoice("a", ("a",))], "")
    await comparison.read(Resumed())
    assert comparison.runs["a"].settings[SEED] == "1"


async def test_run_that_ended_earlier_has_no_value_further_on(tmp_path: Path) -> None:
    async with Open(some_runs(tmp_path), "bold", "walker-ppo") as screen:
        await screen.settled()
        assert re.search(r"1 bold +100k +no value ", await screen.press("x"))


async def test_every_behavior_of_each_run_on_demand(tmp_path: Path) -> None:
    async with Open(some_runs(tmp_path), "bold", "duo", size=(120, 40)) as screen:
        await screen.settled()
        text = await screen.press("b")
        assert all(words in text for words in ("1 bold Walker", "2 duo Walker", "2 duo Crawler"))
        assert "duo Crawler" not in await screen.press("b")
        assert "duo Crawler" in await screen.press("2")  # the selected behavior, where a run has it
    async with Open(some_runs(tmp_path / "more"), "bold", "cut-short") as screen:
        await screen.settled()
        assert "only one behavior" in await screen.press("b")


async def test_unreadable_runs_are_reported_beside_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results = Path("results")
    archive = some_runs(results)
    events = results / "bold" / "events.jsonl"
    lines = events.read_text().splitlines(keepends=True)
    events.write_text("".join(lines[: len(lines) // 2]) + "\x1b[31mnonsense\n")
    (results / "duo" / "events.jsonl").unlink()
    async with Open(archive, "bold", "duo", "cut-short", "gone", size=(120, 40)) as screen:
        text = await screen.settled()
        assert re.search(r"1 bold +50\.0k +20\d\.\d .*\n.* ! results/bold/events\.jsonl:89: ", text)
        assert re.search(r"2 duo +✗ .*no such file", text)
        assert re.search(r"3 cut-short +100k", text)
        assert re.search(r"4 gone +✗ gone: no such run in results", text)


async def test_nothing_readable_at_all(tmp_path: Path) -> None:
    async with Open(Archive(tmp_path), "gone", "neither") as screen:
        assert "none of these runs can be read" in await screen.settled()
        for key in ("m", "M", "escape", "x", "plus", "left", "t", "y", "b", "0", "end"):
            await screen.press(key)


class Endless:
    """Runs whose events never end; stopped: set once they are no longer read."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def runs(self) -> Sequence[RunSummary]:
        """None."""
        return []

    def configuration(self, name: str) -> str:
        """Any."""
        return CONFIGURATION.format(behavior="Walker", learning_rate="1", run_id=name)

    def events(self, name: str) -> Iterator[Envelope]:
        """Of a run that trains on and on."""
        try:
            yield from story_of(name, scenes.START, 400.0, ("Walker",), ends=False).published
            number, step = 10**6, 100_000
            while True:
                number, step = number + 1, step + 1
                yield Envelope(number, scenes.START + step, EpisodesFinished("Walker", step, 1, 1.0, 1.0, 1.0, 1.0))
        finally:
            self.stopped.set()


async def test_keys_work_while_a_long_run_is_read_and_closing_ends_the_reading(tmp_path: Path) -> None:
    runs = Endless()
    async with Open(runs, "endless", "walker-ppo") as screen:
        text = await screen.until("events so far")
        assert "◌ reading" in text
        assert re.search(r"2 walker-ppo +160k", text)
        assert "by time of day" in await screen.press("t")
        assert "smooth 0.9" in await screen.press("s")
        await screen.press("escape")
        assert runs.stopped.wait(DEADLINE_SECONDS)


async def test_memory_of_a_long_run_is_bounded() -> None:
    class Long(Endless):
        def events(self, name: str) -> Iterator[Envelope]:
            for number, envelope in enumerate(super().events(name)):
                if number == 20_000:
                    return
                yield envelope

    comparison = Comparison([RunChoice("long", ("long",))], "")
    await comparison.read(Long())
    view = comparison.runs["long"].view
    assert view is not None
    assert len(view.behaviors["Walker"].returns) <= 4096
    assert comparison.runs["long"].num_read == 20_000


async def test_problem_of_a_configuration_costs_only_the_settings() -> None:
    class Unconfigured(Endless):
        def events(self, name: str) -> Iterator[Envelope]:
            yield from story_of(name, scenes.START, 400.0, ("Walker",), ends=True).published

        def configuration(self, name: str) -> str:
            raise ConfigError(f"{name}: no configuration")

    async with Open(Unconfigured(), "bare", "bold") as screen:
        text = await screen.settled()
        assert re.search(r"1 bare +100k", text)


async def test_resumed_run_and_hostile_names_break_nothing(tmp_path: Path) -> None:
    record(tmp_path, "x" * 60, 1.0, behaviors=("\x1b[31mred\u202e" * 9,))
    async with Open(Archive(tmp_path), "x" * 60, "x" * 60, size=(60, 15)) as screen:
        text = await screen.settled()
        assert not any(sign in text for sign in "\x1b\u202e")
