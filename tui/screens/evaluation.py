"""A run's policy played in a process of its own: how far it is, and then what it earned."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Callable, Sequence
from contextlib import closing, suppress

from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.drawing.text import duration, wrapped
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.screens.dialog import PaneDialog
from rl_tui.tui.terminal.relaunch import relaunch_command
from rl_tui.tui.terminal.sequences import copy_text

LINES_KEPT = 100
ROWS_SHOWN = 12  # the last, so that the keys stay visible
ENDING_SECONDS = 2.0  # that a program may take to end


class EvaluationScreen(PaneDialog):
    """Owns the process: leaving the dialog ends it."""

    BINDINGS = bindings("evaluating")

    def __init__(self, run_id: str, words: Sequence[str]) -> None:
        """words: the command line of rl-tui that evaluates the run."""
        self._output = EvaluationPane(run_id)
        super().__init__(self._output)
        self._words = words
        self._is_left = asyncio.Event()

    def on_mount(self) -> None:
        """It begins, in a task of its own: a worker of the screen's could be canceled before the process is gone."""
        self._playing = asyncio.create_task(self._play())

    async def on_unmount(self) -> None:
        """The process is ended, and waited for: one that was not is a warning of Python's."""
        self._is_left.set()
        await self._playing

    async def _play(self) -> None:
        transport, process = await asyncio.get_running_loop().subprocess_exec(
            lambda: Process(self._output.append), *relaunch_command(self._words),
            stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, start_new_session=True,
        )  # fmt: skip
        with closing(transport):
            ended = asyncio.create_task(process.ended.wait())
            left = asyncio.create_task(self._is_left.wait())
            await asyncio.wait([ended, left], return_when=asyncio.FIRST_COMPLETED)
            self._output.exit_code = transport.get_returncode()
            for number in (signal.SIGTERM, signal.SIGKILL):
                if transport.get_returncode() is None:
                    with suppress(ProcessLookupError):
                        os.killpg(transport.get_pid(), number)
                    await asyncio.wait([ended], timeout=ENDING_SECONDS)
            for waiting in (ended, left):
                waiting.cancel()

    def action_end(self) -> None:
        """It ends, if it has not; back to the runs."""
        self.dismiss(self._output.exit_code == 0)

    def action_copy(self) -> None:
        """Copy what it printed."""
        self._output.note = copy_text(self.app, "\n".join(self._output.printed()))


class Process(asyncio.SubprocessProtocol):
    """Passes on what a process prints. ended: it is gone, and all that it printed was passed on."""

    def __init__(self, printed: Callable[[str], None]) -> None:
        self.ended = asyncio.Event()
        self._printed = printed

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It printed this."""
        self._printed(data.decode("utf-8", "replace"))

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone, and its pipes are closed."""
        self.ended.set()


class EvaluationPane(Pane):
    """The last lines that the process printed. exit_code: None while it runs; note: the outcome of a key."""

    def __init__(self, run_id: str) -> None:
        super().__init__()
        self.exit_code: int | None = None
        self.note = ""
        self._run_id = run_id
        self._text = ""
        self._began, self._ended = time.monotonic(), 0.0

    def append(self, text: str) -> None:
        """More was printed."""
        self._text = "\n".join((self._text + text).split("\n")[-LINES_KEPT:])
        self._ended = time.monotonic()

    def printed(self) -> list[str]:
        """Its lines, of those on progress the newest alone and only while there is nothing else."""
        lines = [safe_text(each) for each in self._text.split("\n") if each.strip()]
        results = [each for each in lines if not each.endswith(" so far")]
        return results or lines[-1:]

    def wanted_height(self, frame: Frame, width: int) -> int:
        """All of it."""
        return len(self.lines(frame, width, 0))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """How it stands, what was printed, the keys."""
        glyphs, printed = frame.glyphs, self.printed()
        took = duration((time.monotonic() if self.exit_code is None else self._ended) - self._began)
        if self.exit_code is None:
            head = Span(f"{glyphs.waiting} Evaluating {safe_text(self._run_id)}, {took}", "strong")
        elif self.exit_code == 0:
            head = Span(f"{glyphs.done} {safe_text(self._run_id)} evaluated in {took}", "good")
        else:
            head = Span(f"{glyphs.failed} {safe_text(self._run_id)}: exit code {self.exit_code} after {took}", "bad")
        rows = [line(row) for each in printed for row in wrapped(each, max(2, width))][-ROWS_SHOWN:]
        end = "back" if self.exit_code is not None else "cancel; the run is not changed either way"
        keys = [line(Span("  y    ", "accent"), "copy", Span(f"  {self.note}", "dim"))] if printed else []
        keys += [line(Span(f"{glyphs.marker} esc  ", "accent"), Span(end, "strong"))]
        rows = rows or [line(Span("starting", "dim"))]
        if 0 < height < len(rows) + len(keys) + 3:  # the figures are printed last
            return [line(head), *rows[-max(1, height - len(keys) - 1) :], *keys]
        return [line(head), line(), *rows, line(), *keys]
