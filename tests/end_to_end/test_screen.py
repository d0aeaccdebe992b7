"""The whole program on a terminal: keys, signals, and the terminal restored."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import termios
import time
from pathlib import Path

import pytest

from rl_tui.engine.session.messages import CheckpointSaved, ControllerChanged, PolicyExported, RunStateChanged
from rl_tui.engine.storage.file_names import LOCK
from tests.deadline import wait_until
from tests.end_to_end.program import CARTPOLE, events_of, run, terminal, wait_for_summary
from tests.pseudo_terminal import PseudoTerminal

# In an environment that takes its time, so that what trains behind the screen needs little of the machine.
ENDLESS = (
    "--env=slow:CartPole",
    *("--set=behaviors.CartPole.max_steps=1e8", "--set=behaviors.CartPole.checkpoint_interval=1e8"),
    "--set=behaviors.CartPole.summary_freq=100",
)
SLOW = """\
import time

from gymnasium.envs.classic_control.cartpole import CartPoleEnv


class CartPole(CartPoleEnv):
    def step(self, action):
        time.sleep(0.001)
        return super().step(action)
"""
LEFT_ALTERNATE_SCREEN, SHOWN_CURSOR, MOUSE_OFF = b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder with one configuration and one environment in it."""
    (tmp_path / "cartpole.yaml").write_text(CARTPOLE)
    (tmp_path / "slow.py").write_text(SLOW)
    return tmp_path


def assert_terminal_was_given_back(screen: PseudoTerminal) -> None:
    for sequence in (LEFT_ALTERNATE_SCREEN, SHOWN_CURSOR, MOUSE_OFF):
        assert sequence in screen.raw
    assert b"Traceback" not in screen.raw


def lacks_canonical_input(screen: PseudoTerminal) -> bool:
    """Whether lines typed at the shell would not be echoed and edited."""
    return not screen.local_modes() & termios.ICANON or not screen.local_modes() & termios.ECHO


def test_keys_of_a_session_have_the_documented_effect(folder: Path) -> None:
    """Pause and resume, save, export, help, leave with a checkpoint; each outcome is shown with its file."""
    with terminal("cartpole.yaml", *ENDLESS, folder=folder) as screen:
        screen.wait_for("CartPole")
        screen.wait_for("TRAINING")
        screen.press("p")
        screen.wait_for("PAUSED")
        screen.press("c")
        screen.wait_for(r"CKPT")
        screen.press("p")
        screen.wait_for("TRAINING")
        wait_for_summary(folder / "results/cartpole", after="CheckpointSaved")  # there is something new to save
        screen.press("e")
        screen.wait_for(r"\.onnx")
        screen.press("?")
        screen.wait_for("Keys for")
        screen.press("escape")
        screen.wait_for("Keys for", absent=True)
        screen.press("q")
        screen.wait_for("(?i)stay")
        screen.press("s")
        assert screen.wait() == 0
        assert_terminal_was_given_back(screen)
        *_, last = screen.raw.decode().split("\r\n")[:-1]
        assert last.startswith("resume with: rl-tui cartpole.yaml ")
        assert last.endswith(" --run-id cartpole --resume")
    events = events_of(folder / "results/cartpole")
    reasons = [event.reason for event in events if isinstance(event, CheckpointSaved)]
    assert reasons == ["asked", "interrupted"]
    assert any(isinstance(event, PolicyExported) for event in events)


def test_screen_stays_after_training_and_q_leaves_with_its_exit_code(folder: Path) -> None:
    with terminal("cartpole.yaml", folder=folder, size=(80, 24), from_cold=True) as screen:
        screen.wait_for("FINISHED")
        screen.press("q")
        assert screen.wait() == 0
        assert_terminal_was_given_back(screen)


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=str)
def test_signal_saves_and_restores_the_terminal(folder: Path, number: signal.Signals, exit_code: int) -> None:
    with terminal("cartpole.yaml", *ENDLESS, folder=folder) as screen:
        screen.wait_for("TRAINING")
        wait_for_summary(folder / "results/cartpole")
        screen.process.send_signal(number)
        assert screen.wait() == exit_code
        assert_terminal_was_given_back(screen)
    assert [e.reason for e in events_of(folder / "results/cartpole") if isinstance(e, CheckpointSaved)] == [
        "interrupted"
    ]


