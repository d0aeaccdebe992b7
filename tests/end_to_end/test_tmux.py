"""The real program inside tmux, as many users run it over SSH: from the start to an exported policy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.program import CARTPOLE, COMMAND, surroundings
from tests.pseudo_terminal import DEADLINE_SECONDS

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Tmux:
    """A separate tmux server on a socket of its own. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._words = ["tmux", "-S", str(folder / "tmux.socket"), "-f", "/dev/null"]

    def __enter__(self) -> Tmux:
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run([*self._words, "kill-server"], check=False, capture_output=True)

    def run(self, command: str, columns: int, rows: int) -> None:
        """A shell that runs the command and then shows its exit code."""
        shown = f"{command}; echo EXIT=$?; sleep 600"
        size = ["-x", str(columns), "-y", str(rows)]
        self._tmux("new-session", "-d", *size, "-c", str(self._folder), "sh", "-c", shown)

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        self._tmux("send-keys", *keys)

    def resize(self, columns: int, rows: int) -> None:
        """Resize the window."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def kill_window(self) -> None:
        """The window is gone, and so is its terminal."""
        self._tmux("kill-window")

    def text(self) -> str:
        """What a user sees."""
        return self._tmux("capture-pane", "-p")

    def wait_for(self, pattern: str, *, absent: bool = False) -> str:
        """The text once it matches the pattern (or no longer does)."""
        end = time.monotonic() + DEADLINE_SECONDS
        while bool(re.search(pattern, text := self.text())) == absent:
            assert time.monotonic() < end, f"{'still there' if absent else 'not there'}: {pattern}\n{text}"
            time.sleep(0.05)
        return text

    def _tmux(self, *words: str) -> str:
        variables = surroundings(XDG_STATE_HOME=str(self._folder), SHELL="/bin/sh")
        variables.pop("TMUX", None)
        ended = subprocess.run([*self._words, *words], check=True, capture_output=True, text=True, env=variables)
        return ended.stdout


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    (tmp_path / "cartpole.yaml").write_text(CARTPOLE)
    with Tmux(tmp_path) as server:
        yield server


@pytest.mark.slow
def test_run_in_tmux_from_start_to_export(tmux: Tmux, tmp_path: Path) -> None:
    """Pause, look around, resize, export, leave with a checkpoint; the terminal is restored."""
    words = " ".join([*COMMAND, "cartpole.yaml", "--set", "behaviors.CartPole.max_steps=1e8"])
    tmux.run(f"TERM={os.environ.get('TMUX_TERM', 'screen-256color')} {words}", 120, 40)
    tmux.wait_for("TRAINING 1/1")
    tmux.press("p")
    tmux.wait_for("PAUSED")
    tmux.press("p")
    tmux.wait_for("TRAINING 1/1")
    tmux.press("?")
    tmux.wait_for("Keys for")
    tmux.press("Escape")
    tmux.wait_for("Keys for", absent=True)
    tmux.resize(80, 24)
    tmux.wait_for("TRAINING 1/1")
    tmux.press("e")
    tmux.wait_for(r"export CartPole: done in .*\.onnx")
    assert (tmp_path / "results/cartpole/CartPole.onnx").exists()
    tmux.press("q")
    tmux.wait_for("Leave")
    tmux.press("s")
    after = tmux.wait_for("EXIT=0")
    assert "TRAINING" not in after  # the alternate screen was left
