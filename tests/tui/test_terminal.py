"""The screen on a real pseudo-terminal: bytes, signals, crashes, a terminal that goes away, output from beside."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rl_tui.tui.terminal.sequences import POP_TITLE, PUSH_TITLE
from tests.pseudo_terminal import DEADLINE_SECONDS, PseudoTerminal
from tests.slow_line import SlowLine

LIVE = Path(__file__).parent / "live.py"
MODE_CHANGE = rb"\x1b\[(?:\?(\d+)([hl])|([<>])(\d*)u)"  # a mode set or reset; the kitty keyboard pushed or popped
MODES = {"1049": "alternate screen", "1000": "mouse", "1003": "mouse moves", "1006": "mouse, SGR", "2004": "paste"}
CURSOR = "25"
HEADINGS = {
    "f": "▸ (Return|Chart)", "g": "▸ Devices", "#": "n next page", "k": "Checkpoints of", "u": "Hyperparameters of",
    "l": "▸ Log", "?": "Keys for", "q": "Leave",
}  # fmt: skip
BEGIN, END = b"\x1b[?2026h", b"\x1b[?2026l"  # of a picture
PICTURE = b"\x1b[5n"  # what follows each: a query, whose answer says that the terminal has it


class LiveScreen:
    """live.py on a pseudo-terminal."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        size: tuple[int, int] = (100, 30),
        bytes_per_second: float | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.report_path = folder / "report.json"
        self.log_path = folder / "output.log"
        words = ["--report", str(self.report_path), "--log", str(self.log_path), *arguments]
        self.terminal = PseudoTerminal(
            [sys.executable, "-W", "error", str(LIVE), *words],
            size,
            folder=folder,
            bytes_per_second=bytes_per_second,
            variables=variables,
        )

    def __enter__(self) -> LiveScreen:
        self.terminal.wait_for("TRAINING")
        os.kill(self.terminal.process.pid, signal.SIGVTALRM)
        return self

    def __exit__(self, *_: object) -> None:
        self.terminal.close()

    def report(self) -> dict[str, Any]:
        """What the program said when it had ended by itself."""
        assert self.terminal.wait() == 0
        report: dict[str, Any] = json.loads(self.report_path.read_text())
        return report

    def leave(self) -> dict[str, Any]:
        """Stop now, and the report."""
        self.terminal.press("q")
        self.terminal.wait_for("Leave")
        self.terminal.press("k")
        self.terminal.wait_for("Stop without saving")
        self.terminal.press("y")
        return self.report()


def left_behind(raw: bytes | bytearray) -> list[str]:
    """What of the terminal is not as it was before: modes still on, a hidden cursor, a keyboard protocol."""
    modes: dict[str, bool] = {CURSOR: True}
    pushed = 0
    for number, switch, keyboard, _ in re.findall(MODE_CHANGE, raw):
        if number:
            modes[number.decode()] = switch == b"h"
        else:
            pushed += 1 if keyboard == b">" else -1
    left = [name for number, name in MODES.items() if modes.get(number)]
    missing = [name for number, name in MODES.items() if number not in modes]
    assert missing == [], "never switched on, so this test sees nothing"
    return (
        left
        + ["hidden cursor"] * (not modes[CURSOR])
        + ["keyboard"] * (pushed > 0)
        + ["title"] * (raw.count(PUSH_TITLE.encode()) - raw.count(POP_TITLE.encode()))
    )


@pytest.mark.parametrize(
    ("number", "exit_code", "exit_reason"),
    [
        pytest.param(signal.SIGINT, 130, "stop", marks=pytest.mark.slow),  # as SIGTERM, with another number
        (signal.SIGTERM, 143, "stop"),
        (signal.SIGHUP, 129, "hangup"),
    ],
)
def test_signal_saves_and_restores_the_terminal(tmp_path: Path, number: int, exit_code: int, exit_reason: str) -> None:
    with LiveScreen(tmp_path) as live:
        os.kill(live.terminal.process.pid, number)
        report = live.report()
        assert report["exit_reason"] == exit_reason
        assert report["commands"] == [f"Stop:checkpoint:{exit_code}"]
        assert left_behind(live.terminal.raw) == []


