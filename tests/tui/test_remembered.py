"""What was chosen comes back at the next start, run by run, and no file can do harm."""

from __future__ import annotations

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rl_tui.engine.session.messages import RunStarted
from rl_tui.engine.session.view import RunView
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.state.choices import ScreenState
from rl_tui.tui.state.preferences import RUNS_KEPT, Memory, RunMemory, as_text
from rl_tui.tui.state.user_folders import config_folder, seen_from_here, state_folder
from tests.fakes import FakeSession
from tests.tui import scenes

RUN = Path("results/walker-ppo")


def chosen_state() -> ScreenState:
    state = ScreenState(selected=2, filters={"log": "ckpt|best"}, log_level="warning", log_is_of_selected=True)
    state.cursors["log"] = "7"
    state.chart.metrics, state.chart.window, state.chart.is_live = ["Policy/Entropy", "Return"], (1000.0, 2.5e6), False
    state.chart.crosshair, state.chart.smoothing, state.chart.is_log = 5.0, 0.9, True
    return state


def recalled(memory: Memory, view: RunView) -> ScreenState:
    state = ScreenState()
    run_memory = RunMemory(memory, view, state)
    while run_memory.recall():
        pass
    return state


def test_a_run_comes_back_as_it_was_left(tmp_path: Path) -> None:
    memory, view = Memory(tmp_path), scenes.healthy(3).view()
    memory.keep(RUN, as_text(chosen_state(), "Hopper"))
    state, expected = recalled(memory, view), chosen_state()
    expected.cursors.clear()
    expected.chart.crosshair = None
    assert state == expected
    assert memory.take_problems() == []
    other = scenes.healthy(3).view()
    other.run = RunStarted("other", "results/other", 1, "cpu", False, {})
    assert recalled(memory, other) == ScreenState()


def test_the_selected_behavior_is_found_by_its_name(tmp_path: Path) -> None:
    """It may stand elsewhere, appear late, or be gone."""
    memory, story = Memory(tmp_path), scenes.Story()
    memory.keep(RUN, as_text(ScreenState(), "Hopper"))
    story.tell(RunStarted("walker-ppo", str(RUN), 1, "cpu", False, {}))
    view, state = story.view(), ScreenState()
    run_memory = RunMemory(memory, view, state)
    assert run_memory.recall()
    assert not run_memory.recall()
    for name in ("Walker", "Hopper"):
        view.behavior(name)
    assert run_memory.recall()
    assert state.selected == 1
    assert not run_memory.recall()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"\xff\xfe",
        b"[1, 2]",
        b'{"behavior": "x"}',
        b'{"behavior": "x", "state": {"chart": {"smoothing": "much"}}}',
        b'{"behavior": "x", "state": {"log_level": "loud"}}',
        b'{"state": {"filters": {"log": 3}}}',
        b" " * 70_000,
        b"[" * 5000,
    ],
)
def test_a_bad_file_counts_for_nothing_and_is_one_problem(tmp_path: Path, content: bytes) -> None:
    memory, view = Memory(tmp_path), scenes.healthy(1).view()
    memory.keep(RUN, as_text(chosen_state(), "Walker"))
    (file,) = (tmp_path / "runs").iterdir()
    file.write_bytes(content)
    assert recalled(memory, view) == ScreenState()
    (problem,) = memory.take_problems()
    assert str(file) in problem


@pytest.mark.parametrize("window", [[5.0, 5.0], [7.0, 5.0], [0.0, 1e999]])
def test_a_window_that_is_none_shows_the_whole_run(tmp_path: Path, window: list[float]) -> None:
    memory = Memory(tmp_path)
    content = json.loads(as_text(chosen_state(), ""))
    content["state"]["chart"]["window"] = window
    memory.keep(RUN, json.dumps(content))
    state = recalled(memory, scenes.healthy(1).view())
    assert state.chart.window is None
    assert state.chart.smoothing == 0.9