def test_run_outlives_its_terminal_and_another_one_shows_it(folder: Path) -> None:
    """Also without Python's buffering, as in many containers: writing no bytes to a closed terminal must not fail."""
    results = folder / "results/cartpole"
    with terminal("cartpole.yaml", *ENDLESS, folder=folder, more={"PYTHONUNBUFFERED": "1"}) as screen:
        screen.wait_for("TRAINING")
        summaries = wait_for_summary(results)
        screen.hang_up()
        wait_for_summary(results, summaries + 20)  # seconds after the screen was left
        with terminal("attach", folder=folder) as again:
            again.wait_for("TRAINING")
            again.press("c")
            again.wait_for("checkpoint CartPole: done")
            again.press("q")
            assert again.wait() == 0
            assert b"cartpole trains on; back to it: rl-tui attach results/cartpole" in again.raw
        assert run("ctl", "cartpole", "set", "beta", "0.01", folder=folder)[0] == 0
        assert run("ctl", "cartpole", "set", "beta", "-1", folder=folder)[0] == 1
        assert run("ctl", "cartpole", "stop", folder=folder)[0] == 0
        assert screen.wait() == 0
        assert run("ctl", "cartpole", "status", folder=folder)[0] == 8
    events = events_of(results)
    assert [e.reason for e in events if isinstance(e, CheckpointSaved)] == ["asked", "interrupted"]
    assert [e for e in events if isinstance(e, RunStateChanged)][-1].exit_code == 0


def test_run_is_left_running_and_the_shell_goes_on(folder: Path) -> None:
    results = folder / "results/cartpole"
    with terminal("cartpole.yaml", *ENDLESS, "--num-workers=2", folder=folder) as screen:
        screen.wait_for("TRAINING")
        summaries = wait_for_summary(results)
        screen.press("q")
        screen.wait_for("leave it running")
        screen.press("l")
        assert screen.wait() == 0
        assert_terminal_was_given_back(screen)
        assert not lacks_canonical_input(screen)
        assert b"cartpole trains on; back to it: rl-tui attach " in screen.raw
        screen.hang_up()
    try:
        wait_for_summary(results, summaries + 20)
        with terminal("attach", folder=folder) as again:
            again.wait_for(r"meanwhile, in \d+s: \S+ steps, 0 checkpoints, 0 warnings")
            again.press("c")
            again.wait_for("checkpoint CartPole: done")
            again.press("q")
            assert again.wait() == 0
    finally:
        assert run("ctl", "cartpole", "stop", folder=folder)[0] == 0
    wait_until(lambda: run("ls", "results", "--json", folder=folder)[1].count('"is_alive": false') == 1)
    events = events_of(results)  # ctl hears of the end before the file is complete
    shown = [e.screen != "" for e in events if isinstance(e, ControllerChanged)]
    assert shown[:3] == [True, False, True]  # the run may end before it hears that the last one has left
    assert [e.reason for e in events if isinstance(e, CheckpointSaved)] == ["asked", "interrupted"]
    assert [e for e in events if isinstance(e, RunStateChanged)][-1].exit_code == 0


SLOW_TO_LEAVE = """\
import os, time

leave = os.setsid


def slowly():
    time.sleep(0.5)
    leave()


os.setsid = slowly
"""


def test_terminal_may_close_at_once_where_a_run_was_left_also_on_a_busy_machine(folder: Path) -> None:
    """The kernel then sends SIGHUP to all processes of the terminal's session."""
    (folder / "sitecustomize.py").write_text(SLOW_TO_LEAVE)
    results = folder / "results/cartpole"
    with terminal("cartpole.yaml", *ENDLESS, folder=folder, from_cold=True) as screen:
        wait_for_summary(results)
        screen.press("q")
        screen.wait_for("leave it running")
        screen.press("l")
        assert screen.wait() == 0
        screen.hang_up()
    try:
        wait_for_summary(results, wait_for_summary(results) + 20)
    finally:
        assert run("ctl", "cartpole", "stop", folder=folder)[0] == 0


def test_run_that_was_left_ends_with_a_word_in_its_log_where_it_is_killed(folder: Path) -> None:
    results = folder / "results/cartpole"
    with terminal("cartpole.yaml", *ENDLESS, folder=folder) as screen:
        wait_for_summary(results)
        screen.press("q")
        screen.wait_for("leave it running")
        screen.press("l")
        assert screen.wait() == 0
    pid = int((results / LOCK).read_text().split()[1])
    assert run("ctl", "cartpole", "status", folder=folder)[0] == 0
    os.kill(pid, signal.SIGKILL)
    said = "the process has ended.*, or was killed; what was learned since the last checkpoint is lost"
    wait_until(lambda: re.search(said, (results / "run_logs/output.log").read_text()) is not None)


