"""Writers that fail alone: in the thread of the run's own files, or each in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rl_tui.engine import registry
from rl_tui.engine.config.diagnostics import visible
from rl_tui.engine.config.requirements import missing_library
from rl_tui.engine.config.writers import KIND, WriterSettings
from rl_tui.engine.errors import PluginError, RlTuiError
from rl_tui.engine.process.interrupts import is_interrupt
from rl_tui.engine.process.leaving import leave_behind
from rl_tui.engine.process.tracebacks import place_of, text_of, user_traceback
from rl_tui.engine.running.announcements import save_traceback
from rl_tui.engine.running.threads import spawn
from rl_tui.engine.running.writers.base import Writer, WriterContext
from rl_tui.engine.session.bus import MAILBOX_SIZE, EventBus
from rl_tui.engine.session.messages import Envelope

DRAIN_SECONDS = 0.5  # events are written in batches, since every wake-up of a thread delays learning
CLOSING_SECONDS = 20.0
CLOSING_NOW_SECONDS = 2.0  # where the run is stopped without saving
QUIET_SECONDS = 1.0  # of these; then the user reads what the program waits for

LONGEST_REASON = 500  # characters


class GuardedWriter:
    """A writer that fails alone. Used by one thread.

    It is made with the first event. What it raises is logged once, with the traceback in `output`; then it is closed
    and left out.
    """

    def __init__(self, name: str, settings: WriterSettings, context: WriterContext, bus: EventBus, output: Path):
        self.has_failed = False
        self._name = name
        self._settings = settings
        self._context = context
        self._bus = bus
        self._output = output
        self._writer: Writer | None = None

    def write(self, envelope: Envelope) -> None:
        """Pass the event on, unless the writer has failed."""
        if self.has_failed:
            return
        doing = "write"
        try:
            if self._writer is None:
                doing = "its constructor"
                if missing := missing_library(self._settings):
                    raise PluginError(missing)
                self._writer = registry.implementation(KIND, self._name)(self._settings, self._context)
                doing = "write"
            self._writer.write(envelope)
        except BaseException as error:  # whatever it is, it must cost no more than this writer
            if is_interrupt(error):
                raise
            self._leave_out(doing, error)
            self.close()

    def close(self) -> None:
        """Let it write what is left. Only once, and only if it was made."""
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                writer.close()
            except BaseException as error:  # noqa: BLE001  # as above
                self._leave_out("close", error)

    def _leave_out(self, doing: str, error: BaseException) -> None:
        if self.has_failed:
            return
        self.has_failed = True
        name = source_of(self._name)
        outcome = "Its last entries may be missing" if doing == "close" else "It is left out; the run continues"
        self._bus.log("error", name, f"{self._reason(doing, error)}. {outcome}")
        cause = error.__cause__ if isinstance(error, RlTuiError) else error
        if cause is not None:
            title = f"{name} failed in {doing}:"
            save_traceback(self._bus, name, name, self._output, title, user_traceback(cause))

    def _reason(self, doing: str, error: BaseException) -> str:
        """One line: the package, the call, its exception, and where in the plug-in's code."""
        text = visible(" ".join(text_of(error).split()), LONGEST_REASON)
        if isinstance(error, RlTuiError):
            return text
        package = registry.package_of(KIND, self._name)
        place = place_of(error)
        raised = f"{doing} raised {type(error).__name__}{f': {text}' if text else ''}"
        return f"{f'{package}: ' if package else ''}{raised}{f', at {place}' if place else ''}"


class WriterThread:
    """A writer in a thread of its own, with a mailbox of its own from the moment on that this is made."""

    def __init__(self, name: str, writer: GuardedWriter, bus: EventBus):
        self.name = name
        self._writer = writer
        self._bus = bus
        self._subscription = bus.subscribe(MAILBOX_SIZE)
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._has_lost = False

    def start(self, on_failure: Callable[[BaseException], None]) -> None:
        """Let it write, first what has been published before."""
        self._thread = spawn(source_of(self.name), self._main, self._bus, on_failure)

    def check(self) -> None:
        """Log once that events were lost, because the writer is that far behind. The coordinator's thread."""
        if self._subscription.dropped and not self._has_lost and not self._writer.has_failed:
            self._has_lost = True
            text = f"is more than {MAILBOX_SIZE:,} events behind, and is losing events; events.jsonl has all of them"
            self._bus.log("warning", source_of(self.name), text)

    def close(self) -> None:
        """Let it write the events so far, and return."""
        self._subscription.close()
        self._closing.set()

    def has_ended(self, deadline: float) -> bool:
        """Whether it has written everything, waiting until `deadline` (monotonic) for it."""
        if self._thread is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        return self._thread is None or not self._thread.is_alive()

    def _main(self) -> None:
        while not self._closing.wait(DRAIN_SECONDS):
            self._write()
        self._write()
        self._writer.close()

    def _write(self) -> None:
        for envelope in self._subscription.drain():
            self._writer.write(envelope)
        if self._writer.has_failed:
            self.close()


class WriterThreads:
    """The writers of a run that have threads of their own. Used by the coordinator."""

    def __init__(self, writers: Mapping[str, GuardedWriter], bus: EventBus):
        self._bus = bus
        self._threads = [WriterThread(name, writer, bus) for name, writer in writers.items()]

    def start(self, on_failure: Callable[[BaseException], None]) -> None:
        """Let them write, now that the run trains: one that cannot start leaves no trace anywhere."""
        for thread in self._threads:
            thread.start(on_failure)

    def check(self) -> None:
        """Log once of each writer that it has lost events."""
        for thread in self._threads:
            thread.check()

    def close(self, is_now: bool) -> None:
        """Everything is written; a writer that takes too long is left behind, with a warning.

        is_now: the run was stopped without saving.
        """
        start, seconds = time.monotonic(), CLOSING_NOW_SECONDS if is_now else CLOSING_SECONDS
        for thread in self._threads:
            thread.close()
        for thread in self._threads:
            thread.check()
            if not thread.has_ended(start + QUIET_SECONDS):
                self._bus.log("info", source_of(thread.name), f"has up to {seconds:g} s to finish")
            if not thread.has_ended(start + seconds):
                leave_behind()
                text = f"has not finished within {seconds:g} s and is left behind: its newest entries may be lost"
                self._bus.log("warning", source_of(thread.name), text)


def source_of(name: str) -> str:
    """What a writer is called in the log."""
    return f"writer {name}"
