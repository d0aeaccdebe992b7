"""Everything a screen shows of a run: a pure fold of its events."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rl_tui.engine.session.behavior_view import EVALUATION, BehaviorView
from rl_tui.engine.session.environment_view import EnvironmentView, WorkersView, bare_reason, worker_word
from rl_tui.engine.session.history import History
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointFailed,
    CheckpointRemoved,
    CheckpointSaved,
    CommandAsked,
    CommandFinished,
    DevicesSampled,
    Envelope,
    EnvironmentAwaits,
    EnvironmentFailed,
    EnvironmentRestarted,
    EnvironmentRestarting,
    EpisodesFinished,
    EvaluationReported,
    ExportFailed,
    HyperparameterChanged,
    HyperparametersReported,
    LessonChanged,
    LogEmitted,
    LogLevel,
    MetricsReported,
    NoteAdded,
    ParametersReported,
    ParameterStatus,
    PolicyExported,
    ProgressReported,
    RunStarted,
    RunStateChanged,
    StepsAwaited,
    TimeSplit,
    WarningCleared,
    WarningRaised,
    WorkerFailed,
    WorkersSampled,
)
from rl_tui.engine.session.setting_sources import setting_sources
from rl_tui.engine.session.states import BAD_ENDS, ENDS, RunState
from rl_tui.engine.session.text import counted, excerpt

LOG_LINES = 1000
RATE_SECONDS = 5.0  # over which the speed of what has stopped falls to zero
COMMANDS_KEPT = 50
FAILURES_KEPT = 50
NOTES_KEPT = LESSONS_KEPT = CHANGES_KEPT = EVALUATIONS_KEPT = 200
COMMAND_WORDS = {  # what a user calls a command, by its class
    "Pause": "pause",
    "Resume": "resume",
    "SaveCheckpoint": "checkpoint",
    "ExportPolicy": "export",
    "Stop": "stop",
    "SetHyperparameter": "change",
    "RollBack": "roll back",
    "SetLesson": "lesson",
    "AddNote": "note",
}


@dataclass(slots=True)
class LogLine:
    """One line of the log pane. kind: a short word such as "CKPT" or the level in capitals; step: of the behavior,
    where the line is about a checkpoint or an export."""

    time: float
    level: LogLevel
    kind: str
    source: str
    message: str
    step: int | None = None


@dataclass(slots=True)
class CommandView:
    """The status of one command: state is "pending", "done" or "failed"."""

    id: str
    name: str
    behavior: str | None
    sent_at: float
    state: str = "pending"
    message: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A note of the user, and when it was written; steps: of each behavior."""

    time: float
    text: str
    behavior: str | None
    steps: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something ended, in full. behaviors: those it ended, none for an internal error."""

    time: float
    behaviors: tuple[str, ...]
    reason: str
    detail: str


@dataclass(slots=True)
class RunView:
    """The run as a screen shows it. Apply envelopes in order; nothing else changes it."""

    run: RunStarted | None = None
    sources: Mapping[tuple[str, ...], str] = field(default_factory=dict)  # of settings; none where it is the default
    state: RunState = "starting"
    reason: str = ""
    exit_code: int | None = None
    started_at: float | None = None
    now: float = 0.0  # wall time of the newest event
    position: tuple[int, int] = (0, 0)  # epoch and number of the newest event, see Envelope
    behaviors: dict[str, BehaviorView] = field(default_factory=dict)  # in order of appearance
    environments: dict[str, EnvironmentView] = field(default_factory=dict)  # of which something was reported
    devices: DevicesSampled | None = None
    device_histories: dict[str, History] = field(
        default_factory=dict
    )  # percent, by "cpu", "gpu 0", "gpu 0 memory", ...
    warnings: dict[tuple[str, str], tuple[float, WarningRaised]] = field(default_factory=dict)  # by kind and behavior
    num_warnings: int = 0  # ever raised
    parameters: Mapping[str, ParameterStatus] = field(default_factory=dict)  # of the environment, by name
    notes: list[Note] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    log: deque[LogLine] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    num_logged: int = 0  # lines ever added to the log; the newest one is the last of them
    commands: dict[str, CommandView] = field(default_factory=dict)  # newest last, at most COMMANDS_KEPT

    def apply(self, envelope: Envelope) -> None:
        """Fold one event in. Each kind of event has one function below."""
        self.now = max(self.now, envelope.time)
        self.position = envelope.epoch, envelope.number
        if self.started_at is None:
            self.started_at = envelope.time
        event: Any = envelope.event
        if (fold := _RUN_FOLDS.get(type(event))) is not None:
            fold(self, event, envelope.time)
        if (fold_behavior := _BEHAVIOR_FOLDS.get(type(event))) is not None:
            fold_behavior(self, self.behavior(event.behavior), event, envelope.time)

    def behavior(self, name: str) -> BehaviorView:
        """The view of that behavior, made when it is new."""
        return self.behaviors.setdefault(name, BehaviorView(name))

    def environment(self, name: str) -> EnvironmentView:
        """The view of that environment, made when it is new."""
        return self.environments.setdefault(name, EnvironmentView(name))

    @property
    def workers(self) -> list[WorkersView]:
        """The worker processes of each environment that has some."""
        return [workers for each in self.environments.values() for workers in each.workers.values() if workers.workers]

    def add_log(
        self, time: float, level: LogLevel, kind: str, source: str, message: str, step: int | None = None
    ) -> None:
        """Append one log line."""
        self.log.append(LogLine(time, level, kind, source, message, step))
        self.num_logged += 1

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, well or badly."""
        return self.state in ENDS

    def is_absent(self, behavior: BehaviorView) -> bool:
        """Whether the run has behaviors, and this one, which is in its configuration, has not appeared among them."""
        is_awaited = not behavior.has_started and self.state != "starting"
        return is_awaited and any(each.has_started for each in self.behaviors.values())

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
    view.sources = setting_sources(event, view.sources)
    view.warnings.clear()  # those of a process that was killed
    view.environments.clear()
    view.state, view.reason, view.exit_code = "starting", "", None  # a resumed run has not ended
    for behavior in view.behaviors.values():
        behavior.has_started = False
    verb = "resumed" if event.resumed else "started"
    view.add_log(time, "info", "RUN", event.run_id, f"{verb} in {event.path} (seed {event.seed}, {event.device})")