def test_one_of_two_screens_controls_the_run(folder: Path) -> None:
    with terminal("cartpole.yaml", *ENDLESS, folder=folder) as first:
        wait_for_summary(folder / "results/cartpole")
        with terminal("attach", "cartpole", folder=folder) as second:
            second.wait_for("VIEWER")
            second.press("c")
            second.wait_for(r"checkpoint CartPole: not possible, pts/\d+ \(process \d+\) controls the run")
            second.press("!")
            second.wait_for("Control the run from this screen")
            second.press("y")
            second.wait_for("this screen controls the run")
            first.wait_for(r"controls the run; ! takes over")
            second.press("c")
            second.wait_for("checkpoint CartPole: done")
            first.press("c")
            first.wait_for("not possible")
            second.press("q")
            assert second.wait() == 0
        first.wait_for("this screen controls the run")
        first.press("ctrl+c")
        first.wait_for("(?i)stay")
        first.press("s")
        assert first.wait() == 0


def test_detached_run_is_started_and_ended_from_the_command_line(folder: Path) -> None:
    code, stdout, stderr = run("cartpole.yaml", *ENDLESS, "--detach", folder=folder)
    assert (code, stderr) == (0, "")
    try:
        assert stdout.endswith(f"cartpole trains on; back to it: rl-tui attach {folder}/results/cartpole\n")
        wait_for_summary(folder / "results/cartpole")
        with terminal("attach", folder=folder, size=(200, 60)) as screen:
            screen.wait_for(r"since the start, \d+s ago: \S+ steps, 0 checkpoints, 0 warnings")
    finally:
        assert run("ctl", "cartpole", "stop", folder=folder)[0] == 0


def test_detached_run_that_cannot_start_ends_as_one_in_the_foreground(folder: Path) -> None:
    words = "cartpole.yaml", "--set=behaviors.CartPole.max_step=5"
    expected = run(*words, "--no-ui", folder=folder)
    assert expected[0] == 2
    assert run(*words, "--detach", folder=folder) == expected
    code, stdout, _ = run("cartpole.yaml", "--detach", folder=folder)  # which takes a second, and is over then
    assert code == 0
    assert "back to it: rl-tui attach" in stdout


def test_run_without_a_screen_outlives_its_terminal_too_and_a_later_hangup_ends_it(folder: Path) -> None:
    results = folder / "results/cartpole"
    with terminal("cartpole.yaml", "--no-ui", *ENDLESS, folder=folder) as printed:
        printed.wait_for("Step: ")
        summaries = wait_for_summary(results)
        printed.hang_up()
        wait_for_summary(results, summaries + 20)
        _, stdout, _ = run("ctl", "cartpole", "status", "--json", folder=folder)
        assert json.loads(stdout)["behaviors"]["CartPole"]["state"] == "training"
        while printed.process.poll() is None:  # at first it may be the shell's, for the same reason
            printed.process.send_signal(signal.SIGHUP)
            time.sleep(1.0)
        assert printed.wait() == 129


def test_hangup_without_a_loss_of_the_terminal_saves_and_ends(folder: Path) -> None:
    with terminal("cartpole.yaml", *ENDLESS, folder=folder) as screen:
        screen.wait_for("TRAINING")
        wait_for_summary(folder / "results/cartpole")
        screen.process.send_signal(signal.SIGHUP)
        assert screen.wait() == 129
    events = events_of(folder / "results/cartpole")
    assert [e.reason for e in events if isinstance(e, CheckpointSaved)] == ["interrupted"]


def test_attached_screen_says_so_when_the_process_of_its_run_is_killed(folder: Path) -> None:
    with terminal("cartpole.yaml", "--no-ui", *ENDLESS, folder=folder) as printed:
        wait_for_summary(folder / "results/cartpole")
        with terminal("attach", "cartpole", folder=folder) as screen:
            screen.wait_for("TRAINING")
            screen.press("c")
            screen.wait_for("checkpoint CartPole: done")
            printed.process.kill()
            screen.wait_for("INTERRUPTED")
            screen.press("q")
            assert screen.wait() == 0
            assert b"cartpole: interrupted (its process ended without a word), files in results/cartpole" in screen.raw
            assert b"resume with: rl-tui results/cartpole/configuration.yaml --run-id cartpole" in screen.raw


