"""The run on a stream: readable lines, or every event as a line of JSON."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace
from typing import Literal, TextIO, TypeAlias

from rl_tui.engine.running.writers.debug_lines import DebugLines
from rl_tui.engine.session.codec import encode
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    BehaviorStateChanged,
    CommandAsked,
    CommandFinished,
    Envelope,
    EnvironmentFailed,
    Event,
    MetricsReported,
    RunStarted,
    RunStateChanged,
    WarningCleared,
    WarningRaised,
    WorkerFailed,
)
from rl_tui.engine.session.sentences import Sentence, command_finished, sentence_of, summary, warning_cleared
from rl_tui.engine.session.text import excerpt, safe_text

LogFormat: TypeAlias = Literal["text", "json"]


class ConsoleWriter:
    """Writes each event as one line and flushes it. Used by one thread; does not close the stream.

    "text": summaries in ML-Agents' form and a line for each thing that happened; what only updates a screen (progress,
    time split, devices, ranks, single episodes) has no line. "json": every event as `encode` writes it. Debug lines,
    the time of each line and the whole traceback of a failed environment need `debug`. That the run and its behaviors
    have started is printed once it trains, with `debug` as it happens, so that a run that fails at the start does not
    bury its error; the error itself is printed by the caller. The reason of a failure is printed once, and again at the
    end of the run if there were summaries in between.
    has_trained: the run trains already, and its first lines were shown by other means. offline: behaviors that have
    started by then and learn without acting.
    failed: why writing stopped when the reader disconnected; the run continues without it. None otherwise.
    """

    def __init__(
        self,
        stream: TextIO,
        log_format: LogFormat = "text",
        *,
        debug: bool = False,
        has_trained: bool = False,
        offline: Collection[str] = (),
    ):
        self.failed: str | None = None
        self._stream = stream
        self._format = log_format
        self._debug = debug
        self._debug_lines = DebugLines()
        self._has_trained = has_trained
        self._offline = set(offline)
        self._starts: list[Envelope] = []  # of the run and its behaviors, printed once the run trains
        self._commands: dict[str, CommandAsked] = {}  # those without an outcome, by id
        self._reasons: list[str] = []  # of failures, printed since the newest summary
        self._warnings: dict[tuple[str, str], str] = {}  # active ones: their messages by kind and behavior

    def write(self, envelope: Envelope) -> None:
        """Print the event if it has a line."""
        if self._format == "json":
            self._print(encode(envelope))
        else:
            self._print_lines(envelope)

    def close(self) -> None:
        """Do nothing: every line was flushed."""

    def _print_lines(self, envelope: Envelope) -> None:
        """Print the event's lines, and before them what was held back until the run trains."""
        event = envelope.event
        if isinstance(event, BehaviorStarted) and event.learns_offline:
            self._offline.add(event.behavior)
        if isinstance(event, RunStarted | BehaviorStarted) and not (self._has_trained or self._debug):
            self._starts.append(envelope)
            return
        if isinstance(event, EnvironmentFailed | BehaviorStateChanged) and self._starts:
            return  # it could not start
        if isinstance(event, RunStateChanged) and event.state == "training":
            starts, self._starts = self._starts, []
            for start in starts:
                self._print_event(start)
        self._print_event(envelope)

    def _print_event(self, envelope: Envelope) -> None:
        event = envelope.event
        prefix = f"{clock_time(envelope.time)} " if self._debug else ""
        said = self._describe(self._without_repetition(event))
        if said is not None and (self._debug or said.level != "debug"):
            text = f"{prefix}[{said.level.upper()}] {safe_text(said.line)}"
            if said.details:
                is_whole = self._debug or isinstance(event, WorkerFailed)
                details = said.details if is_whole else excerpt(said.details)
                text += "\n" + safe_text(details, multiline=True).rstrip("\n")
            self._print(text)
        for more in self._debug_lines.follow(envelope) if self._debug else []:
            self._print(f"{prefix}[DEBUG] {safe_text(more)}")

    def _describe(self, event: Event) -> Sentence | None:
        """With what earlier events have said."""
        match event:
            case CommandAsked():
                self._commands[event.id] = event
            case CommandFinished():
                asked = self._commands.pop(event.id, CommandAsked(event.id, f"command {event.id}", None))
                return command_finished(event, asked.name, asked.behavior)
            case MetricsReported():
                return summary(event, learns_offline=event.behavior in self._offline)
            case WarningRaised():
                self._warnings[event.kind, event.behavior] = event.message
            case WarningCleared():
                return warning_cleared(event, self._warnings.pop((event.kind, event.behavior), event.kind))
            case RunStateChanged():
                self._has_trained |= event.state == "training"
                if event.state == "failed" and not self._has_trained:
                    event = replace(event, reason="")
        return sentence_of(event)

    def _without_repetition(self, event: Event) -> Event:
        """The event, without its reason if all of that was printed."""
        if isinstance(event, MetricsReported):
            self._reasons.clear()
        if not isinstance(event, EnvironmentFailed | BehaviorStateChanged | RunStateChanged) or not event.reason:
            return event
        rest = event.reason
        for printed in self._reasons:
            rest = rest.replace(printed, "")
        self._reasons.append(event.reason)
        if isinstance(event, EnvironmentFailed) or rest.strip("; "):
            return event
        return replace(event, reason="")

    def _print(self, text: str) -> None:
        if self.failed is not None:
            return
        encoding = self._stream.encoding or "utf-8"
        try:
            # A name with letters that the stream's encoding lacks must not end the run.
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
            self._stream.flush()
        except OSError as error:  # BrokenPipeError behind `| head`, EIO after the terminal disconnected
            self.failed = error.strerror or str(error)
        except ValueError as error:  # the stream was closed
            self.failed = str(error)


def clock_time(seconds: float) -> str:
    """Local date and time to the millisecond, as in 2026-01-31 12:00:00.125."""
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))}.{int(seconds * 1000) % 1000:03}"