def _run_state(view: RunView, event: RunStateChanged, time: float) -> None:
    view.state, view.reason = event.state, event.reason
    if event.exit_code is not None:
        view.exit_code = event.exit_code
    message = event.state + (f": {event.reason}" if event.reason else "")
    if event.state == "interrupted":  # no thread was left to say so of its behaviors
        for behavior in view.behaviors.values():
            behavior.steps_per_second = 0.0
            behavior.state = behavior.state if behavior.state in ENDS else "interrupted"
    view.add_log(time, "error" if event.state in BAD_ENDS else "info", "RUN", "", message)


def _behavior_started(_view: RunView, behavior: BehaviorView, event: BehaviorStarted, _: float) -> None:
    behavior.algorithm, behavior.environment = event.algorithm, event.environment
    behavior.state, behavior.reason, behavior.has_started = "starting", "", True
    behavior.first_step = event.step
    behavior.rewind(event.step)  # a resumed run continues from its checkpoint, not from where it was killed
    behavior.max_steps, behavior.num_agents = event.max_steps, event.num_agents
    behavior.num_parameters, behavior.threaded = event.num_parameters, event.threaded
    behavior.replay_steps, behavior.replay_bytes = event.replay_steps, event.replay_bytes
    behavior.first_update_step = event.first_update_step
    behavior.headline_metrics = event.headline_metrics
    behavior.reward_threshold = event.reward_threshold
    behavior.learns_offline = event.learns_offline


def _rolled_back(view: RunView, behavior: BehaviorView, event: BehaviorRolledBack, time: float) -> None:
    behavior.first_step = min(behavior.first_step, event.step)
    behavior.rewind(event.step)
    behavior.exports = [(at, exported) for at, exported in behavior.exports if exported.step <= event.step]
    behavior.rollbacks.append((time, event))
    view.add_log(time, "warning", "BACK", event.behavior, f"from step {event.from_step} to {event.step}: {event.path}")


