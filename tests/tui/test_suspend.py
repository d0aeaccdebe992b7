"""The terminal goes to the shell and comes back, however the program is stopped and continued."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.pseudo_terminal import PseudoTerminal

LIVE = Path(__file__).parent / "live.py"
MODES = r"(?m:^[0-9a-f:]{40,})"  # a line of `stty -g`


class Shell:
    """bash with job control on a pseudo-terminal, and the screen as its job."""

    def __init__(self, folder: Path) -> None:
        bash = ["bash", "--norc", "--noprofile", "-i"]
        self.terminal = PseudoTerminal(bash, folder=folder, variables={"PS1": "shell> "})
        self.terminal.wait_for("shell> ")
        self.modes = self.modes_of_commands()
        self.say(f"exec 2>&1; clear; {sys.executable} {LIVE} --log {folder / 'output.log'}")
        self.wait_for_picture()
        (self.job,) = psutil.Process(self.terminal.process.pid).children()

    def say(self, words: str) -> None:
        self.terminal.press(words, "enter")

    def answers(self, question: str) -> None:
        """The shell echoes what is typed, and takes it."""
        self.say(f"clear; echo still {question} $((40 + 2))")
        self.terminal.wait_for(f"still {question} 42")

    def modes_of_commands(self) -> str:
        """What the terminal does with keys while a command runs; its prompt reads them itself."""
        self.say("clear; stty -g")
        self.terminal.wait_for(rf"{MODES}(?s:.)*shell> ")  # before or between them may be that a job has ended
        found = re.search(MODES, self.terminal.text())
        assert found is not None
        return found[0]

    def fg(self) -> None:
        self.say("fg")
        self.wait_for_picture()

    def wait_for_picture(self) -> None:
        """Every row is the screen's, and none the shell's."""
        self.terminal.wait_for(r"TRAINING(?s:.)*Walker2(?s:.)*results/live(?s:.)*p pause")
        self.terminal.wait_for("shell>|Stopped|still|LIVE", absent=True)

    def leave(self) -> None:
        """The screen is left, and the terminal is as it was before."""
        self.terminal.press("q")
        self.terminal.wait_for("Leave")
        self.terminal.press("s")
        self.terminal.wait_for("shell> ")
        assert self.modes_of_commands() == self.modes


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    if shutil.which("bash") is None:
        pytest.skip("needs a shell with job control")
    shell = Shell(tmp_path)
    yield shell
    shell.terminal.close()


def test_screen_goes_to_the_shell_and_comes_back_whole(shell: Shell) -> None:
    shell.terminal.press("ctrl+z")
    shell.terminal.wait_for("Stopped")
    shell.answers("stopped by its key")
    shell.fg()
    shell.terminal.press("q")
    shell.terminal.wait_for("Leave")
    shell.job.send_signal(signal.SIGTSTP)
    shell.terminal.wait_for("Stopped")
    shell.answers("stopped by a signal")
    shell.terminal.resize(100, 30)
    shell.say("fg")
    shell.terminal.wait_for(r"TRAINING(?s:.)*Leave(?s:.)*p pause")
    shell.terminal.wait_for("shell>|Stopped|still", absent=True)
    shell.terminal.press("escape")
    shell.terminal.wait_for("Leave", absent=True)
    shell.leave()


def test_screen_that_could_not_prepare_for_a_stop_comes_back_whole(shell: Shell) -> None:
    shell.job.send_signal(signal.SIGSTOP)
    shell.terminal.wait_for("shell> ")  # a sequence that was cut short may swallow a letter of what comes before
    shell.answers("stopped without notice")
    shell.job.send_signal(signal.SIGCONT)
    shell.answers("continued by another")
    shell.fg()
    shell.leave()


READ_WHAT_ANOTHER_TOOK = """
import os, select
from rl_tui.tui.terminal.streams import open_without_waiting
print("type")
select.select([0], [], [])
os.read(0, 100)
with open_without_waiting(0) as keys:
    try:
        os.read(keys, 100)
    except BlockingIOError:
        print(f"nothing is left, {os.get_blocking(0)=}")
    select.select([0], [], [])
    print("then", os.read(keys, 100))
"""


def test_keys_that_the_shell_has_taken_are_not_waited_for(tmp_path: Path) -> None:
    with PseudoTerminal([sys.executable, "-c", READ_WHAT_ANOTHER_TOOK], folder=tmp_path) as terminal:
        terminal.wait_for("type")
        terminal.press("fg", "enter")
        terminal.wait_for(r"nothing is left, os.get_blocking\(0\)=True")
        terminal.press("q", "enter")
        terminal.wait_for(r"then b'q\\n'")


def test_run_goes_on_in_the_background_without_its_screen_and_can_be_ended_there(shell: Shell) -> None:
    shell.terminal.press("ctrl+z")
    shell.terminal.wait_for("Stopped")
    shell.say("bg")
    shell.answers("in the background")
    shell.fg()
    shell.terminal.press("ctrl+z")
    shell.terminal.wait_for("Stopped")
    shell.say("kill %1")
    shell.terminal.wait_for('"exit_reason": "stop".*:checkpoint:143')
    assert shell.modes_of_commands() == shell.modes


def test_without_a_shell_a_stop_and_a_continue_leave_a_terminal_that_can_be_left(tmp_path: Path) -> None:
    with PseudoTerminal([sys.executable, str(LIVE)], folder=tmp_path) as terminal:
        modes = terminal.local_modes()
        terminal.wait_for(r"TRAINING(?s:.)*p pause")
        for _ in range(2):
            os.kill(terminal.process.pid, signal.SIGSTOP)
            terminal.screen.reset()
            os.kill(terminal.process.pid, signal.SIGCONT)
            terminal.wait_for(r"TRAINING(?s:.)*p pause")
        terminal.press("ctrl+z")
        terminal.wait_for("no shell")
        terminal.press("q")
        terminal.wait_for("Leave")
        terminal.press("s")
        terminal.wait()
        assert terminal.local_modes() == modes
