"""What a run left behind, in short: one row of a list of runs, and its form as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rl_tui.engine.session.states import SummaryState

SUMMARY_VERSION = 1
PlainValue: TypeAlias = "str | int | float | bool | list[dict[str, PlainValue]] | None"


@dataclass(frozen=True, slots=True)
class BehaviorSummary:
    """How far one behavior came.

    best_return: of its best checkpoint; best_loss: the held-out loss of one without a return. last_return: the mean of
    its newest episodes, at most a hundred; without any, that of its newest checkpoint. algorithm and environment are ""
    and max_steps 0 while unknown. rating: Elo in self-play, else None.
    """

    name: str
    algorithm: str
    step: int
    max_steps: int
    best_return: float | None
    last_return: float | None
    environment: str = ""
    best_loss: float | None = None
    rating: float | None = None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run's folder. Times are Unix seconds.

    state: as in engine/session/states.py; "unknown" when no events can be read. is_alive: a process writes to it now.
    process: which one, as "pid 123 on host"; "" without one. elapsed_seconds: of the newest process of a run that was
    resumed. note: what could not be read, and why; "" when all is well. seed: None while unknown.
    """

    run_id: str
    path: str
    state: SummaryState
    is_alive: bool
    started_at: float | None
    last_event_at: float | None
    elapsed_seconds: float | None
    behaviors: tuple[BehaviorSummary, ...]
    exit_code: int | None
    note: str
    process: str = ""
    seed: int | None = None

    @property
    def was_resumed(self) -> bool:
        """Whether elapsed_seconds leaves out earlier processes, which began more than a second before the newest."""
        if self.started_at is None or self.last_event_at is None or self.elapsed_seconds is None:
            return False
        return self.last_event_at - self.elapsed_seconds > self.started_at + 1.0


@dataclass(frozen=True, slots=True)
class Removal:
    """What removing a run would remove. path: its folder, absolute."""

    path: str
    num_bytes: int
    num_checkpoints: int


def plain(summary: RunSummary) -> dict[str, PlainValue]:
    """What `rl-tui ls --json` prints for a run, but for its settings; docs/runs.md describes it."""
    body = asdict(summary)
    for behavior in body["behaviors"]:
        behavior |= {key: _finite(behavior[key]) for key in ("best_return", "last_return")}
        behavior["trainer"] = behavior["algorithm"]
    return {"v": SUMMARY_VERSION, **body, "behaviors": list(body["behaviors"])}


def _finite(value: float | None) -> float | str | None:
    """JSON has no NaN and infinity: as in the events, these are written as strings."""
    return value if value is None or math.isfinite(value) else str(value)