def test_second_signal_does_not_wait_except_after_one_that_only_saves(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--stop-seconds", "60") as live:
        os.kill(live.terminal.process.pid, signal.SIGUSR1)
        os.kill(live.terminal.process.pid, signal.SIGUSR2)
        live.terminal.wait_for("SIGUSR2 was ignored")
        os.kill(live.terminal.process.pid, signal.SIGTERM)
        live.terminal.wait_for("Saving and stopping")
        os.kill(live.terminal.process.pid, signal.SIGTERM)
        report = live.report()
        assert report["exit_reason"] == "now"
        assert report["commands"] == ["SaveCheckpoint::", "Stop:checkpoint:143", "Stop:now:143"]
        assert left_behind(live.terminal.raw) == []


def test_dropped_terminal_saves_and_ends(tmp_path: Path) -> None:
    with LiveScreen(tmp_path) as live:
        live.terminal.hang_up()
        live.terminal.process.wait(DEADLINE_SECONDS)
        report = json.loads(live.report_path.read_text())
        assert report["exit_reason"] == "hangup"
        assert report["commands"] == ["Stop:checkpoint:129"]


def test_a_terminal_that_dies_in_silence_saves_and_ends(tmp_path: Path) -> None:
    """No signal comes, as when the program does not lead the terminal's session."""
    with LiveScreen(tmp_path, "--hangup", "blocked") as live:
        live.terminal.hang_up()
        live.terminal.process.wait(DEADLINE_SECONDS)
        report = json.loads(live.report_path.read_text())
        assert report["exit_reason"] == "hangup"
        assert report["commands"] == ["Stop:checkpoint:129"]


def test_where_a_hangup_is_ignored_the_screen_is_left_and_the_run_goes_on(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--hangup", "ignored") as live:
        live.terminal.hang_up()
        live.terminal.process.wait(DEADLINE_SECONDS)
        report = json.loads(live.report_path.read_text())
        assert report["exit_reason"] == "lost"
        assert report["commands"] == []


def fill(terminal: PseudoTerminal) -> None:
    """The program has more to write than is taken: it was painted as a whole, time and again."""
    unread, num_same = -1, 0
    for columns in itertools.cycle((180, 190, 199)):
        terminal.resize(columns, 60)
        time.sleep(0.05)
        num_same = num_same + 1 if terminal.num_unread() == unread else 0
        unread = terminal.num_unread()
        if num_same == 6:
            return


def test_a_terminal_that_reads_nothing_does_not_delay_the_exit(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, size=(200, 60)) as live:
        fill(live.terminal)
        os.kill(live.terminal.process.pid, signal.SIGTERM)
        live.terminal.process.wait(DEADLINE_SECONDS)
        report = json.loads(live.report_path.read_text())
        assert report["commands"] == ["Stop:checkpoint:143"]
        assert report["exit_reason"] == "stop"
        live.terminal.wait()
        assert left_behind(live.terminal.raw) == []


def test_leaving_by_key_restores_the_terminal(tmp_path: Path) -> None:
    with LiveScreen(tmp_path) as live:
        assert live.leave()["exit_reason"] == "now"
        assert left_behind(live.terminal.raw) == []


def test_a_pane_that_cannot_be_drawn_says_so_and_the_log_has_the_traceback_once(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--broken", "pane") as live:
        live.terminal.wait_for("could not be drawn: ZeroDivisionError: a pane is broken")
        live.terminal.wait_for("Walker0 .* [0-9.]+k ")
        shown = re.findall("Walker0 .* ([0-9.]+k) ", live.terminal.text())[0]
        live.terminal.wait_for(f"Walker0 .* {re.escape(shown)} ", absent=True)  # steps are still drawn
        assert live.leave()["exit_reason"] == "now"
        assert left_behind(live.terminal.raw) == []
        log = live.log_path.read_text()
        assert log.count("Traceback") == 1
        assert "ZeroDivisionError: a pane is broken" in log


def again(*values: object) -> object:
    """A case that ends on the same path as another."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize("broken", [again("timer"), "action", again("message"), "worker", again("callback")])
def test_a_screen_that_fails_leaves_the_terminal_whole_and_a_traceback_in_the_log(tmp_path: Path, broken: str) -> None:
    with LiveScreen(tmp_path, "--broken", broken) as live:
        if broken == "action":
            live.terminal.press("b")
        report = live.report()
        assert report["exit_reason"] is None
        assert report["failure"].startswith("ZeroDivisionError: ")
        assert report["commands"] == []
        assert left_behind(live.terminal.raw) == []
        assert "Traceback" in live.log_path.read_text()
        assert "Traceback" not in live.terminal.text()


def test_a_worker_that_fails_is_reported_and_the_screen_stays(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--happening", "crash") as live:
        live.terminal.wait_for("FAILED")
        live.terminal.wait_for("Run failed")
        live.terminal.press("q")
        assert live.report()["exit_reason"] == "finished"
        assert left_behind(live.terminal.raw) == []


def test_output_from_beside_the_screen_goes_to_the_log(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--noise") as live:
        end = time.monotonic() + DEADLINE_SECONDS
        while live.log_path.read_text().count("GARBAGE") < 10 and time.monotonic() < end:
            live.terminal.watch(0.1)
        assert live.log_path.read_text().count("GARBAGE") == 10
        live.terminal.watch(0.5)
        assert "GARBAGE" not in live.terminal.text()
        assert live.leave()["exit_reason"] == "now"
        assert "exit_reason" in live.terminal.text()  # print reaches the terminal again


def check_that_painting_everything_changes_nothing(terminal: PseudoTerminal) -> None:
    """A dialog over a frozen view, once gone, has everything below it painted again."""
    freeze(terminal)
    piecewise = terminal.text()
    terminal.press("?")
    terminal.wait_for("Keys for")
    terminal.press("escape")
    terminal.wait_for("Keys for", absent=True)
    settle(terminal)
    assert terminal.text() == piecewise


def freeze(terminal: PseudoTerminal) -> None:
    """The view stands still, and all of it has arrived."""
    terminal.press(" ")
    terminal.wait_for("FROZEN")
    settle(terminal)


def settle(terminal: PseudoTerminal, seconds: float = 0.3) -> None:
    """The picture is complete: nothing was written for a while, and it shows no busy machine."""
    terminal.wait_for("link slow", absent=True)
    while terminal.watch(seconds) or terminal.raw.rfind(BEGIN) > terminal.raw.rfind(END):
        terminal.wait_for("link slow", absent=True)


def test_partial_painting_gives_the_same_picture_as_painting_everything(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, size=(120, 40)) as live:
        wait_for_news(live.terminal, 2)
        check_that_painting_everything_changes_nothing(live.terminal)


@pytest.mark.parametrize(("size", "most"), [((80, 24), 4_000), ((120, 40), 10_000), ((200, 60), 25_000)])
def test_a_switch_of_screens_is_written_in_few_bytes(tmp_path: Path, size: tuple[int, int], most: int) -> None:
    """In one picture, as a rule: on a busy machine one that is late counts as the next key's."""
    written = []
    with LiveScreen(tmp_path, size=size) as live:
        freeze(live.terminal)
        assert falls_silent(live.terminal, 3)  # the end of an alert is a picture of its own
        for screen, heading in HEADINGS.items():
            for key, is_left in ((screen, False), ("escape", True)):
                before = len(live.terminal.raw)
                live.terminal.press(key)
                live.terminal.wait_for(heading, absent=is_left)
                settle(live.terminal, 1.0)
                written.append(bytes(live.terminal.raw[before:]))
    assert max(len(picture) for each in written for picture in each.split(PICTURE)) < most
    assert sum(each.count(PICTURE) for each in written) <= 1.5 * len(written)


def test_the_full_chart_opens_in_one_picture(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, size=(120, 40)) as live:
        freeze(live.terminal)
        assert falls_silent(live.terminal, 3)  # the end of an alert is a picture of its own
        before = len(live.terminal.raw)
        live.terminal.press("f")
        live.terminal.wait_for("┈┈┈")
        settle(live.terminal)
        assert bytes(live.terminal.raw[before:]).count(PICTURE) == 1


def test_what_a_key_opens_is_written_as_soon_as_it_is_drawn(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--hold-seconds", "1e6", size=(120, 40)) as live:
        for key, heading in {**HEADINGS, "ctrl+p": "a command"}.items():
            live.terminal.press(key)
            live.terminal.wait_for(heading)
            live.terminal.press("escape")
            live.terminal.wait_for(heading, absent=True)


def test_ctrl_l_writes_everything_again(tmp_path: Path) -> None:
    with LiveScreen(tmp_path) as live:
        freeze(live.terminal)
        live.terminal.show_garbage("wall: going down")
        assert "going down" in live.terminal.text()
        live.terminal.press("\x0c")
        live.terminal.wait_for("going down", absent=True)
        live.terminal.wait_for("the whole screen was written again")


def wait_for_news(terminal: PseudoTerminal, number: int) -> None:
    """So many times figures were painted over older ones."""
    steps = r"Walker0 .* [0-9.]+k "
    terminal.wait_for(steps)
    for _ in range(number):
        shown = re.search(steps, terminal.text())
        terminal.wait_for(re.escape(shown[0]) if shown else steps, absent=shown is not None)


def falls_silent(terminal: PseudoTerminal, seconds: float, most: int = 0) -> bool:
    """At last no more than so many bytes come in that time: what goes away by itself has gone, such as alerts."""
    end = time.monotonic() + DEADLINE_SECONDS
    while (sent := terminal.watch(seconds)) > most and time.monotonic() < end:
        pass
    return sent <= most


def test_a_frozen_view_sends_nothing(tmp_path: Path) -> None:
    with LiveScreen(tmp_path) as live:
        freeze(live.terminal)
        assert falls_silent(live.terminal, 3)


@pytest.mark.slow  # test_idle_screens.py has these without a terminal
def test_a_finished_run_sends_nothing(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--happening", "end") as live:
        live.terminal.wait_for("FINISHED")
        live.terminal.wait_for("Run finished")
        live.terminal.wait_for("Run finished", absent=True)
        assert falls_silent(live.terminal, 3)


@pytest.mark.slow
def test_a_paused_run_sends_next_to_nothing(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--happening", "pause") as live:
        live.terminal.wait_for("PAUSED")
        assert falls_silent(live.terminal, 5, most=200)  # the clock: 35 bytes a second


def bells(raw: bytes | bytearray) -> int:
    """Those that end no other sequence."""
    return re.sub(rb"\x1b\].*?(?:\x07|\x1b\\)", b"", raw).count(b"\x07")


def test_the_bell_rings_once_and_the_notice_steers_nothing(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--happening", "failure") as live:
        live.terminal.wait_for("Walker0 failed")
        wait_for_news(live.terminal, 2)
        notices = re.findall(rb"\x1b\]777;notify;rl-tui;([^\x1b\x07]*)\x1b\\", live.terminal.raw)
        assert notices == [
            b"Walker0 failed: the policy loss is nan, really, it has no checkpoint, and a newer one is being saved"
        ]
        assert bells(live.terminal.raw) == 1
        assert b"\x1b]0;gone" not in live.terminal.raw


def test_without_a_bell_nothing_rings(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--happening", "failure", "--no-bell") as live:
        live.terminal.wait_for("Walker0 failed")
        wait_for_news(live.terminal, 1)
        assert bells(live.terminal.raw) == 0
        assert b"\x1b]777" not in live.terminal.raw


def test_on_a_slow_line_a_key_is_answered(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--slow-seconds", "10", size=(120, 40), bytes_per_second=50_000) as live:
        wait_for_news(live.terminal, 1)
        for _ in range(3):
            live.terminal.press("?")
            live.terminal.wait_for("Keys for")
            live.terminal.press("escape")
            live.terminal.wait_for("Keys for", absent=True)


@pytest.mark.parametrize("rate", [2_000, again(10_000)])
def test_on_a_slow_line_little_is_on_its_way_and_a_key_is_answered_before_it(tmp_path: Path, rate: int) -> None:
    words = [sys.executable, "-W", "error", str(LIVE), "--report", str(tmp_path / "report.json")]
    with SlowLine(words, (80, 24), folder=tmp_path, rate=rate, delay=0.2) as line:
        line.wait_for("q quit")
        line.most_kept = 0.0  # the first picture may come before the first answer
        for key, heading in {"k": "Checkpoints of", "l": "▸ Log", "Y": "▸ Configuration", "?": "Keys for"}.items():
            line.press(key)
            line.wait_for(heading)
            before = len(line.raw)
            line.press("escape")  # while the rest of the screen is on its way
            line.wait_for(heading, absent=True)
            assert len(line.raw) - before <= 1.5 * rate + 2048
        assert line.most_kept <= 2048 + (0.9 + line.longest_pause) * rate
        for key, question in {"q": "Leave", "k": "Stop without saving"}.items():
            line.press(key)
            line.wait_for(question)
        line.press("y")
        line.wait()
        assert line.num_late == 0


@pytest.mark.slow
def test_the_state_line_says_that_the_line_is_slow(tmp_path: Path) -> None:
    words = [sys.executable, "-W", "error", str(LIVE)]
    with SlowLine(words, (120, 40), folder=tmp_path, rate=2_000, delay=0.2) as line:
        line.wait_for("link slow")


def test_a_burst_of_keys_does_not_pile_up_pictures(tmp_path: Path) -> None:
    """Each key changes the picture, and a key pressed after them is not answered after as many pictures.

    There are four a second besides, whatever the keys do.
    """
    with LiveScreen(tmp_path, bytes_per_second=10_000) as live:
        wait_for_news(live.terminal, 1)
        before = len(live.terminal.raw)
        for _ in range(20):
            live.terminal.press("down", "up")
        live.terminal.press("o")
        seconds = live.terminal.wait_for("screenshot: ")
        assert live.terminal.raw[before:].count(PICTURE) <= 8 + int(4 * seconds)


@pytest.mark.parametrize("rounds", [1, again(6)])
def test_a_storm_of_sizes_ends_in_the_right_picture(tmp_path: Path, rounds: int) -> None:
    with LiveScreen(tmp_path, size=(200, 60)) as live:
        for columns, rows in [(20, 5), (80, 24), (39, 9), (200, 60), (59, 14), (1, 1), (120, 40)] * rounds:
            live.terminal.resize(columns, rows)
            live.terminal.watch(0.02)
        live.terminal.wait_for("Devices")
        freeze(live.terminal)
        assert all(len(line.rstrip()) <= 120 for line in live.terminal.screen.display)
        assert live.leave()["exit_reason"] == "now"
        assert "Traceback" not in live.log_path.read_text()


def test_the_screenshot_is_what_the_terminal_shows(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, size=(120, 40)) as live:
        (tmp_path / "results" / "live").mkdir(parents=True)
        wait_for_news(live.terminal, 1)
        freeze(live.terminal)
        shown = [line.rstrip() for line in live.terminal.screen.display]
        live.terminal.press("o")
        live.terminal.wait_for(r"screenshot: .*\.txt and results/live/screenshots/.*\.svg")
        (text,) = (tmp_path / "results" / "live" / "screenshots").glob("*.txt")
        assert text.read_text().splitlines()[:-2] == shown[:-2]
        picture = text.with_suffix(".svg").read_text()
        assert "⣀" in picture or "⡀" in picture
        assert "Walker0" in picture


def test_what_was_chosen_is_kept_when_a_signal_ends_the_run(tmp_path: Path) -> None:
    with LiveScreen(tmp_path, "--preferences", str(tmp_path / "state")) as live:
        live.terminal.press("2")
        live.terminal.wait_for("▸ 2 Walker1")
        os.kill(live.terminal.process.pid, signal.SIGTERM)
        live.report()
    (kept,) = (tmp_path / "state" / "runs").glob("*.json")
    assert json.loads(kept.read_text())["behavior"] == "Walker1"
