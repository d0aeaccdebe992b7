"""What must be noticed, in the line above the keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "information"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "information")  # the worst first


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert. is_loud: also rings the bell, for a user who looks elsewhere."""

    title: str
    text: str
    severity: Severity
    is_loud: bool = False

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return SEVERITIES.index(self.severity)


@dataclass(frozen=True, slots=True)
class ShownAlert:
    """The alert that is shown. num_more: that came with it. at: when it was shown, on the monotonic clock."""

    alert: Alert
    num_more: int
    at: float
