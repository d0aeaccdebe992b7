"""The run on a stream: readable lines, or every event as a line of JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, TextIO, TypeAlias

from rl_tui.engine.running.writers.console_details import Details, clock_time
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointFailed,
    CheckpointRemoved,
    CheckpointSaved,
    CommandAsked,
    CommandFinished,
    Envelope,
    EnvironmentFailed,
    EvaluationReported,
    Event,
    ExportFailed,
    HyperparameterChanged,
    LessonChanged,
    LogEmitted,
    LogLevel,
    MetricsReported,
    NoteAdded,
    PolicyExported,
    RunStarted,
    RunStateChanged,
    WarningCleared,
    WarningRaised,
    WorkerFailed,
    encode,
)
from rl_tui.engine.session.states import BAD_ENDS
from rl_tui.engine.session.text import excerpt, safe_text
from rl_tui.engine.session.view import COMMAND_WORDS

LogFormat: TypeAlias = Literal["text", "json"]
Line: TypeAlias = tuple[LogLevel, str, str]  # level, one line of text, further lines (a traceback) or ""


class ConsoleWriter:
    """Writes each event as one line and flushes it. Used by one thread; the stream stays its opener's.

    "text": summaries in ML-Agents' form and a line per thing that happened; what only moves a screen (progress, time
    split, devices, single episodes) has no line. "json": every event as `encode` writes it. Lines of level debug, the
    time of each line and all of a failed environment's traceback need `debug`. That the run and its behaviors have
    started is printed once it trains, with `debug` as it happens: a run that fails before leaves nothing behind. Why it
    could not start is left to whoever started it.
    has_trained: the run trains already, and its first lines were shown otherwise.
    failed: why writing ended when the reader went away; the run goes on without it. None while all is well.
    """

    def __init__(
        self, stream: TextIO, log_format: LogFormat = "text", *, debug: bool = False, has_trained: bool = False
    ):
        self.failed: str | None = None
        self._stream = stream
        self._format = log_format
        self._debug = debug
        self._details = Details()
        self._has_trained = has_trained
        self._starts: list[Envelope] = []  # of the run and its behaviors, which have started once the run trains
        self._asked: dict[str, str] = {}  # commands without an outcome, in words, by id
        self._warnings: dict[tuple[str, str], str] = {}  # that still hold: their messages by kind and behavior

    def write(self, envelope: Envelope) -> None:
        """Print the event, where it has a line."""
        if self._format == "json":
            self._print(encode(envelope))
        else:
            self._print_lines(envelope)

    def close(self) -> None:
        """Nothing is left to do: every line was flushed."""

    def _print_lines(self, envelope: Envelope) -> None:
        """Print what the event says, and before it what was held back until the run trains."""
        event = envelope.event
        if isinstance(event, RunStarted | BehaviorStarted) and not (self._has_trained or self._debug):
            self._starts.append(envelope)
            return
        if isinstance(event, EnvironmentFailed | BehaviorStateChanged) and self._starts:
            return  # it could not start
        if isinstance(event, RunStateChanged) and event.state == "training":
            starts, self._starts = self._starts, []
            for start in starts:
                self._print_line(start)
        self._print_line(envelope)

    def _print_line(self, envelope: Envelope) -> None:
        event = envelope.event
        prefix = f"{clock_time(envelope.time)} " if self._debug else ""
        described = self._describe(event)
        if described is not None:
            self._print_described(event, described, prefix)
        more = self._details.about(event) if self._debug else None
        if more is not None:
            self._print(f"{prefix}[DEBUG] {safe_text(more)}")

    def _print_described(self, event: Event, described: Line, prefix: str) -> None:
        level, line, details = described
        if level == "debug" and not self._debug:
            return
        text = f"{prefix}[{level.upper()}] {safe_text(line)}"
        if details:
            whole = self._debug or isinstance(event, WorkerFailed)
            text += "\n" + safe_text(details if whole else excerpt(details), multiline=True).rstrip("\n")
        self._print(text)

    def _describe(self, event: Event) -> Line | None:
        match event:
            case CommandAsked():
                self._asked[event.id] = _words(event)
                return "info", f"Asked: {self._asked[event.id]}", ""
            case CommandFinished():
                asked = self._asked.pop(event.id, f"command {event.id}")
                line = f"{'Done' if event.ok else 'Failed'}: {asked}{_because(event.message)}"
                return "info" if event.ok else "error", line, ""
            case WarningRaised():
                self._warnings[event.kind, event.behavior] = event.message
                return _warned(event)
            case WarningCleared():
                message = self._warnings.pop((event.kind, event.behavior), event.kind)
                return "info", f"{_about(event.behavior)}no longer: {message}", ""
            case RunStateChanged():
                self._has_trained |= event.state == "training"
                return _run_state(event if self._has_trained else replace(event, reason=""))
            case _:
                describe = _LINES.get(type(event))
                return None if describe is None else describe(event)

    def _print(self, text: str) -> None:
        if self.failed is not None:
            return
        encoding = self._stream.encoding or "utf-8"
        try:
            # A name in letters that the stream's encoding lacks must not end the run.
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
            self._stream.flush()
        except OSError as error:  # BrokenPipeError behind `| head`, EIO after the terminal went away
            self.failed = error.strerror or str(error)
        except ValueError as error:  # the stream was closed
            self.failed = str(error)


def summary_line(event: MetricsReported) -> str:
    """The summary in ML-Agents' words, without the level that it stands behind."""
    parts = [event.behavior, f"Step: {event.step}", f"Time Elapsed: {event.elapsed_seconds:0.3f} s"]
    if event.mean_return is None:
        parts.append("No episode was completed since last summary")
    else:
        parts.append(f"Mean Reward: {event.mean_return:0.3f}")
        parts.append(f"Std of Reward: {event.std_return or 0.0:0.3f}")
    parts.append("Training" if event.is_training else "Not Training")
    return ". ".join(parts) + "."


