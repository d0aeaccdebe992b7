"""Every event that a run publishes and every command it accepts.

Times are Unix seconds, durations seconds, sizes bytes. `step` is always environment steps of one behavior.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from rl_tui.engine.session.states import BehaviorState, RunState

CheckpointReason: TypeAlias = Literal["interval", "clock", "asked", "final", "interrupted", "error"]
WaitsFor: TypeAlias = Literal["environment", "update", "evaluation"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
StopMode: TypeAlias = Literal["checkpoint", "now"]
OWN_FILE = "own file"  # of a run that is resumed: its configuration.yaml
Text: TypeAlias = str  # that an environment may make as long as it likes: it is shortened when the event is published


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run's folder exists and its configuration is written there. versions: library -> version.

    sources: the paths of the settings that were set, by where: "file", "preset", "profile", "Python", a flag's name, or
    OWN_FILE. Entries of a list are numbered from 0.
    """

    run_id: str
    path: str
    seed: int
    device: str
    resumed: bool
    versions: Mapping[str, str]
    sources: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunStateChanged:
    """exit_code is given with the last state of a run, one of REPORTED_ENDS, and is None before."""

    state: RunState
    reason: Text = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class BehaviorStarted:
    """A behavior's trainer exists. algorithm: "ppo", ...; environment: the text that named it.

    replay_steps: the capacity of the replay buffer, replay_bytes: its size in memory; 0 without one.
    first_update_step: no update comes before it, 0 where an update needs only a batch. headline_metrics: tags of the
    trainer's own metrics that say most about its learning. reward_threshold: the mean return with which its environment
    counts as solved, None where it is not known. earlier_returns: of episodes before the run was resumed, two that
    differ, or the one that all had; empty where none is known. learns_offline: from demonstrations, and no agent acts.
    teams: of its agents, those that had appeared by then. plays_itself: its opponents act by its own earlier policies.
    """

    behavior: str
    algorithm: str
    environment: str
    step: int
    max_steps: int
    num_agents: int
    num_parameters: int
    threaded: bool
    replay_steps: int = 0
    replay_bytes: int = 0
    first_update_step: int = 0
    headline_metrics: tuple[str, ...] = ()
    reward_threshold: float | None = None
    earlier_returns: tuple[float, ...] = ()
    learns_offline: bool = False
    teams: tuple[int, ...] = ()
    plays_itself: bool = False


@dataclass(frozen=True, slots=True)
class BehaviorStateChanged:
    """A behavior has entered another state; reason says why, where that is not obvious.

    can_roll_back: it failed because of a number that is not finite, and continues if it is rolled back.
    """

    behavior: str
    state: BehaviorState
    reason: Text = ""
    can_roll_back: bool = False


@dataclass(frozen=True, slots=True)
class ProgressReported:
    """A few times a second while a behavior trains.

    step: of the learner. sampled: steps that the agents have made. learned: those of them that are or will be learned
    from, to which the learner's step comes when it has all; None in logs of versions that learned from every step.
    """

    behavior: str
    step: int
    sampled: int
    steps_per_second: float
    num_updates: int
    learned: int | None = None

    @property
    def num_learned(self) -> int:
        """Steps of the agents that are or will be learned from."""
        return self.sampled if self.learned is None else self.learned


@dataclass(frozen=True, slots=True)
class StepsAwaited:
    """A behavior that trains has made no step for that many seconds. Holds until a ProgressReported with more steps."""

    behavior: str
    seconds: float
    waits_for: WaitsFor


@dataclass(frozen=True, slots=True)
class EpisodeGroup:
    """Episodes that ended one after the other, the last one at that step of their behavior."""

    step: int
    count: int
    mean_return: float
    min_return: float
    max_return: float
    mean_length: float


@dataclass(frozen=True, slots=True)
class EpisodesFinished:
    """Episodes that ended since the last such event of this behavior; a few times a second at most.

    groups: the same episodes in groups that depend on the episodes alone, not on when they were reported; empty where
    all of them are one group.
    """

    behavior: str
    step: int
    count: int
    mean_return: float
    min_return: float
    max_return: float
    mean_length: float
    groups: tuple[EpisodeGroup, ...] = ()

    def in_groups(self) -> Sequence[EpisodesFinished | EpisodeGroup]:
        """The groups, oldest first."""
        return self.groups or (self,)