def _behavior_state(view: RunView, behavior: BehaviorView, event: BehaviorStateChanged, time: float) -> None:
    behavior.state, behavior.reason = event.state, event.reason
    behavior.silent_since, behavior.can_roll_back = None, event.can_roll_back
    if event.state != "training":
        behavior.steps_per_second = 0.0
    message = event.state + (f": {event.reason}" if event.reason else "")
    view.add_log(time, "error" if event.state == "failed" else "info", "STATE", event.behavior, message)


def _progress(_view: RunView, behavior: BehaviorView, event: ProgressReported, _: float) -> None:
    if event.sampled != behavior.sampled:
        behavior.silent_since = None
    behavior.step, behavior.sampled, behavior.learned = event.step, event.sampled, event.num_learned
    behavior.num_updates = event.num_updates
    if behavior.state in ("starting", "training"):  # the last report of one that is over comes after its end
        behavior.steps_per_second = behavior.reported_steps_per_second = event.steps_per_second


def _steps_awaited(_: RunView, behavior: BehaviorView, event: StepsAwaited, time: float) -> None:
    """Updates count in the speed; while an environment is awaited, the speed falls to zero."""
    behavior.silent_since, behavior.waits_for = time - event.seconds, event.waits_for
    if event.waits_for == "environment":
        share = max(0.0, 1 - event.seconds / RATE_SECONDS)
        behavior.steps_per_second = min(behavior.steps_per_second, behavior.reported_steps_per_second * share)


def _episodes(_: RunView, behavior: BehaviorView, event: EpisodesFinished, time: float) -> None:
    """One group after the other, so that it does not matter which of them were reported together."""
    for group in event.in_groups():
        if group.count < 1:
            continue
        behavior.num_episodes += group.count
        behavior.episode_counts.append(group.step, time, behavior.num_episodes, group.count)
        behavior.recent.add(group.count, group.mean_return)
        behavior.recent_lengths.add(group.count, group.mean_length)
        behavior.returns.append(group.step, time, group.mean_return, group.count)


def _metrics(_: RunView, behavior: BehaviorView, event: MetricsReported, time: float) -> None:
    behavior.metrics.update(event.metrics)
    behavior.histogram = event.returns or behavior.histogram
    for tag, value in event.metrics.items():
        if tag != EVALUATION:  # that curve has each evaluation at its own step
            behavior.histories.setdefault(tag, History()).append(event.step, time, value)


def _evaluated(view: RunView, behavior: BehaviorView, event: EvaluationReported, time: float) -> None:
    behavior.evaluations = [*behavior.evaluations[1 - EVALUATIONS_KEPT :], event]
    best = behavior.best_evaluation
    if math.isfinite(event.mean_return) and (best is None or event.mean_return > best.mean_return):
        behavior.best_evaluations = [*behavior.best_evaluations[1 - EVALUATIONS_KEPT :], event]
    behavior.histories.setdefault(EVALUATION, History()).append(event.step, time, event.mean_return)
    scores = f"{_short(event.mean_return)} sd {_short(event.std_return)} over {counted(event.episodes, 'episode')}"
    view.add_log(time, "info", "EVAL", event.behavior, f"step {event.step}, return {scores}, {event.seconds:.1f}s")


def _short(value: float) -> str:
    return f"{value:{'.1f' if abs(value) >= 10 else '.3f'}}"


def _hyperparameters(_view: RunView, behavior: BehaviorView, event: HyperparametersReported, _: float) -> None:
    behavior.hyperparameters, behavior.ranges = dict(event.values), event.ranges


def _changed(view: RunView, behavior: BehaviorView, event: HyperparameterChanged, time: float) -> None:
    behavior.hyperparameters[event.name] = event.new
    behavior.changes = [*behavior.changes[1 - CHANGES_KEPT :], (time, event)]
    message = f"{event.name} {event.old:.6g} -> {event.new:.6g} at step {event.step}"
    view.add_log(time, "info", "SET", event.behavior, message)


