"""The folder's runs: what is reported of each, every key, a folder that is empty, slow or unreadable."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.session.messages import Envelope
from rl_tui.engine.session.summaries import BehaviorSummary, Removal, RunSummary
from rl_tui.tui.runs.browsing import no_view
from rl_tui.tui.runs.seeking import Seek
from rl_tui.tui.screens import runs as runs_module
from tests.deadline import DEADLINE_SECONDS
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.recorded import record, some_runs
from tests.tui.snapshots import check

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}


class FakeRuns:
    """Runs without a folder. gate: while it is closed, no call returns."""

    def __init__(self, *found: RunSummary, problem: str = "") -> None:
        self.found, self.problem = list(found), problem
        self.gate = threading.Event()
        self.gate.set()

    def runs(self) -> Sequence[RunSummary]:
        """As given, or the problem."""
        assert self.gate.wait(DEADLINE_SECONDS)
        if self.problem:
            raise ConfigError(self.problem)
        return list(self.found)

    def events(self, name: str) -> Iterator[Envelope]:
        """None can be read."""
        raise ConfigError(f"{name}: no events")

    def configuration(self, name: str) -> str:
        """None can be read."""
        raise ConfigError(f"{name}: no configuration")

    def preview_removal(self, name: str) -> Removal:
        """None can be removed."""
        raise ConfigError(f"{name}: no folder")

    def remove(self, name: str) -> None:
        """None can be removed."""
        raise ConfigError(f"{name}: no folder")

    def resume_command(self, name: str) -> tuple[str, ...]:
        """None can go on."""
        raise ConfigError(f"{name}: no folder")

    def evaluate_command(self, name: str) -> tuple[str, ...]:
        """None can be played."""
        raise ConfigError(f"{name}: no folder")


def summary(run_id: str, **changes: object) -> RunSummary:
    behaviors = (BehaviorSummary("Walker", "ppo", 160_000, 500_000, 421.0, 419.0),)
    published: dict[str, object] = {
        "run_id": run_id, "path": f"results/{run_id}", "state": "finished", "is_alive": False,
        "started_at": scenes.START, "last_event_at": scenes.START + 60, "elapsed_seconds": 60.0,
        "behaviors": behaviors, "exit_code": 0, "note": "",
    }  # fmt: skip
    return RunSummary(**published | changes)  # type: ignore[arg-type]  # every field stands there


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose path is the same everywhere."""
    monkeypatch.chdir(tmp_path)
    return Path("results")


@pytest.mark.parametrize("size", ["80x24", "120x40"])
async def test_runs_look_as_they_should(size: str, results: Path) -> None:
    async with Driven(scenes.healthy(2).view(), SIZES[size], opened="runs", runs=some_runs(results)) as screen:
        await screen.until("cut-short")
        await screen.press("down", "asterisk", "down", "asterisk")
        check(f"runs-{size}", await screen.text())


@pytest.mark.parametrize("size", SIZES.values())
async def test_every_run_is_reported_with_its_figures(size: tuple[int, int], results: Path) -> None:
    async with Driven(scenes.healthy(1).view(), size, runs=some_runs(results)) as screen:
        await screen.press("r")
        text = await screen.until("cut-short")
        rows = {name: next(row for row in text.splitlines() if f" {name}" in row) for name in ("bold", "cut-short")}
        assert "✓ finished" in rows["bold"]
        assert "100k  20%" in rows["bold"]
        assert "! interrupted" in rows["cut-short"]
        assert ("walker-ppo (this)" in text) == (size != (80, 24))
        assert "; on this screen" in text
        assert "Walker +1" in next(row for row in text.splitlines() if " duo " in row)
        await screen.press("escape")
        assert screen.screen.name == "overview"


async def test_details_follow_the_cursor(results: Path) -> None:
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=some_runs(results)) as screen:
        await screen.until("cut-short")
        text = await screen.press("down", "down")
        assert "path       results/cut-short" in text
        assert "interrupted: its process is gone without reporting an end" in text
        text = await screen.press("end")
        assert "Crawler    PPO, step 100k of 500k" in text


