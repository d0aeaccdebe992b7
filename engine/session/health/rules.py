"""What a health rule is.

A rule judges every event that concerns it: something is wrong, everything is fine, or no change. Between its two limits
it reports no change, so that an active warning does not flicker.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias

from rl_tui.engine.session.health.behavior_history import BehaviorHistory
from rl_tui.engine.session.messages import Event


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem: what was observed, and what to try."""

    message: str
    advice: str


Verdict: TypeAlias = Finding | Literal["fine"] | None  # None: no change


class Rule(Protocol):
    """One thing that can be wrong with a behavior, with the state needed to detect it."""

    kind: ClassVar[str]

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge this event, which has already been applied to `history`."""


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
