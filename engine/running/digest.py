"""What lines of events tell in short, taken in as plain JSON and in order: the fold behind the summary of a run."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

RECENT_EPISODES = 100  # over which the field reports a return
LARGEST = 1e300  # of a number worth telling: sums of a few stay finite
PROGRESS = frozenset(
    {
        "BehaviorStarted",
        "ProgressReported",
        "EpisodesFinished",
        "MetricsReported",
        "CheckpointSaved",
        "BehaviorRolledBack",
    }
)
STATES = frozenset({"starting", "training", "paused", "stopping", "finished", "failed"})


@dataclass(slots=True)
class BehaviorDigest:
    """step: None when only an older one is known, which is then in saved_step."""

    algorithm: str = ""
    max_steps: int = 0
    step: int | None = None
    saved_step: int = 0
    saved_return: float | None = None
    best_return: float | None = None
    episodes: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=RECENT_EPISODES))

    def start(self, algorithm: object, max_steps: object) -> None:
        """What its trainer is made for."""
        self.algorithm = algorithm if isinstance(algorithm, str) else ""
        self.max_steps = whole(max_steps) or 0

    def add_episodes(self, count: int | None, mean_return: float | None) -> None:
        """Count episodes that ended together."""
        if count is not None and count > 0 and mean_return is not None:
            self.episodes.append((count, mean_return))

    def add_checkpoint(self, step: int, mean_return: float | None) -> None:
        """Count a checkpoint; one that was saved before any episode ended has no return."""
        self.saved_step = step
        if mean_return is not None:
            self.saved_return = mean_return
            self.best_return = mean_return if self.best_return is None else max(self.best_return, mean_return)

    def last_return(self) -> float | None:
        """The mean of the newest episodes, of which only the means of groups are known."""
        count, total = 0, 0.0
        for size, mean in reversed(self.episodes):
            count, total = count + size, total + size * mean
            if count >= RECENT_EPISODES:
                break
        return total / count if count else self.saved_return


@dataclass(slots=True)
class Digest:
    """What the lines that were read tell, taken in order."""

    state: str | None = None
    exit_code: int | None = None
    first_at: float | None = None
    last_at: float | None = None
    process_began_at: float | None = None
    has_progress: bool = False
    behaviors: dict[str, BehaviorDigest] = field(default_factory=dict)
    _before: tuple[str | None, int | None] = (None, None)  # state and exit code when the newest process began

    def behavior(self, name: str) -> BehaviorDigest:
        """That behavior, made when it is new."""
        return self.behaviors.setdefault(name, BehaviorDigest())

    def skip(self) -> None:
        """A part of the file is not read: what may have changed in it is not known."""
        self.state, self.exit_code, self.has_progress = None, None, False
        for behavior in self.behaviors.values():
            behavior.saved_step = max(behavior.saved_step, behavior.step or 0)
            behavior.step = None
            behavior.episodes.clear()

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
        if not isinstance(state, str) or state not in STATES:
            return
        was_refused = (self.state, state) == ("starting", "failed")
        if was_refused and self._before[0] is not None:  # a resume that changed nothing of the run
            self.state, self.exit_code = self._before
        else:
            self.state, self.exit_code = state, whole(exit_code)

    def _take_progress(self, event: str, behavior: BehaviorDigest, step: int, body: dict[str, object]) -> None:
        behavior.step = step
        match event:
            case "ProgressReported":
                self.has_progress = True
            case "EpisodesFinished":
                self.has_progress = True
                behavior.add_episodes(whole(body.get("count")), number(body.get("mean_return")))
            case "CheckpointSaved":
                behavior.add_checkpoint(step, number(body.get("mean_return")))
            case "BehaviorStarted":
                behavior.start(body.get("algorithm"), body.get("max_steps"))
            case "BehaviorRolledBack":
                behavior.episodes.clear()


def number(value: object) -> float | None:
    """A finite number; None for anything else that JSON may hold."""
    return float(value) if isinstance(value, int | float) and abs(value) < LARGEST else None


def whole(value: object) -> int | None:
    """A whole number of the size that events have; None for anything else."""
    return value if isinstance(value, int) and abs(value) < 2**63 else None