def test_a_range_of_the_y_axis_that_is_none_is_left_out(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    state = chosen_state()
    state.chart.clips_outliers = True
    state.chart.y_ranges = {"Return": (0.0, None), "Policy/Entropy": (3.0, 1.0), "Losses/Value Loss": (None, 1e999)}
    memory.keep(RUN, as_text(state, "").replace("null]", "null]"))
    chart = recalled(memory, scenes.healthy(1).view()).chart
    assert chart.clips_outliers
    assert chart.y_ranges == {"Return": (0.0, None)}


def test_a_folder_that_cannot_be_written_is_one_problem(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file is in the way")
    memory = Memory(tmp_path / "state")
    memory.keep_theme("ansi")
    assert "cannot be written" in memory.take_problems()[0]
    assert memory.theme() == ""


def test_only_the_newest_runs_are_kept(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    for run in range(RUNS_KEPT):
        memory.keep(Path(f"results/{run}"), as_text(ScreenState(), ""))
    for age, file in enumerate(sorted((tmp_path / "runs").iterdir())):
        os.utime(file, (1e9 - age, 1e9 - age))
    oldest = max((tmp_path / "runs").iterdir(), key=lambda file: -file.stat().st_mtime)
    memory.keep(Path("results/last"), as_text(ScreenState(), "last"))
    assert len(list((tmp_path / "runs").iterdir())) == RUNS_KEPT
    assert not oldest.exists()
    assert memory.recall(Path("results/last")) == (ScreenState(), "last")


def test_nothing_is_written_without_a_change(tmp_path: Path) -> None:
    memory, view, state = Memory(tmp_path), scenes.healthy(2).view(), ScreenState()
    run_memory = RunMemory(memory, view, state)
    run_memory.keep()
    assert not (tmp_path / "runs").exists()
    run_memory.recall()
    state.selected = 1
    run_memory.keep()
    assert memory.recall(RUN) == (ScreenState(), "Crawler")


def test_the_folders_are_those_of_the_standard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "relative/ones/do/not/count")
    assert config_folder() == tmp_path / ".config" / "rl-tui"
    assert state_folder() == tmp_path / ".local" / "state" / "rl-tui"
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/mine")
    assert config_folder() == Path("/etc/mine/rl-tui")


async def test_what_is_chosen_by_keys_comes_back_at_the_next_start(tmp_path: Path) -> None:
    for start in (1, 2):
        story = scenes.healthy(3)
        session, view = FakeSession(), RunView()
        app = TrainerApp(session, view, clock=lambda: scenes.START, memory=Memory(tmp_path))
        async with app.run_test(size=(120, 40)) as pilot:
            for envelope in story.told:
                session.bus.publish(envelope.event)
            app.tick()
            await pilot.pause()
            app.tick()
            state = app.context.state
            if start == 1:
                await pilot.press("3", "s", "T")
            else:
                assert (state.selected, state.chart.smoothing, app.theme) == (2, 0.9, "rl-light")


async def test_the_minute_is_kept_too_and_problems_are_told(tmp_path: Path) -> None:
    view = scenes.healthy(3).view()
    app = TrainerApp(FakeSession(), view, clock=lambda: view.now, memory=Memory(tmp_path))
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))  # one write after the other, so that one can wait for the last
    async with app.run_test(size=(120, 40)) as pilot:
        app.tick()
        await pilot.press("2")
        app._run_memory.keep_seldom(1e9)
        await loop.run_in_executor(None, lambda: None)
        assert list(tmp_path.glob("runs/*.json"))
        (tmp_path / "runs").rename(tmp_path / "gone")
        (tmp_path / "runs").write_text("in the way")
        await pilot.press("3")
        app._run_memory.keep_seldom(2e9)
        while not any("cannot be written" in line.message for line in view.log):
            await pilot.pause(0.01)
            app.tick()


@pytest.mark.parametrize(
    ("path", "here", "shown"),
    [
        ("/home/me/results/a", "/home/me", "results/a"),
        ("/home/me/results/a", "/home/me/", "results/a"),
        ("/home/me/results/a", "/", "home/me/results/a"),
        ("/home/me/results/a", "/home/m", "/home/me/results/a"),
        ("/home/me/results/a", "", "/home/me/results/a"),
        ("results/a", "/home/me", "results/a"),
    ],
)
def test_path_below_the_folder_of_the_start_is_shown_from_there(
    path: str, here: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PWD", here)
    assert seen_from_here(path) == shown
