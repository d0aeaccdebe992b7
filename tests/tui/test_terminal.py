"""The screen on a real pseudo-terminal: bytes, signals, a terminal that goes away, output from beside."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tui.pseudo_terminal import PseudoTerminal

LIVE = Path(__file__).parent / "live.py"
RESTORED = (b"\x1b[?1049l", b"\x1b[?25h")


class LiveScreen:
    """live.py on a pseudo-terminal."""

    def __init__(self, folder: Path, *arguments: str, size: tuple[int, int] = (100, 30)) -> None:
        self.report_path = folder / "report.json"
        self.log_path = folder / "output.log"
        words = ["--report", str(self.report_path), "--log", str(self.log_path), *arguments]
        self.terminal = PseudoTerminal([sys.executable, "-W", "error", str(LIVE), *words], size)

    def __enter__(self) -> LiveScreen:
        self.terminal.wait_for("TRAINING", 20)
        return self

    def __exit__(self, *_: object) -> None:
        self.terminal.close()

    def report(self) -> dict[str, Any]:
        """What the program said when it had ended by itself."""
        assert self.terminal.wait(20) == 0
        return json.loads(self.report_path.read_text())


@pytest.mark.parametrize(
    ("number", "exit_code", "departure"),
    [(signal.SIGINT, 130, "stop"), (signal.SIGTERM, 143, "stop"), (signal.SIGHUP, 129, "hangup")],
)
def test_signal_saves_and_restores_the_terminal(tmp_path: Path, number: int, exit_code: int, departure: str) -> None:
    with LiveScreen(tmp_path) as live:
        os.kill(live.terminal.process.pid, number)
        report = live.report()
        assert report["departure"] == departure
        assert report["commands"] == [f"Stop:checkpoint:{exit_code}"]
        assert all(sequence in live.terminal.raw for sequence in RESTORED)


def test_second_signal_does_not_wait(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--stop-seconds", "1.5") as live:
        os.kill(live.terminal.process.pid, signal.SIGTERM)
        live.terminal.wait_for("Saving and stopping")
        os.kill(live.terminal.process.pid, signal.SIGTERM)
        report = live.report()
        assert report["departure"] == "now"
        assert report["commands"] == ["Stop:checkpoint:143", "Stop:now:143"]


def test_dropped_terminal_saves_and_ends(tmp_path: Path) -> None:
    with LiveScreen(tmp_path) as live:
        live.terminal.hang_up()
        assert live.report()["departure"] == "hangup"
        assert live.report()["commands"] == ["Stop:checkpoint:129"]


def test_output_from_beside_the_screen_goes_to_the_log(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--noise") as live:
        live.terminal.watch(1)
        assert "GARBAGE" not in live.terminal.text()
        assert live.log_path.read_text().count("GARBAGE") == 10
        live.terminal.press("q")
        live.terminal.wait_for("Leave")
        live.terminal.press("k")
        assert live.report()["departure"] == "now"
        live.terminal.watch(0.2)
        assert "departure" in live.terminal.text()  # print reaches the terminal again


def test_partial_painting_gives_the_same_picture_as_painting_everything(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, size=(120, 40)) as live:
        live.terminal.watch(1.5)
        live.terminal.press(" ")
        live.terminal.wait_for("VIEW FROZEN")
        live.terminal.watch(0.3)
        piecewise = without_clock(live.terminal.text())
        live.terminal.press("?")
        live.terminal.wait_for("select the behavior")
        live.terminal.press("\x1b")
        live.terminal.wait_for("select the behavior", absent=True)
        live.terminal.watch(0.3)
        assert without_clock(live.terminal.text()) == piecewise


def without_clock(text: str) -> str:
    """The text below the state line, which tells the time also while the view is frozen."""
    return re.sub(r"\d+s ago", "", text.partition("\n")[2])


def test_output_and_drawing_stay_within_their_budgets(tmp_path: Path) -> None:
    """At most 20 kB/s at 120x40; the tick's bound is wide, for the machine may be busy: 10 ms are meant."""
    with LiveScreen(tmp_path, "--behaviors", "3", size=(120, 40)) as live:
        live.terminal.watch(1)
        before = len(live.terminal.raw)
        live.terminal.watch(2.5)
        assert (len(live.terminal.raw) - before) / 2.5 <= 20_000
        live.terminal.press("\x03")
        live.terminal.wait_for("Leave")
        live.terminal.press("s")
        assert live.report()["tick_p50_ms"] <= 20
