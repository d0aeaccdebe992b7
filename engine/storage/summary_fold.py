"""The fold behind a run's summary: lines of events as plain JSON, applied in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rl_tui.engine.session.returns import RecentEpisodes, best_checkpoint, ranking_loss
from rl_tui.engine.session.states import ACTIVE, REPORTED_ENDS

LARGEST = 1e300  # a number beyond it is ignored, so that sums of a few stay finite
PROGRESS = frozenset(
    {
        "BehaviorStarted",
        "ProgressReported",
        "EpisodesFinished",
        "MetricsReported",
        "LeagueReported",
        "CheckpointSaved",
        "CheckpointRemoved",
        "BehaviorRolledBack",
    }
)
NOT_FINITE = frozenset({"nan", "inf", "-inf"})  # how events write these numbers


class Saved(NamedTuple):
    """A checkpoint on disk."""

    step: int
    mean_return: float | None
    lessons: Mapping[str, int]
    held_out_loss: float | None = None


@dataclass(slots=True)
class BehaviorFold:
    """One behavior. step: None when only an older one, known_step, is known. checkpoints: by path, oldest first.
    rating: Elo, None without self-play."""

    algorithm: str = ""
    environment: str = ""
    max_steps: int = 0
    step: int | None = None
    known_step: int = 0
    checkpoints: dict[str, Saved] = field(default_factory=dict)
    episodes: RecentEpisodes = field(default_factory=RecentEpisodes)
    has_started: bool = False  # in the part that was read last: earlier episodes do not count
    rating: float | None = None

    def start(self, algorithm: object, environment: object, max_steps: object) -> None:
        """Apply the start of its trainer; earlier episodes no longer count."""
        self.algorithm = algorithm if isinstance(algorithm, str) else ""
        self.environment = environment if isinstance(environment, str) else ""
        self.max_steps = whole(max_steps) or 0
        self.reset_episodes()

    def reset_episodes(self) -> None:
        """Drop earlier episodes and the rating, which were those of another policy."""
        self.episodes, self.has_started, self.rating = RecentEpisodes(), True, None

    def add_episodes(self, count: int | None, mean_return: float | None) -> None:
        """Count episodes that ended together."""
        if count is not None and count > 0 and mean_return is not None:
            self.episodes.add(count, mean_return)

    @property
    def newest_step(self) -> int:
        """The largest known step."""
        saved = max((checkpoint.step for checkpoint in self.checkpoints.values()), default=0)
        return max(saved, self.known_step) if self.step is None else self.step

    @property
    def best_return(self) -> float | None:
        """Of the best checkpoint."""
        best = best_checkpoint(list(self.checkpoints.values()))
        return None if best is None else best.mean_return

    @property
    def best_loss(self) -> float | None:
        """Of the same, where it has no return."""
        best = best_checkpoint(list(self.checkpoints.values()))
        return None if best is None else ranking_loss(best)

    @property
    def last_return(self) -> float | None:
        """Of the newest episodes, or if none are known of the newest checkpoint."""
        saved = [each.mean_return for each in self.checkpoints.values() if each.mean_return is not None]
        return self.episodes.mean if self.episodes.groups else saved[-1] if saved else None


@dataclass(slots=True)
class SummaryFold:
    """A run as far as the lines that were read describe it."""

    state: str | None = None
    exit_code: int | None = None
    seed: int | None = None
    first_at: float | None = None
    last_at: float | None = None
    process_started_at: float | None = None
    has_progress: bool = False
    behaviors: dict[str, BehaviorFold] = field(default_factory=dict)
    _before: tuple[str | None, int | None] = (None, None)  # state and exit code when the newest process started

    def behavior(self, name: str) -> BehaviorFold:
        """That behavior, added if it is new."""
        return self.behaviors.setdefault(name, BehaviorFold())

    @property
    def has_recent_episodes(self) -> bool:
        """Whether the part that was read last has enough of the newest episodes of every behavior for their mean."""
        return all(behavior.has_started or behavior.episodes.is_full for behavior in self.behaviors.values())

    def skip(self) -> None:
        """Forget everything that may have changed in a part of the file that is not read."""
        self.state, self.exit_code, self.has_progress = None, None, False
        for behavior in self.behaviors.values():
            behavior.known_step = max(behavior.known_step, behavior.step or 0)
            behavior.step = None
            behavior.episodes, behavior.has_started, behavior.rating = RecentEpisodes(), False, None

    def apply(self, body: object) -> None:
        """Apply one line; anything but an event is ignored."""
        if not isinstance(body, dict) or body.get("v") != 1 or (time := number(body.get("t"))) is None:
            return
        self.first_at = time if self.first_at is None else self.first_at
        self.last_at = time
        event, name, step = body.get("event"), body.get("behavior"), whole(body.get("step"))
        if event == "RunStarted":
            self._before = self.state, self.exit_code
            self.state, self.exit_code, self.process_started_at = "starting", None, time
            self.seed = whole(body.get("seed"))
        elif event == "RunStateChanged":
            self._apply_state(body.get("state"), body.get("exit_code"))
        elif event in PROGRESS and isinstance(name, str) and step is not None:
            self._apply_progress(event, self.behavior(name), step, body)
            elapsed = number(body.get("elapsed_seconds"))
            self.process_started_at = self.process_started_at if elapsed is None else time - elapsed

    def _apply_state(self, state: object, exit_code: object) -> None:
        if not isinstance(state, str) or state not in ACTIVE | REPORTED_ENDS:
            return
        was_refused = (self.state, state) == ("starting", "failed")
        if was_refused and self._before[0] is not None:  # resuming it failed and changed nothing
            self.state, self.exit_code = self._before
        else:
            self.state, self.exit_code = state, whole(exit_code)

    def _apply_progress(self, event: str, behavior: BehaviorFold, step: int, body: dict[str, object]) -> None:
        if event == "CheckpointRemoved":
            behavior.checkpoints.pop(str(body.get("path")), None)
            return
        behavior.step = step
        match event:
            case "ProgressReported":
                self.has_progress = True
            case "EpisodesFinished":
                self.has_progress = True
                for group in _groups(body):
                    behavior.add_episodes(whole(group.get("count")), return_of(group.get("mean_return")))
            case "CheckpointSaved":
                saved = saved_of(step, body.get("mean_return"), body.get("lessons"), body.get("held_out_loss"))
                behavior.checkpoints[str(body.get("path"))] = saved
            case "LeagueReported":
                behavior.rating = number(body.get("rating"))
            case "BehaviorStarted":
                behavior.start(body.get("algorithm"), body.get("environment"), body.get("max_steps"))
            case "BehaviorRolledBack":
                behavior.reset_episodes()


def _groups(finished: dict[str, object]) -> list[dict[str, object]]:
    """The groups of EpisodesFinished, which is one itself where it lists none."""
    groups = finished.get("groups")
    return [each for each in groups if isinstance(each, dict)] if isinstance(groups, list) and groups else [finished]


def saved_of(step: int, mean_return: object, lessons: object, held_out_loss: object = None) -> Saved:
    """A checkpoint; anything but a mapping is no lessons."""
    return Saved(step, number(mean_return), lessons if isinstance(lessons, dict) else {}, number(held_out_loss))


def number(value: object) -> float | None:
    """A finite number; None for anything else that JSON may hold."""
    return float(value) if isinstance(value, int | float) and abs(value) < LARGEST else None


def return_of(value: object) -> float | None:
    """A mean return as an event has it, finite or not; None for anything else."""
    return float(value) if isinstance(value, str) and value in NOT_FINITE else number(value)


def whole(value: object) -> int | None:
    """An integer of 64 bits; None for anything else."""
    return value if isinstance(value, int) and abs(value) < 2**63 else None
