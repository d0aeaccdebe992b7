"""The demo and a replay as whole programs on a terminal: no engine, no files, and the terminal restored."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from rl_tui.engine.session.codec import encode
from rl_tui.tui.demo.recordings import Recordings
from tests.end_to_end.program import terminal
from tests.pseudo_terminal import PseudoTerminal

NOW = 1_795_000_000.0


def assert_terminal_was_given_back(screen: PseudoTerminal) -> None:
    for sequence in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l"):
        assert sequence in screen.raw
    assert b"Traceback" not in screen.raw


def test_demo_shows_hours_of_training_follows_commands_and_writes_nothing(tmp_path: Path) -> None:
    with terminal("demo", folder=tmp_path) as screen:
        screen.wait_for("TRAINING 3/3")
        assert "demo 10x" in screen.text()
        screen.wait_for("SoccerTwos")
        screen.press("c")
        screen.wait_for(r"checkpoint Walker.*recorded, not written: demo/Walker/checkpoints/Walker-")
        screen.press("P")
        screen.wait_for("PAUSED")
        screen.press("q")
        screen.wait_for("(?i)stay")
        screen.press("s")
        assert screen.wait() == 0
        assert_terminal_was_given_back(screen)
    assert list(tmp_path.iterdir()) == []


def test_demo_that_is_stopped_without_saving_is_not_reported_as_done(tmp_path: Path) -> None:
    with terminal("demo", folder=tmp_path) as screen:
        screen.wait_for("TRAINING 3/3")
        screen.press("q")
        screen.wait_for("(?i)stay")
        screen.wait_for("nothing is lost in a demo")
        screen.press("k")  # asks no second time
        assert screen.wait() == 130
        assert_terminal_was_given_back(screen)


def test_signal_ends_the_demo_as_it_ends_a_run(tmp_path: Path) -> None:
    with terminal("demo", folder=tmp_path) as screen:
        screen.wait_for("TRAINING")
        screen.process.send_signal(signal.SIGTERM)
        assert screen.wait() == 143
        assert_terminal_was_given_back(screen)


@pytest.mark.slow
def test_demo_runs_to_its_end_and_the_screen_stays(tmp_path: Path) -> None:
    with terminal("demo", "--speed", "5000", folder=tmp_path) as screen:
        screen.wait_for("demo ended")
        screen.wait_for("STOPPED")
        screen.press("q")
        assert screen.wait() == 0


def test_unknown_theme_is_refused_by_name(tmp_path: Path) -> None:
    with terminal("demo", "--theme", "plaid", folder=tmp_path) as screen:
        assert screen.wait() == 2
        assert b"--theme: must be one of" in screen.raw


def test_no_mouse_leaves_the_mouse_to_the_terminal(tmp_path: Path) -> None:
    with terminal("demo", "--no-mouse", folder=tmp_path) as screen:
        screen.wait_for("TRAINING")
        assert b"\x1b[?1000h" not in screen.raw
    with terminal("demo", folder=tmp_path) as screen:
        screen.wait_for("TRAINING")
        assert b"\x1b[?1000h" in screen.raw


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A folder with a run of some hours in `results`."""
    folder = tmp_path / "results" / "all-three"
    folder.mkdir(parents=True)
    events = Recordings(NOW, lambda: NOW).events("all-three")
    (folder / "events.jsonl").write_text("".join(encode(envelope) + "\n" for envelope in events))
    return tmp_path


def test_replay_goes_at_any_speed_to_the_end_and_stays(recorded: Path) -> None:
    with terminal("replay", "all-three", "--speed", "0", folder=recorded) as screen:
        screen.wait_for("replay 0% stands still")
        screen.press(">")
        screen.wait_for(r"replay \d+% 1x")
        for _ in range(8):
            screen.press(">")
        screen.wait_for("replay ended")
        screen.wait_for("FAILED")
        screen.press("q")
        assert screen.wait() == 0
        assert_terminal_was_given_back(screen)


def test_replay_ends_at_once_and_controls_nothing(recorded: Path) -> None:
    with terminal("replay", "results/all-three", folder=recorded) as screen:
        screen.wait_for("TRAINING")
        screen.wait_for(r"replay \d+% 300x")  # hours in about a minute
        screen.press("c")
        screen.wait_for("nothing to control")
        screen.press("q")
        assert screen.wait() == 0


def test_signal_ends_a_replay(recorded: Path) -> None:
    with terminal("replay", "all-three", folder=recorded) as screen:
        screen.wait_for("TRAINING")
        screen.process.send_signal(signal.SIGTERM)
        assert screen.wait() == 0
        assert_terminal_was_given_back(screen)


def test_replay_of_an_unknown_run_is_refused_by_name(recorded: Path) -> None:
    with terminal("replay", "all-tree", folder=recorded) as screen:
        assert screen.wait() == 2
        assert b"all-tree" in screen.raw
        assert b"all-three" in screen.raw
