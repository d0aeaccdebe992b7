"""ctrl+z under a real shell: the terminal is the shell's, and fg brings the screen back."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.pseudo_terminal import PseudoTerminal

LIVE = Path(__file__).parent / "live.py"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell with job control")
def test_screen_goes_to_the_shell_and_comes_back(tmp_path: Path) -> None:
    command = f"{sys.executable} {LIVE} --report {tmp_path / 'report.json'} --log {tmp_path / 'output.log'}"
    shell = ["bash", "--norc", "--noprofile", "-i"]
    with PseudoTerminal(shell, folder=tmp_path, variables={"PS1": "shell> "}) as terminal:
        terminal.wait_for("shell> ")
        terminal.press(command, "enter")
        terminal.wait_for("TRAINING")
        terminal.press("ctrl+z")
        terminal.wait_for("Stopped")
        terminal.press("echo still $((40 + 2))", "enter")
        terminal.wait_for("still 42")
        terminal.press("fg", "enter")
        terminal.wait_for("TRAINING")
        terminal.press("q")
        terminal.wait_for("Leave")
        terminal.press("k")
        terminal.wait_for("shell> ")
        terminal.press("exit", "enter")
        terminal.wait()
