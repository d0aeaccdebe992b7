"""The lines of a list of runs: single runs or groups of one configuration, in the order of a column."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rl_tui.tui.state.choices import RunsColumn

if TYPE_CHECKING:
    from rl_tui.engine.session.summaries import RunSummary

COLUMNS: tuple[RunsColumn, ...] = ("age", "run", "state", "behaviors", "steps", "best", "last", "took")
RISING: frozenset[RunsColumn] = frozenset({"age", "run", "state", "behaviors"})  # whose lowest value comes first


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run, or several that differ in nothing but their seeds. key: the run's id, or the group's own."""

    key: str
    runs: tuple[RunSummary, ...]

    @property
    def is_group(self) -> bool:
        """Whether it is more than one run."""
        return len(self.runs) > 1

    @property
    def name(self) -> str:
        """The run's id; of a group what its ids begin with."""
        return shared_name([run.run_id for run in self.runs])

    def mean(self, column: RunsColumn) -> float | None:
        """The number in that column, for a group the mean of those that have one; None if none has."""
        found = [value for run in self.runs if (value := _figure(run, column)) is not None and math.isfinite(value)]
        return sum(value / len(found) for value in found) if found else None


def shared_name(ids: Sequence[str]) -> str:
    """The common prefix of the names, without separators and digits at its end; the first name if there is none.

    A single name is returned as it is.
    """
    if len(ids) == 1:
        return ids[0]
    lowest, highest = min(ids), max(ids)  # what these two share, all share
    length = next(
        (at for at, (one, other) in enumerate(zip(lowest, highest, strict=False)) if one != other), len(lowest)
    )
    return re.sub(r"[-_. ]*[0-9]*$", "", lowest[:length]) or ids[0]


def rows_of(runs: Sequence[RunSummary], keys: Mapping[str, str]) -> list[RunRow]:
    """One row per run or group, in the order of first runs. keys: by run id; a run without one has its own row."""
    grouped: dict[str, list[RunSummary]] = {}
    for run in runs:
        grouped.setdefault(keys.get(run.run_id, run.run_id), []).append(run)
    return [
        RunRow(key if len(found) > 1 else found[0].run_id, tuple(sorted(found, key=lambda run: _natural(run.run_id))))
        for key, found in grouped.items()
    ]


def in_order(rows: Sequence[RunRow], column: RunsColumn, *, is_reversed: bool) -> list[RunRow]:
    """The rows by that column; equal ones in their order before, and those without a value last."""
    falls = (column not in RISING) != is_reversed
    values = [(_value(row, column), row) for row in rows]
    known = sorted((pair for pair in values if pair[0] is not None), key=lambda pair: pair[0] or (), reverse=falls)
    return [row for _, row in known] + [row for value, row in values if value is None]


def is_rising(column: RunsColumn, *, is_reversed: bool) -> bool:
    """Whether the lowest value comes first."""
    return (column in RISING) != is_reversed


def _value(row: RunRow, column: RunsColumn) -> tuple[float | str, ...] | None:
    """The sort key: numbers within a name as numbers; None if it has nothing in that column."""
    match column:
        case "run":
            return _natural(row.name)
        case "state":
            return tuple(sorted({run.state for run in row.runs}))
        case "behaviors":
            names = [behavior.name for behavior in row.runs[0].behaviors]
            return _natural(" ".join(names)) if names else None
        case "age":
            times = [run.last_event_at for run in row.runs if run.last_event_at is not None]
            return (-max(times),) if times else None
        case _:
            mean = row.mean(column)
            return None if mean is None else (mean,)


def _natural(name: str) -> tuple[float | str, ...]:
    """walker-2 before walker-10: words and numbers in turn."""
    parts = re.split(r"([0-9]+)", name.lower())
    return tuple(float(part[:300]) if at % 2 else part for at, part in enumerate(parts))


def _figure(run: RunSummary, column: RunsColumn) -> float | None:
    first = run.behaviors[0] if run.behaviors else None
    match column:
        case "took":
            return run.elapsed_seconds
        case "steps":
            return None if first is None else first.step
        case "best":
            return None if first is None else first.best_return
        case "last":
            return None if first is None else first.last_return
        case _:
            return None