def test_lost_terminal_saves_and_ends_where_that_was_asked_for(folder: Path) -> None:
    with terminal("cartpole.yaml", *ENDLESS, "--on-hangup", "stop", folder=folder) as screen:
        screen.wait_for("TRAINING")
        wait_for_summary(folder / "results/cartpole")
        screen.hang_up()
        assert screen.wait() == 129
    events = events_of(folder / "results/cartpole")
    assert [e.reason for e in events if isinstance(e, CheckpointSaved)] == ["interrupted"]
    assert [e for e in events if isinstance(e, RunStateChanged)][-1].exit_code == 129


def test_run_that_ignores_hangups_continues_without_its_terminal(folder: Path) -> None:
    with terminal("cartpole.yaml", *ENDLESS, folder=folder, ignored=[signal.SIGHUP]) as screen:
        summaries = wait_for_summary(folder / "results/cartpole")
        screen.hang_up()
        wait_for_summary(folder / "results/cartpole", summaries + 20)  # seconds after the screen was left
        screen.process.send_signal(signal.SIGTERM)
        assert screen.wait() == 143


@pytest.mark.parametrize("hangup", ["ends the program", "is ignored"])
def test_finished_run_keeps_its_exit_code_when_its_terminal_is_lost(folder: Path, hangup: str) -> None:
    with terminal("cartpole.yaml", folder=folder, ignored=[signal.SIGHUP] if hangup == "is ignored" else []) as screen:
        screen.wait_for("FINISHED")
        screen.hang_up()
        assert screen.wait() == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--env", "gymnasium:CartPool-v1"), "CartPool"),
        (("--set", "behaviors.CartPole.max_step=5"), "Did you mean max_steps?"),
        (("--initialize-from", "nothing"), "no run in"),
    ],
)
def test_run_that_cannot_start_leaves_the_screen(folder: Path, words: tuple[str, ...], reason: str) -> None:
    """The file is read after the first frame."""
    with terminal("cartpole.yaml", *words, folder=folder) as screen:
        assert screen.wait() == 2
        assert_terminal_was_given_back(screen)
        assert reason in screen.raw.rpartition(LEFT_ALTERNATE_SCREEN)[2].decode()
        assert not (folder / "results").exists()


def test_error_found_while_the_screen_is_on_is_readable_after_it(folder: Path) -> None:
    """Whether a device is there is known once torch is imported."""
    with terminal("cartpole.yaml", "--torch-device", "abc", folder=folder) as screen:
        screen.wait_for("FAILED")
        screen.press("q")
        assert screen.wait() == 2
        assert_terminal_was_given_back(screen)
        assert b"--torch-device: must be auto, cpu, cuda" in screen.raw.rpartition(LEFT_ALTERNATE_SCREEN)[2]


def test_resumed_run_shows_what_was_before(folder: Path) -> None:
    """Its checkpoints can be rolled back to, and its curve begins where the run did."""
    run("cartpole.yaml", "--no-ui", folder=folder)
    last = [event for event in events_of(folder / "results/cartpole") if isinstance(event, CheckpointSaved)][-1]
    with terminal("cartpole.yaml", "--resume", *ENDLESS, folder=folder) as screen:
        screen.wait_for("TRAINING")
        screen.press("k")
        screen.wait_for(f"Checkpoints of CartPole.*(?s:.*){Path(last.path).name}")
        screen.press("q")
        screen.wait_for("(?i)stay")
        screen.press("s")
        assert screen.wait() == 0


