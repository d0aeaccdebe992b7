"""Events as lines of text, and the further lines that `--debug` adds about sizes, times and devices."""

from __future__ import annotations

from typing import NamedTuple

from rl_tui.engine.running.machine.memory import size_text
from rl_tui.engine.session.environment_view import bare_reason, worker_word
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointFailed,
    CheckpointRemoved,
    CheckpointSaved,
    CommandAsked,
    DevicesSampled,
    EnvironmentAwaits,
    EnvironmentFailed,
    EnvironmentRestarted,
    EnvironmentRestarting,
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
    TimeSplit,
    WarningRaised,
    WorkerFailed,
)
from rl_tui.engine.session.states import BAD_ENDS
from rl_tui.engine.session.text import counted
from rl_tui.engine.session.view import COMMAND_WORDS

LOSSES = "Losses/"  # tags of these begin with it


class Line(NamedTuple):
    """One line of text. details: further lines (a traceback), or ""."""

    level: LogLevel
    text: str
    details: str = ""


def line_of(event: Event) -> Line | None:
    """The line of an event that needs no earlier one to be described; None for any other."""
    return (
        _run_line(event)
        or _environment_line(event)
        or _behavior_line(event)
        or _report_line(event)
        or _file_line(event)
    )


def summary_line(event: MetricsReported, *, learns_offline: bool = False) -> str:
    """The summary in ML-Agents' words; of a behavior that learns without acting, its losses."""
    parts = [event.behavior, f"Step: {event.step}", f"Time Elapsed: {event.elapsed_seconds:0.3f} s"]
    if learns_offline:
        losses = {tag.removeprefix(LOSSES): loss for tag, loss in event.metrics.items() if tag.startswith(LOSSES)}
        parts += [f"{name}: {loss:.4g}" for name, loss in losses.items()]
    elif event.mean_return is None:
        parts.append("No episode was completed since last summary")
    else:
        parts.append(f"Mean Reward: {event.mean_return:0.3f}")
        parts.append(f"Std of Reward: {event.std_return or 0.0:0.3f}")
    parts.append("Training" if event.is_training else "Not Training")
    return ". ".join(parts) + "."


def command_words(event: CommandAsked) -> str:
    """What a user calls the command: "checkpoint of Walker", "pause of all behaviors", "stop"."""
    words = COMMAND_WORDS.get(event.name, event.name)
    if event.behavior is None and event.name in ("Stop", "AddNote"):
        return words
    return f"{words} of {event.behavior or 'all behaviors'}"


def warning_line(event: WarningRaised) -> Line:
    """A warning of the run's health, with its advice."""
    return Line("warning", f"{prefixed(event.behavior)}{event.message}{'; ' if event.advice else ''}{event.advice}")


def run_state_line(event: RunStateChanged) -> Line:
    """The run's new state."""
    ending = "" if event.exit_code is None else f" (exit code {event.exit_code})"
    return Line(_state_level(event.state), f"Run {event.state}{because(event.reason)}{ending}")


def prefixed(behavior: str) -> str:
    """The behavior's name before a message, "" for none."""
    return f"{behavior}: " if behavior else ""


def because(reason: str) -> str:
    """The reason behind a statement, "" for none."""
    return f": {reason}" if reason else ""


class DebugLines:
    """What `--debug` adds to the events of one run. Used by one thread."""

    def __init__(self) -> None:
        self._splits: dict[str, TimeSplit] = {}
        self._has_devices = False

    def follow(self, event: Event) -> str | None:
        """One line to print below the event's own; None where there is nothing to add."""
        match event:
            case TimeSplit():
                self._splits[event.behavior] = event
            case MetricsReported() if split := self._splits.get(event.behavior):
                return _time_split(split)
            case CheckpointSaved():
                size = size_text(event.size_bytes)
                return f"{event.behavior}: checkpoint of step {event.step}: {size} in {event.seconds:.3f} s"
            case PolicyExported():
                return f"{event.behavior}: export of step {event.step}: written and checked in {event.seconds:.3f} s"
            case DevicesSampled() if not self._has_devices:
                self._has_devices = True
                return _devices(event)
        return None


def _time_split(split: TimeSplit) -> str:
    return (
        f"{split.behavior}: seconds so far: environment {split.environment_seconds:.1f}, policy"
        f" {split.inference_seconds:.1f}, updates {split.update_seconds:.1f}, waiting {split.waiting_seconds:.1f},"
        f" other {split.other_seconds:.1f}"
    )


def _devices(event: DevicesSampled) -> str:
    gpus = ", ".join(gpu.name for gpu in event.gpus) or event.gpu_note
    free = size_text(max(0, event.memory_total_bytes - event.memory_used_bytes))
    return f"machine: {event.num_cpus} CPUs, {free} of memory free, {size_text(event.disk_free_bytes)} of disk; {gpus}"