def _summary(event: MetricsReported) -> Line:
    return "info", summary_line(event), ""


def _evaluated(event: EvaluationReported) -> Line:
    parts = [event.behavior, f"Step: {event.step}", f"Evaluation of {event.episodes} episodes"]
    parts.append(f"Mean Reward: {event.mean_return:0.3f}. Std of Reward: {event.std_return:0.3f}")
    parts.append(f"Mean Length: {event.mean_length:0.1f}. Took: {event.seconds:0.1f} s")
    return "info", ". ".join(parts) + ".", ""


def _run_started(event: RunStarted) -> Line:
    verb = "resumed" if event.resumed else "started"
    versions = ", ".join(f"{library} {version}" for library, version in event.versions.items())
    return "info", f"Run {event.run_id} {verb} in {event.path} (seed {event.seed}, {event.device}; {versions})", ""


def _run_state(event: RunStateChanged) -> Line:
    ending = "" if event.exit_code is None else f" (exit code {event.exit_code})"
    return _state_level(event.state), f"Run {event.state}{_because(event.reason)}{ending}", ""


def _behavior_started(event: BehaviorStarted) -> Line:
    steps = f" from step {event.step} of {event.max_steps}" if event.max_steps else ", only acting"
    line = (
        f"{event.behavior}: {event.algorithm} on {event.environment}{steps}, "
        f"{event.num_agents} agents, {event.num_parameters} parameters, "
        f"{'threaded' if event.threaded else 'not threaded'}"
    )
    return "info", line, ""


def _behavior_state(event: BehaviorStateChanged) -> Line:
    return _state_level(event.state), f"{event.behavior}: {event.state}{_because(event.reason)}", ""


def _saved(event: CheckpointSaved) -> Line:
    facts: list[str] = [event.reason]
    if event.mean_return is not None:
        facts.append(f"mean reward {event.mean_return:0.3f}")
    if event.is_best:
        facts.append("best so far")
    return "info", f"{event.behavior}: saved step {event.step} to {event.path} ({', '.join(facts)})", ""


def _save_failed(event: CheckpointFailed) -> Line:
    return "error", f"{event.behavior}: step {event.step} not saved ({event.reason}): {event.message}", ""


def _removed(event: CheckpointRemoved) -> Line:
    return "info", f"{event.behavior}: removed the checkpoint of step {event.step}, {event.path}", ""


def _exported(event: PolicyExported) -> Line:
    difference = f"differs by {event.max_difference:.1e} at most"
    return "info", f"{event.behavior}: exported step {event.step} to {event.path} ({difference})", ""


def _export_failed(event: ExportFailed) -> Line:
    return "error", f"{event.behavior}: step {event.step} not exported: {event.message}", ""


def _log(event: LogEmitted) -> Line:
    return event.level, f"{event.source}: {event.message}" if event.source else event.message, ""


def _environment_failed(event: EnvironmentFailed) -> Line:
    line = f"Environment {event.environment} failed, ending {', '.join(event.behaviors)}: {event.reason}"
    return "error", line, event.detail


def _worker_failed(event: WorkerFailed) -> Line:
    return "error", f"{event.worker} failed: {event.error}", event.traceback


def _changed(event: HyperparameterChanged) -> Line:
    return "info", f"{event.behavior}: {event.name} {event.old:.6g} -> {event.new:.6g} from step {event.step}", ""


def _rolled_back(event: BehaviorRolledBack) -> Line:
    steps = f"from step {event.from_step} to step {event.step}"
    return "warning", f"{event.behavior}: rolled back {steps}, {event.path}", ""


def _lesson(event: LessonChanged) -> Line:
    name = f" ({event.name})" if event.name else ""
    lesson = f"lesson {event.lesson} of {event.num_lessons}{name}"
    return "info", f"{event.behavior}: {event.parameter} goes on to {lesson} at step {event.step}", ""


def _note(event: NoteAdded) -> Line:
    return "info", f"Note{_on(event.behavior)}: {event.text}", ""


def _warned(event: WarningRaised) -> Line:
    return "warning", f"{_about(event.behavior)}{event.message}{'; ' if event.advice else ''}{event.advice}", ""


def _about(behavior: str) -> str:
    return f"{behavior}: " if behavior else ""


def _on(behavior: str | None) -> str:
    return f" on {behavior}" if behavior else ""


def _words(event: CommandAsked) -> str:
    """What a user calls the command: "checkpoint of Walker", "pause of all behaviors", "stop"."""
    words = COMMAND_WORDS.get(event.name, event.name)
    if event.behavior is None and event.name in ("Stop", "AddNote"):
        return words
    return f"{words} of {event.behavior or 'all behaviors'}"


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _state_level(state: str) -> LogLevel:
    return "error" if state in BAD_ENDS else "info"


_LINES: Mapping[type, Callable[[Any], Line]] = {
    RunStarted: _run_started,
    BehaviorStarted: _behavior_started,
    BehaviorStateChanged: _behavior_state,
    MetricsReported: _summary,
    EvaluationReported: _evaluated,
    CheckpointSaved: _saved,
    CheckpointFailed: _save_failed,
    CheckpointRemoved: _removed,
    PolicyExported: _exported,
    ExportFailed: _export_failed,
    HyperparameterChanged: _changed,
    BehaviorRolledBack: _rolled_back,
    LessonChanged: _lesson,
    NoteAdded: _note,
    LogEmitted: _log,
    EnvironmentFailed: _environment_failed,
    WorkerFailed: _worker_failed,
}