def _lesson(view: RunView, deciding: BehaviorView, event: LessonChanged, time: float) -> None:
    """The lesson begins for every behavior that acts, each at a step of its own."""
    for behavior in view.behaviors.values():
        if behavior is deciding or (behavior.has_started and behavior.state not in ENDS):
            begun = event if behavior is deciding else replace(event, step=behavior.step)
            behavior.lessons = [*behavior.lessons[1 - LESSONS_KEPT :], (time, begun)]
            behavior.best_evaluations = []  # those of other lessons are not comparable
    name = f" {event.name!r}" if event.name else ""
    message = f"{event.parameter}: lesson {event.lesson} of {event.num_lessons}{name} at step {event.step}"
    view.add_log(time, "info", "LESSON", event.behavior, message)


def _parameters(view: RunView, event: ParametersReported, _: float) -> None:
    view.parameters = event.parameters


def _note(view: RunView, event: NoteAdded, time: float) -> None:
    steps = {name: behavior.step for name, behavior in view.behaviors.items()}
    view.notes = [*view.notes[1 - NOTES_KEPT :], Note(time, event.text, event.behavior, steps)]
    view.add_log(time, "info", "NOTE", event.behavior or "", event.text)


def _warned(view: RunView, event: WarningRaised, time: float) -> None:
    view.warnings[event.kind, event.behavior] = time, event
    view.num_warnings += 1
    view.add_log(time, "warning", "WARN", event.behavior, f"{event.message}; {event.advice}")


def _warning_cleared(view: RunView, event: WarningCleared, time: float) -> None:
    raised = view.warnings.pop((event.kind, event.behavior), None)
    if raised is not None:
        view.add_log(time, "info", "CLEAR", event.behavior, f"cleared: {raised[1].message}")


def _time_split(_view: RunView, behavior: BehaviorView, event: TimeSplit, _: float) -> None:
    behavior.time_split = event


def _saved(view: RunView, behavior: BehaviorView, event: CheckpointSaved, time: float) -> None:
    others = [(at, saved) for at, saved in behavior.checkpoints if saved.path != event.path]
    behavior.checkpoints = [*others, (time, event)]
    reward = "" if event.mean_return is None else f", return {_short(event.mean_return)}"
    if event.mean_return is None and event.held_out_loss is not None:
        reward = f", held-out loss {_short(event.held_out_loss)}"
    best = ", best" if event.is_best else ""
    view.add_log(time, "info", "CKPT", event.behavior, f"step {event.step}{reward}{best}: {event.path}", event.step)


def _save_failed(view: RunView, event: CheckpointFailed, time: float) -> None:
    view.add_log(time, "error", "CKPT", event.behavior, f"step {event.step} not saved: {event.message}")


def _removed(_view: RunView, behavior: BehaviorView, event: CheckpointRemoved, _: float) -> None:
    behavior.checkpoints = [(at, saved) for at, saved in behavior.checkpoints if saved.path != event.path]


def _exported(view: RunView, behavior: BehaviorView, event: PolicyExported, time: float) -> None:
    behavior.exports = [*behavior.exports[-20:], (time, event)]
    view.add_log(time, "info", "ONNX", event.behavior, f"step {event.step}: {event.path}", event.step)


def _export_failed(view: RunView, event: ExportFailed, time: float) -> None:
    view.add_log(time, "error", "ONNX", event.behavior, f"step {event.step} not exported: {event.message}")


def _devices(view: RunView, event: DevicesSampled, time: float) -> None:
    view.devices = event
    percents: dict[str, float | None] = {f"gpu {gpu.index}": gpu.utilization_percent for gpu in event.gpus}
    percents["cpu"] = event.cpu_percent
    percents["memory"] = 100 * event.memory_used_bytes / max(event.memory_total_bytes, 1)
    for gpu in event.gpus:
        if gpu.memory_used_bytes is not None and gpu.memory_total_bytes:
            percents[f"gpu {gpu.index} memory"] = 100 * gpu.memory_used_bytes / gpu.memory_total_bytes
    for name, percent in percents.items():
        if percent is not None:
            view.device_histories.setdefault(name, History()).append(time, time, percent)