@pytest.mark.parametrize(
    ("words", "exit_code", "reason"),
    [
        (("--run-id", "taken"), 2, "holds other files"),
        (("--run-id", "busy"), 6, "is writing to this run"),
        (("--run-id", "none", "--resume"), 2, "no run in"),
    ],
)
def test_run_that_is_refused_opens_no_screen(folder: Path, words: tuple[str, ...], exit_code: int, reason: str) -> None:
    (folder / "results/taken").mkdir(parents=True)
    (folder / "results/taken/notes.txt").touch()
    busy = folder / "results/busy"
    busy.mkdir()
    (busy / "events.jsonl").write_text('{"v": 1, ')
    with (busy / "run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with terminal("cartpole.yaml", *words, folder=folder) as screen:
            assert screen.wait() == exit_code
            assert "".join(reason.split()) in "".join(screen.text().split())  # lines end in the middle of words
            assert b"\x1b[?1049h" not in screen.raw


def test_redirected_input_opens_no_screen(folder: Path) -> None:
    """stdout is a terminal, stdin is not: a screen would wait for keys in a busy loop."""
    with terminal("cartpole.yaml", folder=folder, stdin=subprocess.DEVNULL) as screen:
        assert screen.wait() == 0
        assert b"no screen: stdin is not a terminal" in screen.raw
        assert LEFT_ALTERNATE_SCREEN not in screen.raw


def test_pane_that_cannot_be_drawn_does_not_affect_the_run(folder: Path) -> None:
    (folder / "sitecustomize.py").write_text(BROKEN_PANE)
    with terminal("cartpole.yaml", *ENDLESS, folder=folder) as screen:
        screen.wait_for("TRAINING")
        screen.wait_for("could not be drawn: IndexError: the curve fell off")
        screen.press("c")
        screen.wait_for("CKPT")
        screen.press("l")
        screen.wait_for("SCREEN")
        screen.press(";")
        screen.wait_for("warnings and errors")
        screen.press(";")
        screen.wait_for("Log . errors")
        screen.press("enter")
        screen.wait_for("Traceback")
        screen.press("q")
        screen.wait_for("(?i)stay")
        screen.press("s")
        assert screen.wait() == 0
    assert (folder / "results/cartpole/run_logs/output.log").read_text().count("Traceback") == 1


def test_run_continues_in_lines_when_the_screen_fails_and_a_signal_saves_and_ends_it(folder: Path) -> None:
    """Drawing fails some frames after training began."""
    (folder / "sitecustomize.py").write_text(BROKEN_SCREEN.format(where="redraw", when='app.view.state == "training"'))
    with terminal("cartpole.yaml", *ENDLESS, folder=folder) as screen:
        screen.wait_for_bytes(b"the screen failed (RuntimeError: the picture fell off): training continues")
        screen.wait_for_bytes(b"CartPole. Step: ")
        assert_terminal_was_given_back(screen)
        assert lacks_canonical_input(screen) is False
        screen.process.send_signal(signal.SIGINT)
        assert screen.wait() == 130
    assert [e.reason for e in events_of(folder / "results/cartpole") if isinstance(e, CheckpointSaved)] == [
        "interrupted"
    ]
    assert "the picture fell off" in (folder / "results/cartpole/run_logs/output.log").read_text()


@pytest.mark.parametrize(
    ("where", "when"),
    [
        ("on_mount", "True"),
        ("on_unmount", "True"),
        ("fold", "app.view.state == 'training'"),
    ],
)
def test_run_has_its_own_exit_code_however_the_screen_fails(folder: Path, where: str, when: str) -> None:
    (folder / "sitecustomize.py").write_text(BROKEN_SCREEN.format(where=where, when=when))
    with terminal("cartpole.yaml", folder=folder) as screen:
        if where == "on_unmount":
            screen.wait_for("FINISHED")
            screen.press("q")
        assert screen.wait() == 0
        assert b"the screen failed (RuntimeError: the picture fell off)" in screen.raw
        assert LEFT_ALTERNATE_SCREEN in screen.raw
        assert lacks_canonical_input(screen) is False


BROKEN_PANE = """\
import rl_tui.tui.panes.chart


def lines(pane, frame, width, height):
    raise IndexError("the curve fell off")


rl_tui.tui.panes.chart.CurvesPane.lines = lines
"""

BROKEN_SCREEN = """\
import rl_tui.tui.app

working = rl_tui.tui.app.TrainerApp.{where}


def broken(app, *arguments):
    if {when}:
        raise RuntimeError("the picture fell off")
    return working(app, *arguments)


rl_tui.tui.app.TrainerApp.{where} = broken
"""


CRASHES = """\
import ctypes
from gymnasium.envs.classic_control.cartpole import CartPoleEnv


class Crashing(CartPoleEnv):
    def step(self, action):
        if self.steps_beyond_terminated is None and abs(self.state[0]) > 0.1:
            ctypes.string_at(0)
        return super().step(action)
"""


def test_environment_that_crashes_gives_back_the_terminal_and_names_itself(folder: Path) -> None:
    (folder / "crashing.py").write_text(CRASHES)
    with terminal("cartpole.yaml", "--env=crashing:Crashing", "--num-envs=1", folder=folder) as screen:
        assert screen.wait() == 3
        assert_terminal_was_given_back(screen)
        assert not lacks_canonical_input(screen)
        said = screen.raw.decode().split("\x1b[?25h")[-1]
        assert "crashing:Crashing: step crashed (SIGSEGV)" in said
    assert "crashing.py" in (folder / "results/cartpole/run_logs/output.log").read_text()
