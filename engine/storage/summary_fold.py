"""What lines of events tell in short, taken in as plain JSON and in order: the fold behind the summary of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from rl_tui.engine.session.returns import RecentEpisodes, best_checkpoint
from rl_tui.engine.session.states import ACTIVE, REPORTED_ENDS

LARGEST = 1e300  # of a number worth telling: sums of a few stay finite
PROGRESS = frozenset(
    {
        "BehaviorStarted",
        "ProgressReported",
        "EpisodesFinished",
        "MetricsReported",
        "CheckpointSaved",
        "CheckpointRemoved",
        "BehaviorRolledBack",
    }
)
NOT_FINITE = frozenset({"nan", "inf", "-inf"})  # as events write these numbers


class Saved(NamedTuple):
    """A checkpoint on disk."""

    step: int
    mean_return: float | None


@dataclass(slots=True)
class BehaviorFold:
    """step: None when only an older one is known, which is then in known_step. checkpoints: by path, oldest first."""

    algorithm: str = ""
    max_steps: int = 0
    step: int | None = None
    known_step: int = 0
    checkpoints: dict[str, Saved] = field(default_factory=dict)
    episodes: RecentEpisodes = field(default_factory=RecentEpisodes)
    has_begun: bool = False  # in what was read last: no older episodes count

    def start(self, algorithm: object, max_steps: object) -> None:
        """What its trainer is made for; its episodes begin anew."""
        self.algorithm = algorithm if isinstance(algorithm, str) else ""
        self.max_steps = whole(max_steps) or 0
        self.begin_anew()

    def begin_anew(self) -> None:
        """Earlier episodes count no longer: they are those of another policy."""
        self.episodes, self.has_begun = RecentEpisodes(), True

    def add_episodes(self, count: int | None, mean_return: float | None) -> None:
        """Count episodes that ended together."""
        if count is not None and count > 0 and mean_return is not None:
            self.episodes.add(count, mean_return)

    @property
    def newest_step(self) -> int:
        """As far as is known."""
        saved = max((checkpoint.step for checkpoint in self.checkpoints.values()), default=0)
        return max(saved, self.known_step) if self.step is None else self.step

    @property
    def best_return(self) -> float | None:
        """Of the best checkpoint."""
        best = best_checkpoint(list(self.checkpoints.values()))
        return None if best is None else best.mean_return

    @property
    def last_return(self) -> float | None:
        """Of the newest episodes; where none are known, what the newest checkpoint was saved with."""
        saved = [each.mean_return for each in self.checkpoints.values() if each.mean_return is not None]
        return self.episodes.mean if self.episodes.groups else saved[-1] if saved else None


@dataclass(slots=True)
class SummaryFold:
    """What the lines that were read tell, taken in order."""

    state: str | None = None
    exit_code: int | None = None
    first_at: float | None = None
    last_at: float | None = None
    process_began_at: float | None = None
    has_progress: bool = False
    behaviors: dict[str, BehaviorFold] = field(default_factory=dict)
    _before: tuple[str | None, int | None] = (None, None)  # state and exit code when the newest process began

    def behavior(self, name: str) -> BehaviorFold:
        """That behavior, made when it is new."""
        return self.behaviors.setdefault(name, BehaviorFold())

    @property
    def has_recent_episodes(self) -> bool:
        """Whether what was read last tells the newest episodes of every behavior, as many as their mean is of."""
        return all(behavior.has_begun or behavior.episodes.is_full for behavior in self.behaviors.values())

    def skip(self) -> None:
        """A part of the file is not read: what may have changed in it is not known."""
        self.state, self.exit_code, self.has_progress = None, None, False
        for behavior in self.behaviors.values():
            behavior.known_step = max(behavior.known_step, behavior.step or 0)
            behavior.step = None
            behavior.episodes, behavior.has_begun = RecentEpisodes(), False

    def take(self, body: object) -> None:
        """Take in one line; what is no event is left out."""
        if not isinstance(body, dict) or body.get("v") != 1 or (time := number(body.get("t"))) is None:
            return
        self.first_at = time if self.first_at is None else self.first_at
        self.last_at = time
        event, name, step = body.get("event"), body.get("behavior"), whole(body.get("step"))
        if event == "RunStarted":
            self._before = self.state, self.exit_code
            self.state, self.exit_code, self.process_began_at = "starting", None, time
        elif event == "RunStateChanged":
            self._take_state(body.get("state"), body.get("exit_code"))
        elif event in PROGRESS and isinstance(name, str) and step is not None:
            self._take_progress(event, self.behavior(name), step, body)
            elapsed = number(body.get("elapsed_seconds"))
            self.process_began_at = self.process_began_at if elapsed is None else time - elapsed

    def _take_state(self, state: object, exit_code: object) -> None:
        if not isinstance(state, str) or state not in ACTIVE | REPORTED_ENDS:
            return
        was_refused = (self.state, state) == ("starting", "failed")
        if was_refused and self._before[0] is not None:  # a resume that changed nothing of the run
            self.state, self.exit_code = self._before
        else:
            self.state, self.exit_code = state, whole(exit_code)

    def _take_progress(self, event: str, behavior: BehaviorFold, step: int, body: dict[str, object]) -> None:
        if event == "CheckpointRemoved":
            behavior.checkpoints.pop(str(body.get("path")), None)
            return
        behavior.step = step
        match event:
            case "ProgressReported":
                self.has_progress = True
            case "EpisodesFinished":
                self.has_progress = True
                behavior.add_episodes(whole(body.get("count")), return_of(body.get("mean_return")))
            case "CheckpointSaved":
                behavior.checkpoints[str(body.get("path"))] = Saved(step, number(body.get("mean_return")))
            case "BehaviorStarted":
                behavior.start(body.get("algorithm"), body.get("max_steps"))
            case "BehaviorRolledBack":
                behavior.begin_anew()


def number(value: object) -> float | None:
    """A finite number; None for anything else that JSON may hold."""
    return float(value) if isinstance(value, int | float) and abs(value) < LARGEST else None


def return_of(value: object) -> float | None:
    """A mean return, finite or not, as an event has it; None for anything else."""
    return float(value) if isinstance(value, str) and value in NOT_FINITE else number(value)


def whole(value: object) -> int | None:
    """A whole number of the size that events have; None for anything else."""
    return value if isinstance(value, int) and abs(value) < 2**63 else None