def _log(view: RunView, event: LogEmitted, time: float) -> None:
    view.add_log(time, event.level, event.level.upper(), event.source, event.message)


def _environment_failed(view: RunView, event: EnvironmentFailed, time: float) -> None:
    named = event.reason.startswith(event.environment)
    reason = event.reason if named else f"{event.environment}: {event.reason}"
    if (environment := view.environments.pop(event.environment, None)) is not None and environment.workers:
        view.environment(event.environment).workers = environment.workers  # as they were last
    view.failures = [*view.failures[1 - FAILURES_KEPT :], Failure(time, event.behaviors, reason, event.detail)]
    text = f"{reason}\n{excerpt(event.detail)}".rstrip()
    view.add_log(time, "error", "ENV", ", ".join(event.behaviors), text)


def _restarting(view: RunView, event: EnvironmentRestarting, time: float) -> None:
    environment = view.environment(event.environment)
    environment.behaviors = event.behaviors
    environment.restarting[event.worker] = time, event
    environment.num_restarts += 1
    text = f"{worker_word(event.environment)} {event.worker}, restart {event.count}: {bare_reason(event)}"
    view.add_log(time, "warning", "ENV", ", ".join(event.behaviors), f"{text}\n{excerpt(event.detail)}".rstrip())


def _restarted(view: RunView, event: EnvironmentRestarted, time: float) -> None:
    environment = view.environment(event.environment)
    environment.restarting.pop(event.worker, None)
    text = f"{worker_word(event.environment)} {event.worker} acts again after {event.seconds:.1f} s"
    view.add_log(time, "info", "ENV", ", ".join(environment.behaviors), text)


def _workers(view: RunView, event: WorkersSampled, _: float) -> None:
    workers = view.environment(event.environment).workers
    workers.setdefault(event.first_behavior, WorkersView(event.environment)).apply(event)


def _awaits(view: RunView, event: EnvironmentAwaits, time: float) -> None:
    view.environment(event.environment).awaited = event.text
    if event.text:
        view.add_log(time, "info", "ENV", "", f"{event.environment}: {event.text}")


def _worker_failed(view: RunView, event: WorkerFailed, time: float) -> None:
    reason = f"{event.worker}: {event.error}"
    view.failures = [*view.failures[1 - FAILURES_KEPT :], Failure(time, (), reason, event.traceback)]
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


_RUN_FOLDS: Mapping[type, Callable[[RunView, Any, float], None]] = {
    RunStarted: _run_started,
    RunStateChanged: _run_state,
    CheckpointFailed: _save_failed,
    ExportFailed: _export_failed,
    ParametersReported: _parameters,
    NoteAdded: _note,
    WarningRaised: _warned,
    WarningCleared: _warning_cleared,
    DevicesSampled: _devices,
    LogEmitted: _log,
    EnvironmentFailed: _environment_failed,
    EnvironmentRestarting: _restarting,
    EnvironmentRestarted: _restarted,
    WorkersSampled: _workers,
    EnvironmentAwaits: _awaits,
    WorkerFailed: _worker_failed,
    CommandAsked: _asked,
    CommandFinished: _finished,
}
_BEHAVIOR_FOLDS: Mapping[type, Callable[[RunView, BehaviorView, Any, float], None]] = {
    BehaviorStarted: _behavior_started,
    BehaviorStateChanged: _behavior_state,
    ProgressReported: _progress,
    StepsAwaited: _steps_awaited,
    EpisodesFinished: _episodes,
    MetricsReported: _metrics,
    EvaluationReported: _evaluated,
    TimeSplit: _time_split,
    CheckpointSaved: _saved,
    CheckpointRemoved: _removed,
    PolicyExported: _exported,
    HyperparametersReported: _hyperparameters,
    HyperparameterChanged: _changed,
    BehaviorRolledBack: _rolled_back,
    LessonChanged: _lesson,
}