def _run_line(event: Event) -> Line | None:
    match event:
        case RunStarted():
            verb = "resumed" if event.resumed else "started"
            versions = ", ".join(f"{library} {version}" for library, version in event.versions.items())
            place = f"{event.path} (seed {event.seed}, {event.device}; {versions})"
            return Line("info", f"Run {event.run_id} {verb} in {place}")
        case LogEmitted():
            return Line(event.level, f"{prefixed(event.source)}{event.message}")
        case WorkerFailed():
            return Line("error", f"{event.worker} failed: {event.error}", event.traceback)
        case NoteAdded():
            return Line("info", f"Note{f' on {event.behavior}' if event.behavior else ''}: {event.text}")
    return None


def _environment_line(event: Event) -> Line | None:
    match event:
        case EnvironmentFailed():
            ending = f", ending {', '.join(event.behaviors)}" if event.behaviors else ""
            text = f"Environment {event.environment} failed{ending}: {event.reason}"
            return Line("error", text, event.detail)
        case EnvironmentRestarting():
            which = f"{worker_word(event.environment)} {event.worker}, restart {event.count}"
            return Line("warning", f"Environment {event.environment}: {which}: {bare_reason(event)}", event.detail)
        case EnvironmentRestarted():
            text = f"{worker_word(event.environment)} {event.worker} acts again after {event.seconds:.1f} s"
            return Line("info", f"Environment {event.environment}: {text}")
        case EnvironmentAwaits() if event.text:
            return Line("info", f"Environment {event.environment}: {event.text}")
    return None


def _behavior_line(event: Event) -> Line | None:
    match event:
        case BehaviorStarted():
            steps = f" from step {event.step} of {event.max_steps}" if event.max_steps else ", inference only"
            counts = f"{counted(event.num_agents, 'agent')}, {counted(event.num_parameters, 'parameter')}"
            threads = "threaded" if event.threaded else "not threaded"
            text = f"{event.behavior}: {event.algorithm} on {event.environment}{steps}, {counts}, {threads}"
            return Line("info", text)
        case BehaviorStateChanged():
            return Line(_state_level(event.state), f"{event.behavior}: {event.state}{because(event.reason)}")
        case HyperparameterChanged():
            change = f"{event.name} {event.old:.6g} -> {event.new:.6g}"
            return Line("info", f"{event.behavior}: {change} from step {event.step}")
        case BehaviorRolledBack():
            steps = f"from step {event.from_step} to step {event.step}"
            return Line("warning", f"{event.behavior}: rolled back {steps}, {event.path}")
        case LessonChanged():
            lesson = f"lesson {event.lesson} of {event.num_lessons}{f' ({event.name})' if event.name else ''}"
            return Line("info", f"{event.behavior}: {event.parameter} goes to {lesson} at step {event.step}")
    return None


def _report_line(event: Event) -> Line | None:
    match event:
        case MetricsReported():
            return Line("info", summary_line(event))
        case EvaluationReported():
            parts = [event.behavior, f"Step: {event.step}", f"Evaluation of {counted(event.episodes, 'episode')}"]
            parts.append(f"Mean Reward: {event.mean_return:0.3f}. Std of Reward: {event.std_return:0.3f}")
            parts.append(f"Mean Length: {event.mean_length:0.1f}. Took: {event.seconds:0.1f} s.")
            return Line("info", ". ".join(parts))
    return None


def _file_line(event: Event) -> Line | None:
    match event:
        case CheckpointSaved():
            facts = f"{event.reason}{_worth(event)}{', best so far' if event.is_best else ''}"
            return Line("info", f"{event.behavior}: saved checkpoint at step {event.step}: {event.path} ({facts})")
        case CheckpointFailed():
            return Line("error", f"{event.behavior}: step {event.step} not saved ({event.reason}): {event.message}")
        case CheckpointRemoved():
            return Line("info", f"{event.behavior}: removed the checkpoint of step {event.step}, {event.path}")
        case PolicyExported():
            difference = f"max difference {event.max_difference:.1e}"
            return Line("info", f"{event.behavior}: exported policy at step {event.step}: {event.path} ({difference})")
        case ExportFailed():
            return Line("error", f"{event.behavior}: step {event.step} not exported: {event.message}")
    return None


def _worth(saved: CheckpointSaved) -> str:
    """What ranks it, where that is known."""
    if saved.mean_return is not None:
        return f", mean reward {saved.mean_return:0.3f}"
    return "" if saved.held_out_loss is None else f", held-out loss {saved.held_out_loss:0.3f}"


def _state_level(state: str) -> LogLevel:
    return "error" if state in BAD_ENDS else "info"
