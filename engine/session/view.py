"""Everything a screen shows of a run: a pure fold of its events."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rl_tui.engine.session.behavior_view import EVALUATION, BehaviorView
from rl_tui.engine.session.environment_view import EnvironmentView, WorkersView, named_reason
from rl_tui.engine.session.history import History
from rl_tui.engine.session.league_view import LeagueView
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointRemoved,
    CheckpointSaved,
    CommandAsked,
    CommandFinished,
    ControllerChanged,
    DevicesSampled,
    Envelope,
    EnvironmentAwaits,
    EnvironmentFailed,
    EnvironmentRestarted,
    EnvironmentRestarting,
    EpisodesFinished,
    EvaluationReported,
    Event,
    HyperparameterChanged,
    HyperparametersReported,
    LeagueReported,
    LessonChanged,
    LogLevel,
    MetricsReported,
    NoteAdded,
    ParametersReported,
    ParameterStatus,
    PolicyExported,
    ProgressReported,
    RanksReported,
    RunStarted,
    RunStateChanged,
    StepsAwaited,
    TimeSplit,
    WarningCleared,
    WarningRaised,
    WorkerFailed,
    WorkersSampled,
)
from rl_tui.engine.session.ranks_view import RanksView
from rl_tui.engine.session.sentences import COMMAND_WORDS, Sentence, command_finished, sentence_of, warning_cleared
from rl_tui.engine.session.setting_sources import setting_sources
from rl_tui.engine.session.states import ENDS, RunState
from rl_tui.engine.session.text import excerpt

LOG_LINES = 1000
RATE_SECONDS = 5.0  # over which the speed of what has stopped falls to zero
COMMANDS_KEPT = 50
FAILURES_KEPT = 50
NOTES_KEPT = LESSONS_KEPT = CHANGES_KEPT = EVALUATIONS_KEPT = 200


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
    """The status of one command: state is "pending", "done" or "failed". seconds: from its sending to its outcome."""

    id: str
    name: str
    behavior: str | None
    label: str
    sent_at: float
    state: str = "pending"
    message: str = ""
    seconds: float = 0.0


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


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a run was at some time. steps: of each behavior; num_saved, num_warnings: see RunView."""

    time: float
    steps: Mapping[str, int]
    num_saved: int
    num_warnings: int


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
    ranks: RanksView = field(default_factory=RanksView)
    device_histories: dict[str, History] = field(
        default_factory=dict
    )  # percent, by "cpu", "gpu 0", "gpu 0 memory", ...
    warnings: dict[tuple[str, str], tuple[float, WarningRaised]] = field(default_factory=dict)  # by kind and behavior
    num_warnings: int = 0  # ever raised
    num_saved: int = 0  # checkpoints, ever
    controller: str = ""  # the screen that controls the run, "" where none shows it
    unseen_since: Standing | None = None  # when the last screen left, or the run started; None while one shows it
    parameters: Mapping[str, ParameterStatus] = field(default_factory=dict)  # of the environment, by name
    notes: list[Note] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    log: deque[LogLine] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    num_logged: int = 0  # lines ever added to the log; the newest one is the last of them
    commands: dict[str, CommandView] = field(default_factory=dict)  # newest last, at most COMMANDS_KEPT
    newest_command: str = ""  # the id of the one that was asked or finished last

    def apply(self, envelope: Envelope) -> None:
        """Fold one event in. Each kind of event has one function below."""
        self.now = max(self.now, envelope.time)
        if envelope.epoch > self.position[0] > 0:
            self.commands.clear()  # no earlier process is left to carry them out
            self.controller = ""
        self.position = envelope.epoch, envelope.number
        if self.started_at is None:
            self.started_at = envelope.time
        event: Any = envelope.event
        _add_sentence(self, event, envelope.time)
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

    @property
    def pending_commands(self) -> list[CommandView]:
        """Those without an outcome, oldest first."""
        return [command for command in self.commands.values() if command.state == "pending"]

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


def _add_sentence(view: RunView, event: Event, time: float) -> None:
    """Log what the event says. Before it is folded in, which ends warnings."""
    said = _sentence(view, event)
    if said is not None and said.kind:
        message = f"{said.text}\n{excerpt(said.details)}".rstrip() if said.details else said.text
        view.add_log(time, said.level, said.kind, said.source, message, said.step)


def _sentence(view: RunView, event: Event) -> Sentence | None:
    """With what earlier events have said."""
    match event:
        case WarningCleared():
            raised = view.warnings.get((event.kind, event.behavior))
            return warning_cleared(event, raised[1].message) if raised else None
        case CommandFinished():
            command = view.commands.get(event.id)
            return command_finished(event, command.name, command.behavior) if command else None
        case EnvironmentRestarted():
            said = sentence_of(event)
            return said and said._replace(source=", ".join(view.environment(event.environment).behaviors))
        case _:
            return sentence_of(event)


