"""The rows of all slots, in flat columns.  Shapes: B rows, M memory columns."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.experience import Column, chosen_values, columns_of, used_columns, values_of
from rl_tui.engine.specs import BehaviorSpec, Choice, DecisionSteps, Float32, Int64, TerminalSteps, Trajectories

_TRAJECTORIES = columns_of(Trajectories)
_STEP_NUMBERS = next(column for column in _TRAJECTORIES if column.name == "step_numbers")
Scalar = TypeVar("Scalar", bound=np.generic)


class SlotColumns:
    """Owned by the collector's thread. An optional column is made when it first appears, as it was absent before.

    observations: an array for each of the spec.
    """

    def __init__(self, spec: BehaviorSpec, capacity: int, memory_size: int) -> None:
        """capacity: rows of a slot, of which there is one at first."""
        self._spec = spec
        self._capacity = capacity
        self._memory_size = memory_size
        carried = used_columns(columns_of(DecisionSteps), spec)
        self._observed = [column for column in carried if column.stage == "observed"]  # all of them optional
        self._credited = [column for column in carried if column.stage == "credited"]
        self._chosen = [column for column in used_columns(_TRAJECTORIES, spec) if column.stage == "chosen"]
        self._following = [column for column in self._observed if column.has_next]
        self._observed_values, self._credited_values = values_of(self._observed), values_of(self._credited)
        self._chosen_values = chosen_values(self._chosen)
        self._columns = self._first_columns()
        self._has_optional = False
        self._bind()

    def grow(self, num_slots: int) -> None:
        """Make room for so many more slots."""
        added = num_slots * self._capacity
        self._columns = {name: longer(column, added) for name, column in self._columns.items()}
        self._bind()

    @property
    def group_ids(self) -> Int64 | None:
        """The group of each row's agent; None until the first group appears."""
        return self._columns.get("group_ids")

    def write(
        self, rows: Int64, decisions: DecisionSteps, choice: Choice, memories: Float32 | None, step_number: int
    ) -> None:
        """Write what was observed, remembered and chosen."""
        for target, observation in zip(self.observations, decisions.observations, strict=True):
            target[rows] = observation
        for target, chosen in zip(self._chosen_arrays, self._chosen_values(choice), strict=True):
            target[rows] = chosen
        observed = self._observed_values(decisions)
        if self._has_optional or _has_any(observed):
            self._write(self._observed, rows, observed)
            if "group_ids" in self._columns:
                self._column(_STEP_NUMBERS)[rows] = step_number
        if memories is not None:
            self._columns["memories"][rows] = memories

    def credit(self, rows: Int64, steps: DecisionSteps | TerminalSteps, acted: Int64 | None) -> None:
        """Write what followed the actions of these rows; acted: rows of `steps`, None for all."""
        values = self._credited_values(steps)
        if acted is not None:
            values = tuple([None if value is None else value[acted] for value in values])
        self._write(self._credited, rows, values)

    def following(self, decisions: DecisionSteps, rows: Int64) -> dict[str, NDArray[Any]]:
        """Copies of what is kept of these rows of decisions, before which segments end, without what is absent."""
        values = {f"next_{column.name}": getattr(decisions, column.name) for column in self._following}
        return {name: value.take(rows, axis=0) for name, value in values.items() if value is not None}

    def take(self, rows: Int64) -> dict[str, Any]:
        """What `Trajectories` has of these rows, copied."""
        columns = {name: column.take(rows, axis=0) for name, column in self._columns.items()}
        observations = tuple([columns[f"observation.{i}"] for i in range(len(self._spec.observations))])
        return {"observations": observations, **{column.name: columns.get(column.name) for column in _TRAJECTORIES}}

    def _write(self, columns: list[Column], rows: Int64, values: tuple[NDArray[Any] | None, ...]) -> None:
        """Write columns, where the absent ones have been made."""
        for column, value in zip(columns, values, strict=True):
            if value is not None:
                self._column(column)[rows] = value
            elif self._has_optional and column.name in self._columns:
                self._columns[column.name][rows] = column.fill

    def _column(self, column: Column) -> NDArray[Any]:
        """The array of a column, which is made when it first appears."""
        if column.name not in self._columns:
            self._has_optional = True
            shape = len(self._columns["rewards"]), *column.shape(self._spec, 0)
            self._columns[column.name] = np.full(shape, column.fill, column.dtype)
        return self._columns[column.name]

    def _first_columns(self) -> dict[str, NDArray[Any]]:
        """Room for one slot's rows, without optional columns other than memories."""
        shapes: dict[str, tuple[tuple[int, ...], str]] = {
            f"observation.{i}": (o.shape, o.dtype) for i, o in enumerate(self._spec.observations)
        }
        for column in _TRAJECTORIES:
            if not column.is_optional or (column.name == "memories" and self._memory_size):
                shapes[column.name] = column.shape(self._spec, self._memory_size), column.dtype
        return {name: np.zeros((self._capacity, *shape), dtype) for name, (shape, dtype) in shapes.items()}

    def _bind(self) -> None:
        """Find the arrays that every step writes."""
        self.observations = [self._columns[f"observation.{i}"] for i in range(len(self._spec.observations))]
        self._chosen_arrays = [self._columns[column.name] for column in self._chosen]


def longer(column: NDArray[Scalar], added: int) -> NDArray[Scalar]:
    """The column and so many rows of zeros."""
    result: NDArray[Scalar] = np.append(column, np.zeros((added, *column.shape[1:]), column.dtype), axis=0)
    return result


def _has_any(values: tuple[NDArray[Any] | None, ...]) -> bool:
    for value in values:  # noqa: SIM110  # a generator takes three times as long
        if value is not None:
            return True
    return False
