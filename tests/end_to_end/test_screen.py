"""The whole program on a terminal: keys, signals, and the terminal given back as it was."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from engine.session.messages import CheckpointSaved, PolicyExported, RunStateChanged
from tests.end_to_end.program import CARTPOLE, Terminal, events_of

ENDLESS = ("--set", "behaviors.CartPole.max_steps=1e8", "--set", "behaviors.CartPole.checkpoint_interval=1e8")
LEFT_ALTERNATE_SCREEN, SHOWN_CURSOR, MOUSE_ON = b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000h"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder with one configuration in it."""
    (tmp_path / "cartpole.yaml").write_text(CARTPOLE)
    return tmp_path


def assert_terminal_was_given_back(terminal: Terminal) -> None:
    for sequence in (LEFT_ALTERNATE_SCREEN, SHOWN_CURSOR):
        assert sequence in terminal.raw
    assert MOUSE_ON not in terminal.raw  # the terminal's own text selection goes on working
    assert b"Traceback" not in terminal.raw


def test_every_key_of_a_session_does_what_it_says(folder: Path) -> None:
    """Pause and go on, save, export, help, leave with a checkpoint; each outcome is shown with its file."""
    with Terminal("cartpole.yaml", *ENDLESS, folder=folder) as terminal:
        terminal.wait_for("CartPole")
        terminal.wait_for("TRAINING")
        terminal.press("p")
        terminal.wait_for("PAUSED")
        terminal.press("c")
        terminal.wait_for(r"CKPT")
        terminal.press("p")
        terminal.wait_for("TRAINING")
        terminal.press("e")
        terminal.wait_for(r"\.onnx")
        terminal.press("?")
        terminal.wait_for("this page")
        terminal.press("?")  # escape and the next key at once would be alt and that key
        terminal.press("q")
        terminal.wait_for("(?i)stay")
        terminal.press("s")
        assert terminal.wait() == 0
        assert_terminal_was_given_back(terminal)
    events = events_of(folder / "results/ppo")
    reasons = [event.reason for event in events if isinstance(event, CheckpointSaved)]
    assert reasons == ["asked", "interrupted"]
    assert any(isinstance(event, PolicyExported) for event in events)


def test_screen_stays_after_training_and_q_leaves_with_its_exit_code(folder: Path) -> None:
    with Terminal("cartpole.yaml", folder=folder, columns=80, rows=24) as terminal:
        terminal.wait_for("FINISHED")
        terminal.press("q")
        assert terminal.wait() == 0
        assert_terminal_was_given_back(terminal)


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=str)
def test_signal_saves_and_gives_the_terminal_back(folder: Path, number: signal.Signals, exit_code: int) -> None:
    with Terminal("cartpole.yaml", *ENDLESS, folder=folder) as terminal:
        terminal.wait_for("TRAINING")
        terminal.process.send_signal(number)
        assert terminal.wait() == exit_code
        assert_terminal_was_given_back(terminal)
    assert [e.reason for e in events_of(folder / "results/ppo") if isinstance(e, CheckpointSaved)] == ["interrupted"]


def test_lost_terminal_saves_and_ends(folder: Path) -> None:
    with Terminal("cartpole.yaml", *ENDLESS, folder=folder) as terminal:
        terminal.wait_for("TRAINING")
        terminal.hang_up()
        assert terminal.wait() == 129
    events = events_of(folder / "results/ppo")
    assert [e.reason for e in events if isinstance(e, CheckpointSaved)] == ["interrupted"]
    assert [e for e in events if isinstance(e, RunStateChanged)][-1].exit_code == 129


def test_mistake_found_at_start_is_readable_after_the_screen_is_left(folder: Path) -> None:
    """The run's folder exists, so the run is refused before it begins."""
    (folder / "results/ppo").mkdir(parents=True)
    (folder / "results/ppo/configuration.yaml").write_text("kept\n")
    with Terminal("cartpole.yaml", folder=folder) as terminal:
        terminal.wait_for("--resume")
        terminal.press("q")
        assert terminal.wait() == 2
        assert_terminal_was_given_back(terminal)
        assert b"--resume" in terminal.raw.rpartition(LEFT_ALTERNATE_SCREEN)[2]


def test_redirected_input_means_no_screen(folder: Path) -> None:
    """stdout is a terminal, stdin is not: lines instead of a screen that would wait busily for keys."""
    with Terminal("cartpole.yaml", folder=folder, stdin=subprocess.DEVNULL) as terminal:
        assert terminal.wait() == 0
        assert b"no screen: stdin is not a terminal" in terminal.raw
        assert LEFT_ALTERNATE_SCREEN not in terminal.raw


def test_bug_in_the_screen_saves_the_run_and_shows_where_it_is(folder: Path) -> None:
    """A pane that raises, some frames after training began."""
    (folder / "sitecustomize.py").write_text(BROKEN_SCREEN)
    with Terminal("cartpole.yaml", *ENDLESS, folder=folder) as terminal:
        assert terminal.wait() == 1
        assert b"the picture fell off" in terminal.raw.rpartition(LEFT_ALTERNATE_SCREEN)[2]
    assert [e.reason for e in events_of(folder / "results/ppo") if isinstance(e, CheckpointSaved)] == ["interrupted"]


BROKEN_SCREEN = """\
import tui.app

drawn = tui.app.TrainerApp.redraw


def redraw(app):
    if app.view.state == "training":
        raise RuntimeError("the picture fell off")
    drawn(app)


tui.app.TrainerApp.redraw = redraw
"""