def _run_started(view: RunView, event: RunStarted, time: float) -> None:
    view.run, view.started_at = event, time
    view.sources = setting_sources(event, view.sources)
    view.warnings.clear()  # those of a process that was killed
    view.environments.clear()
    view.ranks = RanksView()  # a resumed run may have others, or one
    view.state, view.reason, view.exit_code = "starting", "", None  # a resumed run has not ended
    view.unseen_since = Standing(time, {}, view.num_saved, view.num_warnings)
    for behavior in view.behaviors.values():
        behavior.has_started = False


def _run_state(view: RunView, event: RunStateChanged, _: float) -> None:
    view.state, view.reason = event.state, event.reason
    if event.exit_code is not None:
        view.exit_code = event.exit_code
    if event.state == "interrupted":  # no thread was left to say so of its behaviors
        for behavior in view.behaviors.values():
            behavior.steps_per_second = 0.0
            behavior.state = behavior.state if behavior.state in ENDS else "interrupted"


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
    behavior.plays_itself = event.plays_itself


def _rolled_back(_view: RunView, behavior: BehaviorView, event: BehaviorRolledBack, time: float) -> None:
    behavior.first_step = min(behavior.first_step, event.step)
    behavior.rewind(event.step)
    behavior.exports = [(at, exported) for at, exported in behavior.exports if exported.step <= event.step]
    behavior.rollbacks.append((time, event))


def _behavior_state(_view: RunView, behavior: BehaviorView, event: BehaviorStateChanged, _: float) -> None:
    behavior.state, behavior.reason = event.state, event.reason
    behavior.silent_since, behavior.can_roll_back = None, event.can_roll_back
    if event.state != "training":
        behavior.steps_per_second = 0.0


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


def _evaluated(_view: RunView, behavior: BehaviorView, event: EvaluationReported, time: float) -> None:
    behavior.evaluations = [*behavior.evaluations[1 - EVALUATIONS_KEPT :], event]
    best = behavior.best_evaluation
    if math.isfinite(event.mean_return) and (best is None or event.mean_return > best.mean_return):
        behavior.best_evaluations = [*behavior.best_evaluations[1 - EVALUATIONS_KEPT :], event]
    behavior.histories.setdefault(EVALUATION, History()).append(event.step, time, event.mean_return)


def _league(_view: RunView, behavior: BehaviorView, event: LeagueReported, time: float) -> None:
    known = behavior.league
    behavior.league = LeagueView(event, event.step, time) if known is None else known.followed_by(event, time)


def _hyperparameters(_view: RunView, behavior: BehaviorView, event: HyperparametersReported, _: float) -> None:
    behavior.hyperparameters, behavior.ranges = dict(event.values), event.ranges


def _changed(_view: RunView, behavior: BehaviorView, event: HyperparameterChanged, time: float) -> None:
    behavior.hyperparameters[event.name] = event.new
    behavior.changes = [*behavior.changes[1 - CHANGES_KEPT :], (time, event)]


def _lesson(view: RunView, deciding: BehaviorView, event: LessonChanged, time: float) -> None:
    """The lesson begins for every behavior that acts, each at a step of its own."""
    for behavior in view.behaviors.values():
        if behavior is deciding or (behavior.has_started and behavior.state not in ENDS):
            begun = event if behavior is deciding else replace(event, step=behavior.step)
            behavior.lessons = [*behavior.lessons[1 - LESSONS_KEPT :], (time, begun)]
            behavior.best_evaluations = []  # those of other lessons are not comparable


def _parameters(view: RunView, event: ParametersReported, _: float) -> None:
    view.parameters = event.parameters


def _note(view: RunView, event: NoteAdded, time: float) -> None:
    steps = {name: behavior.step for name, behavior in view.behaviors.items()}
    view.notes = [*view.notes[1 - NOTES_KEPT :], Note(time, event.text, event.behavior, steps)]


def _warned(view: RunView, event: WarningRaised, time: float) -> None:
    view.warnings[event.kind, event.behavior] = time, event
    view.num_warnings += 1


def _warning_cleared(view: RunView, event: WarningCleared, _: float) -> None:
    view.warnings.pop((event.kind, event.behavior), None)


def _time_split(_view: RunView, behavior: BehaviorView, event: TimeSplit, _: float) -> None:
    behavior.time_split = event


def _saved(view: RunView, behavior: BehaviorView, event: CheckpointSaved, time: float) -> None:
    view.num_saved += 1
    others = [(at, saved) for at, saved in behavior.checkpoints if saved.path != event.path]
    behavior.checkpoints = [*others, (time, event)]