async def test_marks_are_numbered_taken_back_and_at_most_six() -> None:
    fakes = FakeRuns(*(summary(f"run-{number}") for number in range(8)))
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=fakes) as screen:
        await screen.until("run-7")
        text = await screen.press("asterisk", *["down", "asterisk"] * 5)
        assert "6 marked" in text
        assert "6 run-5" in text
        assert "6 runs are marked already" in await screen.press("down", "asterisk")
        text = await screen.press("home", "asterisk")
        assert "5 marked" in text
        assert "1 run-1" in text


async def test_cursor_stays_where_a_run_is_marked_and_the_same_key_takes_the_mark_back() -> None:
    fakes = FakeRuns(*(summary(f"run-{number}") for number in range(3)))
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=fakes) as screen:
        await screen.until("run-2")
        assert "▸ 1 run-0" in await screen.press("asterisk")
        text = await screen.press("asterisk")
        assert "▸   run-0" in text
        assert "marked" not in text
        assert "▸ 1 run-0" in await screen.press("asterisk", "right", "I")  # also where the order is another


async def test_keys_line_says_that_enter_compares_once_something_is_marked(results: Path) -> None:
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=some_runs(results)) as screen:
        assert "enter open" in await screen.until("cut-short")
        assert "enter compare" in await screen.press("asterisk")
        assert "enter compare" in await screen.press("down", "asterisk")
        await screen.press("escape", "r")
        assert "enter compare" in await screen.until("cut-short")  # the marks are kept
        assert "enter open" in await screen.press("asterisk", "up", "asterisk")


async def test_time_of_a_resumed_run_is_that_since_it_was_resumed_and_says_so() -> None:
    resumed = summary("resumed", started_at=scenes.START - 3600, elapsed_seconds=30.0)
    async with Driven(scenes.healthy(1).view(), (120, 40), opened="runs", runs=FakeRuns(resumed)) as screen:
        text = await screen.until("resumed")
        assert next(row for row in text.splitlines() if " resumed " in row).rstrip("│ ").endswith(" 30s+")
        assert "after 30s since it was resumed" in text
    whole = summary("whole")
    async with Driven(scenes.healthy(1).view(), (120, 40), opened="runs", runs=FakeRuns(whole)) as screen:
        text = await screen.until("whole")
        assert "1m00+" not in text
        assert "since it was resumed" not in text


async def test_ages_go_on_after_the_end_of_the_run_on_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = scenes.START + 4000.0
    monkeypatch.setattr("rl_tui.tui.panes.run_list.time.time", lambda: wall)
    async with Driven(scenes.finished().view(), opened="runs", runs=FakeRuns(summary("run-0"))) as screen:
        await screen.until("run-0")
        assert "1h05" in await screen.text()
        wall += 3600
        assert "2h05" in await screen.press("asterisk")


async def test_filter_keeps_what_matches_and_copy_takes_the_path(results: Path) -> None:
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=some_runs(results)) as screen:
        await screen.until("cut-short")
        text = await screen.press("slash", *"inter", "enter")
        assert "bold" not in text
        await screen.press("y")
        assert screen.clipboard == "results/cut-short"
        assert "bold" in await screen.press("escape")


async def test_enter_compares_the_run_below_the_cursor_with_that_on_screen(results: Path) -> None:
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=some_runs(results)) as screen:
        await screen.until("cut-short")
        assert "2 runs" in await screen.press("down", "enter")
        assert screen.screen.name == "comparison"
        await screen.press("escape")
        assert screen.screen.name == "runs"
        assert "3 runs" in await screen.press("asterisk", "down", "asterisk", "home", "asterisk", "enter")


async def test_screens_opened_from_a_comparison_lead_back_to_the_overview(results: Path) -> None:
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=some_runs(results)) as screen:
        await screen.until("cut-short")
        await screen.press("down", "enter", "r")
        assert screen.screen.name == "runs"
        await screen.press("enter", "l")
        assert screen.screen.name == "log"
        await screen.press("escape")
        assert screen.screen.name == "overview"


async def test_new_run_appears_by_itself_and_the_cursor_stays(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "READ_SECONDS", 0.05)
    monkeypatch.setattr(runs_module, "READING_SHARE", 0.0)
    archive = some_runs(results)
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=archive) as screen:
        await screen.until("cut-short")
        await screen.press("down")
        record(results, "brand-new", hours_ago=0)
        text = await screen.until("brand-new")
        assert next(row for row in text.splitlines()[2:] if row.startswith("▸")).lstrip("▸ ").startswith("bold")


