"""Numbers that an environment reports besides rewards: keys of Gymnasium's `info` that are turned into statistics.

Shapes: N copies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.specs import Bool, Measured

Infos: TypeAlias = Mapping[str, Any]  # Any: as the environment returned it


@runtime_checkable
class Measuring(Protocol):
    """An environment that reports such numbers."""

    def measure(self, keys: Sequence[str]) -> None:
        """From now on, steps include the numbers of these keys."""


class Tally:
    """Sums and counts of the finite numbers under some keys since the last `drain`."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        self._sums: dict[str, tuple[float, int]] = {}

    def add(self, infos: Infos) -> None:
        """Count what one copy's step reports; None is skipped. Raises EnvironmentFailure for anything but a number."""
        for key in self._keys:
            value = infos.get(key)
            if value is not None:
                self._count(key, value)

    def add_batch(self, infos: Infos, rows: Bool) -> None:
        """The same of these copies, bool[N], as Gymnasium's vectorized environments report them."""
        for key in self._keys:
            if key in infos:
                has, reported = np.logical_and(rows, infos.get(f"_{key}", True)), infos[key]
                for row in np.flatnonzero(has):
                    self._count(key, reported if isinstance(reported, Mapping) else reported[row])

    def drain(self) -> Measured | None:
        """What was counted; counting starts again."""
        drained, self._sums = self._sums, {}
        return drained or None

    def _count(self, key: str, value: Any) -> None:  # Any: as the environment returned it
        number = value if type(value) is float else as_number(key, value)
        if math.isfinite(number):
            total, count = self._sums.get(key, (0.0, 0))
            self._sums[key] = total + number, count + 1


def as_number(key: str, value: Any) -> float:  # Any: as the environment returned it
    """The one number that a scalar or an array of one entry holds. Raises EnvironmentFailure."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf":
        text = repr(value)
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        raise EnvironmentFailure(f"info[{key!r}] must be a number, since env_settings.metrics names it, got {shown}")
    return float(array.reshape(())[()])