def _removed(_view: RunView, behavior: BehaviorView, event: CheckpointRemoved, _: float) -> None:
    behavior.checkpoints = [(at, saved) for at, saved in behavior.checkpoints if saved.path != event.path]


def _exported(_view: RunView, behavior: BehaviorView, event: PolicyExported, time: float) -> None:
    behavior.exports = [*behavior.exports[-20:], (time, event)]


def _ranks(view: RunView, event: RanksReported, time: float) -> None:
    view.ranks.apply(event, time)


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


def _environment_failed(view: RunView, event: EnvironmentFailed, time: float) -> None:
    if (environment := view.environments.pop(event.environment, None)) is not None and environment.workers:
        view.environment(event.environment).workers = environment.workers  # as they were last
    failure = Failure(time, event.behaviors, named_reason(event), event.detail)
    view.failures = [*view.failures[1 - FAILURES_KEPT :], failure]


def _restarting(view: RunView, event: EnvironmentRestarting, time: float) -> None:
    environment = view.environment(event.environment)
    environment.behaviors = event.behaviors
    environment.restarting[event.worker] = time, event
    environment.num_restarts += 1


def _restarted(view: RunView, event: EnvironmentRestarted, _: float) -> None:
    environment = view.environment(event.environment)
    environment.restarting.pop(event.worker, None)


def _workers(view: RunView, event: WorkersSampled, _: float) -> None:
    workers = view.environment(event.environment).workers
    workers.setdefault(event.first_behavior, WorkersView(event.environment)).apply(event)


def _awaits(view: RunView, event: EnvironmentAwaits, _: float) -> None:
    view.environment(event.environment).awaited = event.text


def _worker_failed(view: RunView, event: WorkerFailed, time: float) -> None:
    reason = f"{event.worker}: {event.error}"
    view.failures = [*view.failures[1 - FAILURES_KEPT :], Failure(time, (), reason, event.traceback)]


def _asked(view: RunView, event: CommandAsked, time: float) -> None:
    label = event.label or COMMAND_WORDS.get(event.name, event.name)
    view.commands[event.id] = CommandView(event.id, event.name, event.behavior, label, time)
    view.newest_command = event.id
    while len(view.commands) > COMMANDS_KEPT:
        del view.commands[next(iter(view.commands))]


def _finished(view: RunView, event: CommandFinished, time: float) -> None:
    command = view.commands.get(event.id)
    if command is None:
        return
    command.state, command.message = ("done" if event.ok else "failed"), event.message
    command.seconds = max(0.0, time - command.sent_at)
    if not _is_undone(view, command):
        view.newest_command = event.id


def _controller(view: RunView, event: ControllerChanged, time: float) -> None:
    view.controller, view.unseen_since = event.screen, None
    if not event.screen:
        steps = {name: behavior.step for name, behavior in view.behaviors.items()}
        view.unseen_since = Standing(time, steps, view.num_saved, view.num_warnings)


def _is_undone(view: RunView, command: CommandView) -> bool:
    """Whether a later one has undone it: a pause that had no effect yet has not failed."""
    same = [each for each in view.commands.values() if each.name in _PAUSES and each.behavior == command.behavior]
    return command in same[:-1]


_PAUSES = ("Pause", "Resume")
_RUN_FOLDS: Mapping[type, Callable[[RunView, Any, float], None]] = {
    RunStarted: _run_started,
    RunStateChanged: _run_state,
    ParametersReported: _parameters,
    NoteAdded: _note,
    WarningRaised: _warned,
    WarningCleared: _warning_cleared,
    DevicesSampled: _devices,
    RanksReported: _ranks,
    EnvironmentFailed: _environment_failed,
    EnvironmentRestarting: _restarting,
    EnvironmentRestarted: _restarted,
    WorkersSampled: _workers,
    EnvironmentAwaits: _awaits,
    WorkerFailed: _worker_failed,
    CommandAsked: _asked,
    CommandFinished: _finished,
    ControllerChanged: _controller,
}
_BEHAVIOR_FOLDS: Mapping[type, Callable[[RunView, BehaviorView, Any, float], None]] = {
    BehaviorStarted: _behavior_started,
    BehaviorStateChanged: _behavior_state,
    ProgressReported: _progress,
    StepsAwaited: _steps_awaited,
    EpisodesFinished: _episodes,
    MetricsReported: _metrics,
    EvaluationReported: _evaluated,
    LeagueReported: _league,
    TimeSplit: _time_split,
    CheckpointSaved: _saved,
    CheckpointRemoved: _removed,
    PolicyExported: _exported,
    HyperparametersReported: _hyperparameters,
    HyperparameterChanged: _changed,
    BehaviorRolledBack: _rolled_back,
    LessonChanged: _lesson,
}