@dataclass(frozen=True, slots=True)
class Histogram:
    """counts[i] values fell into (limits[i-1], limits[i]]; the first bin starts at minimum."""

    minimum: float
    maximum: float
    count: int
    total: float
    total_squares: float
    limits: tuple[float, ...]
    counts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MetricsReported:
    """A summary, at a multiple of summary_freq: metrics by ML-Agents' tag.

    mean_return and std_return are over the episodes that ended since the last summary, None without any. counts: how
    many values each metric is the mean of, where it is one. histograms: of metrics by tag, besides the returns.
    """

    behavior: str
    step: int
    elapsed_seconds: float
    metrics: Mapping[str, float]
    mean_return: float | None
    std_return: float | None
    returns: Histogram | None
    is_training: bool
    counts: Mapping[str, int] = field(default_factory=dict)
    histograms: Mapping[str, Histogram] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EvaluationReported:
    """The policy of that step was evaluated over that many episodes, apart from its training, in `seconds`.

    deterministic: it acted greedily, by the mean or the likeliest choice; else it sampled, as in training. won, drawn,
    lost: its games against an opponent; all 0 without one.
    """

    behavior: str
    step: int
    mean_return: float
    std_return: float
    episodes: int
    mean_length: float
    seconds: float
    deterministic: bool = True
    won: int = 0
    drawn: int = 0
    lost: int = 0

    @property
    def has_opponent(self) -> bool:
        """Whether the return is one against an opponent, and so not comparable with those of training."""
        return self.won + self.drawn + self.lost > 0


@dataclass(frozen=True, slots=True)
class LeagueSnapshot:
    """An earlier policy of a behavior that others play against in self-play. step: at which it was taken.

    rating: Elo. won, drawn, lost: its games against the policy that learns. is_playing: it is an opponent at present.
    """

    step: int
    rating: float
    won: int = 0
    drawn: int = 0
    lost: int = 0
    is_playing: bool = False


