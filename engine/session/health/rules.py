"""What a rule of health is.

A rule sees every event that concerns it and says whether something is wrong, all is well again, or nothing new. Between
its two limits it says nothing, so that what was raised stays raised and nothing flickers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias

from engine.session.health.course import Course
from engine.session.messages import Event


@dataclass(frozen=True, slots=True)
class Finding:
    """Something is wrong: what was seen, and what to try."""

    message: str
    advice: str


Verdict: TypeAlias = Finding | Literal["fine"] | None  # None: nothing new


class Rule(Protocol):
    """One thing that can be wrong with a behavior, with what must be remembered to tell."""

    kind: ClassVar[str]

    def judge(self, event: Event, course: Course) -> Verdict:
        """What this event tells, after `course` has taken it in."""


class Streak:
    """Counts how often in a row something held."""

    def __init__(self, needed: int):
        self._needed = needed
        self._length = 0

    def add(self, holds: bool) -> bool:
        """Whether it has held so many times in a row, this time included."""
        self._length = self._length + 1 if holds else 0
        return self._length >= self._needed


def short_count(steps: float) -> str:
    """A count of steps as it is said: 950, 12.5k, 1.2M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if steps >= size:
            return f"{steps / size:.3g}{unit}"
    return f"{steps:.0f}"
