"""What a health rule is.

A rule judges every event that concerns it: something is wrong, everything is fine, or no change. Between its two limits
it reports no change, so that an active warning does not flicker. The same events must give the same verdicts: a rule
reads no clock, no file and no random number.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from rl_tui.engine.session.health.behavior_history import BehaviorHistory
from rl_tui.engine.session.messages import Event, MetricsReported


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem: what was observed, and what to try."""

    message: str
    advice: str


Verdict: TypeAlias = Finding | Literal["fine"] | None  # None: no change


class Rule(Protocol):
    """One thing that can be wrong with a behavior, with the state needed to detect it.

    Made without arguments for each behavior, and again when it is rolled back.
    """

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge this event, which has already been applied to `history`."""


@dataclass(frozen=True, slots=True)
class TrainerHealth:
    """What health rules know of a trainer.

    rules: by kind of warning, in addition to the common ones or in place of those of the same kind; None: not judged.
    advice: by kind of warning, in place of the rules' own. entropy_target: the hyperparameter that is the target at
    which it holds the policy's entropy; "" for none.
    """

    rules: Mapping[str, Callable[[], Rule] | None] = field(default_factory=dict)
    advice: Mapping[str, str] = field(default_factory=dict)
    entropy_target: str = ""


def metric(event: Event, tag: str) -> float | None:
    """That metric of a summary; None for any other event, and if it is missing or not finite."""
    value = event.metrics.get(tag) if isinstance(event, MetricsReported) and event.is_training else None
    return value if value is not None and math.isfinite(value) else None


def metrics(event: Event, tags: tuple[str, ...]) -> list[float]:
    """The finite values of these metrics in a summary."""
    values = (metric(event, tag) for tag in tags)
    return [value for value in values if value is not None]


class Streak:
    """Counts how many times in a row something was true."""

    def __init__(self, needed: int):
        self._needed = needed
        self._length = 0

    def add(self, holds: bool) -> bool:
        """Whether it was true `needed` times in a row, including this time."""
        self._length = self._length + 1 if holds else 0
        return self._length >= self._needed


class Explosion:
    """Detects that a non-negative number is far above all its earlier values. High values are not added to these.

    highest: of the values at least five summaries ago, since an explosion may take a few.
    """

    def __init__(self) -> None:
        self.highest = 0.0
        self._recent: deque[float] = deque(maxlen=5)
        self._num_known = 0
        self._is_high = Streak(2)

    def add(self, value: float, is_excused: bool) -> bool | None:
        """Whether it has exploded; None in between: no change. is_excused: a high value is expected."""
        is_known = self._num_known >= 5 and self.highest > 0
        is_high = is_known and value > 100 * self.highest and not is_excused
        if not is_high:
            self._learn(value)
        if self._is_high.add(is_high):
            return True
        return False if not is_known or value < 30 * self.highest else None

    def _learn(self, value: float) -> None:
        if len(self._recent) == self._recent.maxlen:
            self.highest = max(self.highest, self._recent[0])
            self._num_known += 1
        self._recent.append(value)


def short_count(steps: float) -> str:
    """A count of steps for messages: 950, 12.5k, 1.2M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if steps >= size:
            return f"{steps / size:.3g}{unit}"
    return f"{steps:.0f}"