@dataclass(frozen=True, slots=True)
class LeagueReported:
    """Self-play of one behavior: whenever a team, an opponent or a snapshot changes, and else once a second at most
    while games end.

    rating: Elo of the policy that learns. learning_team: of all behaviors that play in its environment; is_learning:
    whether this behavior has agents of that team, and so learns. teams: those of this behavior. num_games: that were
    rated since the beginning of training. snapshots: those in the window, oldest first. next_team_change: the step of
    this behavior at which another team begins to learn; None while it rests, and where that is not known.
    """

    behavior: str
    step: int
    rating: float
    learning_team: int
    is_learning: bool
    teams: tuple[int, ...]
    num_games: int
    snapshots: tuple[LeagueSnapshot, ...]
    next_team_change: int | None = None


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Where the wall time of one behavior went since its start; with `threaded`, update ran in parallel."""

    behavior: str
    environment_seconds: float
    inference_seconds: float
    update_seconds: float
    waiting_seconds: float
    other_seconds: float


@dataclass(frozen=True, slots=True)
class CheckpointSaved:
    """The checkpoint at `path`, a folder, is on disk and verified. lessons: of each environment parameter that has
    some, from 1; only checkpoints of the same lessons are compared. held_out_loss: compares those without a return."""

    behavior: str
    step: int
    path: str
    reason: CheckpointReason
    mean_return: float | None
    is_best: bool
    size_bytes: int
    seconds: float
    lessons: Mapping[str, int] = field(default_factory=dict)
    held_out_loss: float | None = None


@dataclass(frozen=True, slots=True)
class CheckpointFailed:
    """A checkpoint could not be written; those before it are untouched."""

    behavior: str
    step: int
    reason: CheckpointReason
    message: Text


@dataclass(frozen=True, slots=True)
class CheckpointRemoved:
    """A checkpoint can no longer be resumed: removed for a newer one, or set aside by a roll back."""

    behavior: str
    step: int
    path: str


@dataclass(frozen=True, slots=True)
class PolicyExported:
    """max_difference: largest deviation of the file from the policy over the checked inputs."""

    behavior: str
    step: int
    path: str
    max_difference: float
    seconds: float


@dataclass(frozen=True, slots=True)
class ExportFailed:
    """A policy could not be exported; the file before it is untouched."""

    behavior: str
    step: int
    message: Text


@dataclass(frozen=True, slots=True)
class Range:
    """The values that a number may have; None: no bound. above_minimum: the minimum itself is excluded."""

    minimum: float | None = None
    maximum: float | None = None
    above_minimum: bool = False
    is_whole: bool = False

    def holds(self, value: float) -> bool:
        """Whether the value is allowed."""
        low, high = self.minimum, self.maximum
        if not math.isfinite(value) or (self.is_whole and not float(value).is_integer()):
            return False
        if low is not None and (value < low or (self.above_minimum and value == low)):
            return False
        return high is None or value <= high

    @property
    def words(self) -> str:
        """ "greater than 0", "a whole number of at least 1"; "" where every number is allowed."""
        low, high = self.minimum, self.maximum
        whole = "a whole number " if self.is_whole else ""
        if low is not None and high is not None and not self.above_minimum:
            return f"{whole}from {low:g} to {high:g}"
        bounds = [] if low is None else [f"{'greater than' if self.above_minimum else 'at least'} {low:g}"]
        bounds += [] if high is None else [f"at most {high:g}"]
        of = "of " if whole and bounds and not self.above_minimum else ""
        return f"{whole}{of}{' and '.join(bounds)}".rstrip()


@dataclass(frozen=True, slots=True)
class HyperparametersReported:
    """The hyperparameters that can be changed during training, by name; published at the start and after every change.
    Where a schedule moves a value, this is the one that it starts from. ranges: the values allowed."""

    behavior: str
    values: Mapping[str, float]
    ranges: Mapping[str, Range] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HyperparameterChanged:
    """A hyperparameter has another value from this step on; checkpoints keep it."""

    behavior: str
    step: int
    name: str
    old: float
    new: float


@dataclass(frozen=True, slots=True)
class BehaviorRolledBack:
    """A behavior was reset to the checkpoint at `path`; what it learned between `step` and `from_step` is lost."""

    behavior: str
    step: int
    from_step: int
    path: str


@dataclass(frozen=True, slots=True)
class LessonChanged:
    """A parameter has reached another lesson, by itself or by hand. behavior: the one whose learning has decided that.
    lesson: from 1; name: "" where the file has none."""

    behavior: str
    step: int
    parameter: str
    lesson: int
    num_lessons: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class ParameterStatus:
    """An environment parameter now. value: the number, or what its sampler draws, in words. lesson: from 1; name: of
    the lesson, "" without lessons.

    Of a lesson that is not the last one: it ends once `measure` of that behavior, which is `current`, is greater than
    `threshold`, and `episodes` have reached min_lesson_length. measure is "" at the last one, without lessons, and
    in a run whose lessons stay; current is None before the first episode has ended.
    """

    kind: Literal["number", "sampler", "lessons"]
    value: str
    lesson: int = 1
    num_lessons: int = 1
    name: str = ""
    behavior: str = ""
    measure: Literal["reward", "progress", "Elo", ""] = ""
    current: float | None = None
    threshold: float = 0.0
    episodes: int = 0
    min_lesson_length: int = 0
    require_reset: bool = False


@dataclass(frozen=True, slots=True)
class ParametersReported:
    """Every environment parameter, by name; twice a second at most, and only after a change."""

    parameters: Mapping[str, ParameterStatus]


@dataclass(frozen=True, slots=True)
class NoteAdded:
    """The user wrote a note about one behavior, or about the run when None."""

    text: Text
    behavior: str | None = None


@dataclass(frozen=True, slots=True)
class WarningRaised:
    """Something looks wrong. kind and behavior ("" for the run) name the warning until it is cleared.

    message: what was observed, with numbers; advice: what to try.
    """

    kind: str
    behavior: str
    message: Text
    advice: Text


@dataclass(frozen=True, slots=True)
class WarningCleared:
    """The warning no longer applies."""

    kind: str
    behavior: str


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that has memory on a GPU. name: "" where unknown; is_ours: of this run."""

    pid: int
    name: str
    memory_used_bytes: int | None
    is_ours: bool


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device as its driver reports it; None where the driver reports nothing."""

    index: int
    name: str
    utilization_percent: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    temperature_celsius: float | None
    power_watts: float | None
    power_limit_watts: float | None
    in_use: bool
    processes: tuple[GpuProcess, ...] = ()


@dataclass(frozen=True, slots=True)
class RunProcess:
    """A process of the run, with those that it has started itself. name: "worker 2 of gymnasium:X"; "training" for that
    of the run. num_descriptors: of the one of them with the most."""

    pid: int
    name: str
    memory_bytes: int
    num_descriptors: int


@dataclass(frozen=True, slots=True)
class DevicesSampled:
    """gpu_note says why gpus is empty ("no NVIDIA driver") or stale; empty otherwise.

    is_memory_limited: memory_total_bytes is the limit of the run's control group. processes: the run's, those with the
    most memory first. max_descriptors: how many each of them may have open; 0 where it is not known.
    """

    gpus: tuple[Gpu, ...]
    gpu_note: str
    cpu_percent: float
    num_cpus: int
    memory_used_bytes: int
    memory_total_bytes: int
    process_memory_bytes: int
    disk_free_bytes: int
    disk_total_bytes: int
    is_memory_limited: bool = False
    processes: tuple[RunProcess, ...] = ()
    max_descriptors: int = 0


@dataclass(frozen=True, slots=True)
class RankStatus:
    """One of several ranks since the last report. device: on which it learns. waiting: the share of time, from 0 to 1,
    in which it waited for others. devices: of its machine, where that is not rank 0's, and this its first rank there.
    """

    rank: int
    host: str
    device: str
    steps_per_second: float
    waiting: float
    devices: DevicesSampled | None = None


@dataclass(frozen=True, slots=True)
class RanksReported:
    """What the ranks of a run do, in their order; every two seconds, where there are several."""

    ranks: tuple[RankStatus, ...]


@dataclass(frozen=True, slots=True)
class LogEmitted:
    """A message to the user. source: the behavior, worker or part it comes from; "" for the run."""

    level: LogLevel
    source: str
    message: Text


@dataclass(frozen=True, slots=True)
class EnvironmentFailed:
    """An environment ended the named behaviors. reason is one line; detail may hold a traceback."""

    environment: str
    behaviors: tuple[str, ...]
    reason: Text
    detail: Text = ""


@dataclass(frozen=True, slots=True)
class EnvironmentRestarting:
    """A worker process of an environment failed and is started again, alone; its agents' episodes were cut short.

    behaviors: those of the environment. count: restarts of this worker so far, this one included. reason is one line;
    detail may hold a traceback.
    """

    environment: str
    worker: int
    behaviors: tuple[str, ...]
    reason: Text
    detail: Text
    count: int


@dataclass(frozen=True, slots=True)
class EnvironmentRestarted:
    """That worker's environments act again, so many seconds after its failure."""

    environment: str
    worker: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process of an environment. number: from 0; restarts: so far.

    steps_per_second: of its agents, over the last minute of training. waiting: share of that time, from 0 to 1, in
    which it waited for the next round. lag: by how many versions its policy was behind
    the newest weights when its last experience was learned from. All three are None where agents act in the training
    process.

    pid: None while there is none. memory_bytes: resident, with the processes that it has started, such as a player, and
    with pages that others share; None where it is not known.
    """

    number: int
    pid: int | None
    steps_per_second: float | None
    waiting: float | None
    lag: int | None
    restarts: int
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class WorkersSampled:
    """Every worker process of an environment, in order; once a second while it trains. behaviors: those in it."""

    environment: str
    behaviors: tuple[str, ...]
    workers: tuple[Worker, ...]

    @property
    def first_behavior(self) -> str:
        """It distinguishes the environment from others of the same name; "" where there is none."""
        return self.behaviors[0] if self.behaviors else ""


@dataclass(frozen=True, slots=True)
class EnvironmentAwaits:
    """What the user has to do before an environment continues; text is "" once nothing is."""

    environment: str
    text: Text


@dataclass(frozen=True, slots=True)
class WorkerFailed:
    """An internal error: the run stops with everything saved."""

    worker: str
    error: Text
    traceback: Text


@dataclass(frozen=True, slots=True)
class CommandAsked:
    """A command was sent to the run; exactly one CommandFinished with the same id follows. label: what a user calls it,
    "" in logs of earlier versions."""

    id: str
    name: str
    behavior: str | None
    label: str = ""


@dataclass(frozen=True, slots=True)
class CommandFinished:
    """ok: whether the request is fulfilled; message: the file, or the reason."""

    id: str
    ok: bool
    message: Text


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """Of the screens that show the run, `screen` controls it from now on, and it alone sends commands; "" once none is
    left. Programs without a screen send theirs at any time."""

    screen: Text


Event: TypeAlias = (
    RunStarted
    | RunStateChanged
    | BehaviorStarted
    | BehaviorStateChanged
    | ProgressReported
    | StepsAwaited
    | EpisodesFinished
    | MetricsReported
    | EvaluationReported
    | LeagueReported
    | TimeSplit
    | CheckpointSaved
    | CheckpointFailed
    | CheckpointRemoved
    | PolicyExported
    | ExportFailed
    | HyperparametersReported
    | HyperparameterChanged
    | BehaviorRolledBack
    | LessonChanged
    | ParametersReported
    | NoteAdded
    | WarningRaised
    | WarningCleared
    | DevicesSampled
    | RanksReported
    | LogEmitted
    | EnvironmentFailed
    | EnvironmentRestarting
    | EnvironmentRestarted
    | WorkersSampled
    | EnvironmentAwaits
    | WorkerFailed
    | CommandAsked
    | CommandFinished
    | ControllerChanged
)

# a newer one replaces an older one
DELTAS: tuple[type, ...] = (
    ProgressReported,
    StepsAwaited,
    LeagueReported,
    TimeSplit,
    ParametersReported,
    DevicesSampled,
    RanksReported,
    WorkersSampled,
)


@dataclass(frozen=True, slots=True)
class Envelope:
    """An event with the wall time of its publication, and its position in the run: the process that published it, from
    1 (0 before its log is open), and its number there, from 1 without gaps."""

    number: int
    time: float
    event: Event
    epoch: int = 0


def new_id() -> str:
    """A unique command id."""
    return uuid.uuid4().hex[:12]


@dataclass(frozen=True, slots=True)
class Pause:
    """Park the workers of one behavior, or of all when None."""

    behavior: str | None = None
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Resume:
    """Let the workers of one behavior, or of all when None, continue."""

    behavior: str | None = None
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class SaveCheckpoint:
    """Write a checkpoint of one behavior, or of each when None, at its next safe point."""

    behavior: str | None = None
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class ExportPolicy:
    """Write the policy of one behavior, or of each when None, as ONNX."""

    behavior: str | None = None
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Stop:
    """mode "checkpoint" saves every behavior first; "now" loses what came after the last checkpoints."""

    mode: StopMode = "checkpoint"
    exit_code: int = 0
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class SetHyperparameter:
    """Change a hyperparameter of one behavior from its next update on."""

    behavior: str
    name: str
    value: float
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class RollBack:
    """Reset one behavior to its checkpoint at `path`; newer checkpoints are set aside."""

    behavior: str
    path: str
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class SetLesson:
    """Let an environment parameter go to a lesson, counted from 1, from the next episodes on."""

    parameter: str
    lesson: int
    behavior: ClassVar[None] = None  # of the whole run
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class AddNote:
    """Write a note about one behavior, or about the run when None."""

    text: str
    behavior: str | None = None
    id: str = field(default_factory=new_id)


Command: TypeAlias = (
    Pause | Resume | SaveCheckpoint | ExportPolicy | Stop | SetHyperparameter | RollBack | SetLesson | AddNote
)


@dataclass(frozen=True, slots=True)
class Attend:
    """Whether a user watches the run: a behavior that diverged then waits to be rolled back instead of ending it.

    screen: its name among those that show the run.
    """

    is_attended: bool
    screen: str


@dataclass(frozen=True, slots=True)
class TakeControl:
    """That screen, which attends, is to control the run from now on."""

    screen: str


@dataclass(frozen=True, slots=True)
class YieldToScreen:
    """A key is answered: training waits for that many seconds, as soon as each of its threads reaches a safe point."""

    seconds: float


Hint: TypeAlias = Attend | TakeControl | YieldToScreen  # from a screen; nothing answers it, and nothing keeps it
