"""All that a screen may know about a run: a pure fold of its events."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.session.messages import (
    BehaviorStarted,
    BehaviorState,
    BehaviorStateChanged,
    CheckpointFailed,
    CheckpointRemoved,
    CheckpointSaved,
    CommandAsked,
    CommandFinished,
    DevicesSampled,
    Envelope,
    EnvironmentFailed,
    EpisodesFinished,
    ExportFailed,
    LogEmitted,
    LogLevel,
    MetricsReported,
    PolicyExported,
    ProgressReported,
    RunStarted,
    RunState,
    RunStateChanged,
    TimeSplit,
    WorkerFailed,
)

HISTORY_POINTS = 4096  # more than any terminal has columns; thinned by two when full, so a run of days stays small
LOG_LINES = 1000
COMMANDS_KEPT = 50
COMMAND_WORDS = {  # what a user calls a command, by its class
    "Pause": "pause",
    "Resume": "resume",
    "SaveCheckpoint": "checkpoint",
    "ExportPolicy": "export",
    "Stop": "stop",
}


@dataclass(slots=True)
class History:
    """A curve that never outgrows HISTORY_POINTS: when full, neighbors are averaged and later points come in pairs.

    numpy can view xs and ys without a copy.
    """

    xs: array[float] = field(default_factory=lambda: array("d"))
    ys: array[float] = field(default_factory=lambda: array("d"))
    stride: int = 1  # points averaged into one
    pending: list[tuple[float, float]] = field(default_factory=list)

    def append(self, x: float, y: float) -> None:
        """Add one point; x must not decrease."""
        self.pending.append((x, y))
        if len(self.pending) < self.stride:
            return
        self.xs.append(self.pending[-1][0])
        self.ys.append(sum(y for _, y in self.pending) / len(self.pending))
        self.pending.clear()
        if len(self.xs) >= HISTORY_POINTS:
            self.ys = array("d", [(a + b) / 2 for a, b in zip(self.ys[::2], self.ys[1::2], strict=True)])
            self.xs = self.xs[1::2]
            self.stride *= 2

    def rewind(self, x: float) -> None:
        """Forget every point beyond `x`."""
        end = bisect_right(self.xs, x)
        del self.xs[end:], self.ys[end:]
        self.pending = [point for point in self.pending if point[0] <= x]

    def __len__(self) -> int:
        return len(self.xs)


@dataclass(slots=True)
class LogLine:
    """One line of the log pane. kind: a short word such as "CKPT" or the level in capitals."""

    time: float
    level: LogLevel
    kind: str
    source: str
    message: str


@dataclass(slots=True)
class CommandView:
    """What became of one command: state is "asked", "done" or "failed"."""

    id: str
    name: str
    behavior: str | None
    asked_at: float
    state: str = "asked"
    message: str = ""


@dataclass(slots=True)
class BehaviorView:
    """One behavior as a pane shows it. mean_return is that of the newest episodes; None before the first ended."""

    name: str
    algorithm: str = ""
    environment: str = ""
    state: BehaviorState = "starting"
    reason: str = ""
    step: int = 0
    sampled: int = 0
    max_steps: int = 0
    num_agents: int = 0
    num_parameters: int = 0
    threaded: bool = False
    num_updates: int = 0
    steps_per_second: float = 0.0
    num_episodes: int = 0
    mean_return: float | None = None
    best_return: float | None = None
    mean_length: float | None = None
    returns: History = field(default_factory=History)  # x = step, y = mean return of episodes that ended together
    metrics: dict[str, float] = field(default_factory=dict)  # latest summary by ML-Agents' tag
    metric_histories: dict[str, History] = field(default_factory=dict)
    time_split: TimeSplit | None = None
    checkpoints: list[tuple[float, CheckpointSaved]] = field(default_factory=list)  # (wall time, event), newest last
    exports: list[tuple[float, PolicyExported]] = field(default_factory=list)


@dataclass(slots=True)
class RunView:
    """The run as a screen shows it. Apply envelopes in order; nothing else changes it."""

    run: RunStarted | None = None
    state: RunState = "starting"
    reason: str = ""
    exit_code: int | None = None
    started_at: float | None = None
    now: float = 0.0  # wall time of the newest event
    last_number: int = 0
    behaviors: dict[str, BehaviorView] = field(default_factory=dict)  # in order of appearance
    devices: DevicesSampled | None = None
    log: deque[LogLine] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    commands: dict[str, CommandView] = field(default_factory=dict)  # newest last, at most COMMANDS_KEPT

    def apply(self, envelope: Envelope) -> None:
        """Fold one event in. Each kind of event has one function below."""
        self.now = max(self.now, envelope.time)
        self.last_number = envelope.number
        if self.started_at is None:
            self.started_at = envelope.time
        fold = _FOLDS.get(type(envelope.event))
        if fold is not None:
            fold(self, envelope.event, envelope.time)

    def behavior(self, name: str) -> BehaviorView:
        """The view of that behavior, made when it is new."""
        return self.behaviors.setdefault(name, BehaviorView(name))

    def add_log(self, time: float, level: LogLevel, kind: str, source: str, message: str) -> None:
        """Append one log line."""
        self.log.append(LogLine(time, level, kind, source, message))

    @property
    def steps_per_second(self) -> float:
        """Of all behaviors that train now."""
        return sum(b.steps_per_second for b in self.behaviors.values() if b.state == "training")

    @property
    def last_checkpoint_at(self) -> float | None:
        """Wall time of the newest checkpoint of any behavior."""
        return max((b.checkpoints[-1][0] for b in self.behaviors.values() if b.checkpoints), default=None)


def _run_started(view: RunView, event: RunStarted, time: float) -> None:
    view.run, view.started_at = event, time
    view.state, view.reason, view.exit_code = "starting", "", None  # a resumed run has not ended
    verb = "resumed" if event.resumed else "started"
    view.add_log(time, "info", "RUN", event.run_id, f"{verb} in {event.path} (seed {event.seed}, {event.device})")


def _run_state(view: RunView, event: RunStateChanged, time: float) -> None:
    view.state, view.reason = event.state, event.reason
    if event.exit_code is not None:
        view.exit_code = event.exit_code
    message = event.state + (f": {event.reason}" if event.reason else "")
    view.add_log(time, "error" if event.state == "failed" else "info", "RUN", "", message)


def _behavior_started(view: RunView, event: BehaviorStarted, _: float) -> None:
    behavior = view.behavior(event.behavior)
    behavior.algorithm, behavior.environment = event.algorithm, event.environment
    behavior.step = behavior.sampled = event.step
    for history in (behavior.returns, *behavior.metric_histories.values()):
        history.rewind(event.step)  # a resumed run goes on from its checkpoint, not from where it was killed
    behavior.max_steps, behavior.num_agents = event.max_steps, event.num_agents
    behavior.num_parameters, behavior.threaded = event.num_parameters, event.threaded


def _behavior_state(view: RunView, event: BehaviorStateChanged, time: float) -> None:
    behavior = view.behavior(event.behavior)
    behavior.state, behavior.reason = event.state, event.reason
    message = event.state + (f": {event.reason}" if event.reason else "")
    view.add_log(time, "error" if event.state == "failed" else "info", "STATE", event.behavior, message)


def _progress(view: RunView, event: ProgressReported, _: float) -> None:
    behavior = view.behavior(event.behavior)
    behavior.step, behavior.sampled = event.step, event.sampled
    behavior.steps_per_second, behavior.num_updates = event.steps_per_second, event.num_updates


def _episodes(view: RunView, event: EpisodesFinished, _: float) -> None:
    behavior = view.behavior(event.behavior)
    behavior.num_episodes += event.count
    behavior.mean_return, behavior.mean_length = event.mean_return, event.mean_length
    behavior.returns.append(event.step, event.mean_return)


def _metrics(view: RunView, event: MetricsReported, _: float) -> None:
    behavior = view.behavior(event.behavior)
    behavior.metrics.update(event.metrics)
    for tag, value in event.metrics.items():
        behavior.metric_histories.setdefault(tag, History()).append(event.step, value)
    if event.mean_return is not None:
        best = behavior.best_return
        behavior.best_return = event.mean_return if best is None else max(event.mean_return, best)


def _time_split(view: RunView, event: TimeSplit, _: float) -> None:
    view.behavior(event.behavior).time_split = event


def _saved(view: RunView, event: CheckpointSaved, time: float) -> None:
    view.behavior(event.behavior).checkpoints.append((time, event))
    reward = "" if event.mean_return is None else f", return {event.mean_return:.1f}"
    best = ", best" if event.is_best else ""
    view.add_log(time, "info", "CKPT", event.behavior, f"step {event.step}{reward}{best}: {event.path}")


def _save_failed(view: RunView, event: CheckpointFailed, time: float) -> None:
    view.add_log(time, "error", "CKPT", event.behavior, f"step {event.step} not saved: {event.message}")


def _removed(view: RunView, event: CheckpointRemoved, _: float) -> None:
    behavior = view.behavior(event.behavior)
    behavior.checkpoints = [(at, saved) for at, saved in behavior.checkpoints if saved.path != event.path]


def _exported(view: RunView, event: PolicyExported, time: float) -> None:
    behavior = view.behavior(event.behavior)
    behavior.exports = [*behavior.exports[-20:], (time, event)]
    view.add_log(time, "info", "ONNX", event.behavior, f"step {event.step}: {event.path}")


def _export_failed(view: RunView, event: ExportFailed, time: float) -> None:
    view.add_log(time, "error", "ONNX", event.behavior, f"step {event.step} not exported: {event.message}")


def _devices(view: RunView, event: DevicesSampled, _: float) -> None:
    view.devices = event


def _log(view: RunView, event: LogEmitted, time: float) -> None:
    view.add_log(time, event.level, event.level.upper(), event.source, event.message)


def _environment_failed(view: RunView, event: EnvironmentFailed, time: float) -> None:
    view.add_log(time, "error", "ENV", ", ".join(event.behaviors), f"{event.environment}: {event.reason}")


def _worker_failed(view: RunView, event: WorkerFailed, time: float) -> None:
    view.add_log(time, "error", "BUG", event.worker, event.error)


def _asked(view: RunView, event: CommandAsked, time: float) -> None:
    view.commands[event.id] = CommandView(event.id, event.name, event.behavior, time)
    while len(view.commands) > COMMANDS_KEPT:
        del view.commands[next(iter(view.commands))]


def _finished(view: RunView, event: CommandFinished, time: float) -> None:
    command = view.commands.get(event.id)
    if command is not None:
        command.state, command.message = ("done" if event.ok else "failed"), event.message
        level: LogLevel = "info" if event.ok else "error"
        words = COMMAND_WORDS.get(command.name, command.name)
        view.add_log(time, level, "KEY", command.behavior or "all", f"{words} {command.state}: {event.message}")


_FOLDS: Mapping[type, Callable[[RunView, Any, float], None]] = {
    RunStarted: _run_started,
    RunStateChanged: _run_state,
    BehaviorStarted: _behavior_started,
    BehaviorStateChanged: _behavior_state,
    ProgressReported: _progress,
    EpisodesFinished: _episodes,
    MetricsReported: _metrics,
    TimeSplit: _time_split,
    CheckpointSaved: _saved,
    CheckpointFailed: _save_failed,
    CheckpointRemoved: _removed,
    PolicyExported: _exported,
    ExportFailed: _export_failed,
    DevicesSampled: _devices,
    LogEmitted: _log,
    EnvironmentFailed: _environment_failed,
    WorkerFailed: _worker_failed,
    CommandAsked: _asked,
    CommandFinished: _finished,
}
