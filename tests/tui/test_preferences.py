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
from rl_tui.tui.state.preferences import MOST_VIEWS, Preferences, SavedView, to_json
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


def recalled(preferences: Preferences, view: RunView) -> ScreenState:
    state = ScreenState()
    saved_view = SavedView(preferences, FakeSession(view).live, state)
    while saved_view.restore():
        pass
    return state


def test_a_run_comes_back_as_it_was_left(tmp_path: Path) -> None:
    preferences, view = Preferences(tmp_path), scenes.healthy(3).view()
    preferences.save_view(RUN, to_json(chosen_state(), "Hopper"))
    state, expected = recalled(preferences, view), chosen_state()
    expected.cursors.clear()
    expected.chart.crosshair = None
    assert state == expected
    assert preferences.pop_problems() == []
    other = scenes.healthy(3).view()
    other.run = RunStarted("other", "results/other", 1, "cpu", False, {})
    assert recalled(preferences, other) == ScreenState()


def test_the_selected_behavior_is_found_by_its_name(tmp_path: Path) -> None:
    """It may stand elsewhere, appear late, or be gone."""
    preferences, story = Preferences(tmp_path), scenes.Story()
    preferences.save_view(RUN, to_json(ScreenState(), "Hopper"))
    story.publish(RunStarted("walker-ppo", str(RUN), 1, "cpu", False, {}))
    view, state = story.view(), ScreenState()
    saved_view = SavedView(preferences, FakeSession(view).live, state)
    assert saved_view.restore()
    assert not saved_view.restore()
    for name in ("Walker", "Hopper"):
        view.behavior(name)
    assert saved_view.restore()
    assert state.selected == 1
    assert not saved_view.restore()


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
    preferences, view = Preferences(tmp_path), scenes.healthy(1).view()
    preferences.save_view(RUN, to_json(chosen_state(), "Walker"))
    (file,) = (tmp_path / "runs").iterdir()
    file.write_bytes(content)
    assert recalled(preferences, view) == ScreenState()
    (problem,) = preferences.pop_problems()
    assert str(file) in problem


@pytest.mark.parametrize("window", [[5.0, 5.0], [7.0, 5.0], [0.0, 1e999]])
def test_a_window_that_is_none_shows_the_whole_run(tmp_path: Path, window: list[float]) -> None:
    preferences = Preferences(tmp_path)
    content = json.loads(to_json(chosen_state(), ""))
    content["state"]["chart"]["window"] = window
    preferences.save_view(RUN, json.dumps(content))
    state = recalled(preferences, scenes.healthy(1).view())
    assert state.chart.window is None
    assert state.chart.smoothing == 0.9


def test_a_range_of_the_y_axis_that_is_none_is_left_out(tmp_path: Path) -> None:
    preferences = Preferences(tmp_path)
    state = chosen_state()
    state.chart.clips_outliers = True
    state.chart.y_ranges = {"Return": (0.0, None), "Policy/Entropy": (3.0, 1.0), "Losses/Value Loss": (None, 1e999)}
    preferences.save_view(RUN, to_json(state, "").replace("null]", "null]"))
    chart = recalled(preferences, scenes.healthy(1).view()).chart
    assert chart.clips_outliers
    assert chart.y_ranges == {"Return": (0.0, None)}


def test_a_folder_that_cannot_be_written_is_one_problem(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file is in the way")
    preferences = Preferences(tmp_path / "state")
    preferences.save_theme("ansi")
    assert "cannot be written" in preferences.pop_problems()[0]
    assert preferences.theme() == ""


def test_only_the_newest_runs_are_kept(tmp_path: Path) -> None:
    preferences = Preferences(tmp_path)
    for run in range(MOST_VIEWS):
        preferences.save_view(Path(f"results/{run}"), to_json(ScreenState(), ""))
    for age, file in enumerate(sorted((tmp_path / "runs").iterdir())):
        os.utime(file, (1e9 - age, 1e9 - age))
    oldest = max((tmp_path / "runs").iterdir(), key=lambda file: -file.stat().st_mtime)
    preferences.save_view(Path("results/last"), to_json(ScreenState(), "last"))
    assert len(list((tmp_path / "runs").iterdir())) == MOST_VIEWS
    assert not oldest.exists()
    assert preferences.load_view(Path("results/last")) == (ScreenState(), "last")


def test_nothing_is_written_without_a_change(tmp_path: Path) -> None:
    preferences, view, state = Preferences(tmp_path), scenes.healthy(2).view(), ScreenState()
    saved_view = SavedView(preferences, FakeSession(view).live, state)
    saved_view.save()
    assert not (tmp_path / "runs").exists()
    saved_view.restore()
    state.selected = 1
    saved_view.save()
    assert preferences.load_view(RUN) == (ScreenState(), "Crawler")


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
        session = FakeSession()
        app = TrainerApp(session, clock=lambda: scenes.START, preferences=Preferences(tmp_path))
        async with app.run_test(size=(120, 40)) as pilot:
            for envelope in story.published:
                session.bus.publish(envelope.event)
            for _ in range(4):  # events, then what was chosen, and then the behavior by its name, one at each tick
                app.tick()
                await pilot.pause()
            state = app.context.state
            if start == 1:
                await pilot.press("3", "s", "T")
            else:
                assert (state.selected, state.chart.smoothing, app.theme) == (2, 0.9, "rl-light")


async def test_views_are_saved_every_minute_and_problems_are_reported(tmp_path: Path) -> None:
    view = scenes.healthy(3).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now, preferences=Preferences(tmp_path))
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))  # one write after the other, so that one can wait for the last
    async with app.run_test(size=(120, 40)) as pilot:
        app.tick()
        await pilot.press("2")
        app._saved_view.save_periodically(1e9)
        await loop.run_in_executor(None, lambda: None)
        assert list(tmp_path.glob("runs/*.json"))
        (tmp_path / "runs").rename(tmp_path / "gone")
        (tmp_path / "runs").write_text("in the way")
        await pilot.press("3")
        app._saved_view.save_periodically(2e9)
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