async def test_keys_work_while_the_folder_is_read() -> None:
    fakes = FakeRuns(summary("slow"))
    fakes.gate.clear()
    async with Driven(scenes.healthy(1).view(), runs=fakes) as screen:
        assert "reading the folder" in await screen.press("r")
        assert "no run is selected" in await screen.press("asterisk")
        assert "no run is selected" in await screen.press("enter")
        assert "no run is selected" in await screen.press("y")
        await screen.press("escape", "r")
        fakes.gate.set()
        assert "slow" in await screen.until("finished")


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        (None, "this run has no folder here"),
        (FakeRuns(), "no run in this folder yet"),
        (FakeRuns(problem="results: cannot be read (\x1b[31mPermission denied)"), "(Permission denied)"),
    ],
)
async def test_empty_list_says_why(runs: FakeRuns | None, words: str) -> None:
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=runs) as screen:
        await screen.until(words)


@pytest.mark.parametrize("size", [(20, 6), (60, 15), (80, 24), (200, 60)])
async def test_odd_runs_break_nothing(size: tuple[int, int]) -> None:
    long = "a" * 300
    fakes = FakeRuns(
        summary("nothing", behaviors=(), state="unknown", started_at=None, last_event_at=None, elapsed_seconds=None,
                exit_code=None, note="events.jsonl:1: not an event \x1b[2J"),
        summary(long, path=f"/{long}/{long}", is_alive=True, state="training", behaviors=(
            BehaviorSummary("\x1b[31m" + long, "\u202eppo", 10**15, 0, float("nan"), None),)),
    )  # fmt: skip
    async with Driven(scenes.healthy(1).view(), size, opened="runs", runs=fakes) as screen:
        for text in (await screen.text(), await screen.press("down"), await screen.press("asterisk")):
            assert not any(sign in text for sign in "\x1b\u202e")


class Recording:
    """A player whose recording lies in the past."""

    def change_speed(self, by: int) -> str:
        """Never asked."""
        raise AssertionError(by)

    def pause(self) -> str:
        """Never asked."""
        raise AssertionError

    def seek(self, seek: Seek) -> None:
        """Never asked."""
        raise AssertionError(seek)


async def test_ages_are_those_of_the_present_while_a_recording_is_watched() -> None:
    runs = FakeRuns(summary("later", last_event_at=time.time() - 7230))
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=runs, player=Recording()) as screen:
        assert "2h00" in await screen.until("later")


async def test_two_hundred_runs_scroll(results: Path) -> None:
    for number in range(200):
        (results / f"run-{number:03}").mkdir(parents=True)
        (results / f"run-{number:03}" / "configuration.yaml").write_text("behaviors: {}\n")
        os.utime(results / f"run-{number:03}", (1000 + number, 1000 + number))
    archive = some_runs(results)
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=archive) as screen:
        assert "Runs · 204" in await screen.until("cut-short")
        assert "run-000" in await screen.press("end")


async def test_run_of_another_process_is_shown_as_such() -> None:
    other = summary("walker-ppo", state="training", is_alive=True, exit_code=None, process="pid 4242 on tower")
    async with Driven(scenes.healthy(1).view(), (120, 40), opened="runs", runs=FakeRuns(other)) as screen:
        assert "; on this screen; running in another process (pid 4242 on tower)" in await screen.until("on tower")


async def test_key_that_resumes_attaches_to_a_run_that_another_process_trains() -> None:
    other = summary("other", state="training", is_alive=True, exit_code=None, process="pid 4242 on tower")
    async with Driven(no_view(), opened="runs", runs=FakeRuns(other)) as screen:
        await screen.until("other")
        await screen.pilot.press("U")
        assert screen.app.exit_policy.next_command == ("attach", "results/other")
    async with Driven(scenes.healthy(1).view(), opened="runs", runs=FakeRuns(other)) as screen:
        await screen.until("other")
        await screen.press("U")
        assert screen.clipboard == "rl-tui attach results/other"
