"""Checks that an environment's steps fit its specs; they run at every step, and so must be cheap.

Shapes: N agents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import EnvironmentFailure, NonFiniteError
from rl_tui.engine.experience import Column, columns_of, values_of
from rl_tui.engine.specs import BehaviorSpec, Bool, DecisionSteps, Int64, Measured, Steps, TerminalSteps

_CARRIED = {
    carrier: (columns_of(carrier), values_of(columns_of(carrier))) for carrier in (DecisionSteps, TerminalSteps)
}


class AnswerCheck:
    """Checks the steps of one instance against its specs.

    Raises EnvironmentFailure, or NonFiniteError naming behavior, field and agent for a number that is not finite.
    """

    def __init__(self, specs: Mapping[str, BehaviorSpec]) -> None:
        self._specs = specs
        self._unique: dict[str, Int64] = {}  # the last ids that were checked

    def check(self, answer: Mapping[str, Steps]) -> None:
        """Return if every behavior's steps fit."""
        for behavior, steps in answer.items():
            if behavior not in self._specs:
                raise EnvironmentFailure(
                    f"behavior must be one of its specs' {', '.join(self._specs)}, got {behavior!r}"
                )
            spec = self._specs[behavior]
            _check_columns(spec, steps.decisions, "")
            if steps.measured is not None:
                _check_measured(behavior, steps.measured)
            if steps.decisions.agent_ids is not self._unique.get(behavior):
                self._unique[behavior] = _unique(steps.decisions.agent_ids, behavior)
            if steps.decisions.action_mask is not None:
                _check_mask(spec, steps.decisions.action_mask, steps.decisions.agent_ids)
            if steps.terminals is not None:
                _check_columns(spec, steps.terminals, "final ")
                _unique(steps.terminals.agent_ids, behavior)
                if steps.terminals.truncated.shape != steps.terminals.agent_ids.shape:
                    found, ids = steps.terminals.truncated.shape, steps.terminals.agent_ids
                    raise EnvironmentFailure(f"{behavior}: truncated must have shape {ids.shape}, got {found}")


def _check_columns(spec: BehaviorSpec, steps: DecisionSteps | TerminalSteps, which: str) -> None:
    ids = steps.agent_ids
    count = len(ids)
    if len(steps.observations) != len(spec.observations):
        found, specified = len(steps.observations), len(spec.observations)
        raise EnvironmentFailure(f"{spec.name}: {which}observations must be {specified} like its specs, got {found}")
    for observation_spec, column in zip(spec.observations, steps.observations, strict=True):
        if column.dtype != observation_spec.dtype or column.shape != (count, *observation_spec.shape):
            raise EnvironmentFailure(
                f"{spec.name}: {which}observation {observation_spec.name!r} must be {observation_spec.dtype} "
                f"{(count, *observation_spec.shape)} for {count} agents, got {column.dtype} {column.shape}"
            )
        if column.dtype == np.float32 and np.count_nonzero(np.isfinite(column)) != column.size:
            found_at = _first_row(~np.isfinite(column))
            raise NonFiniteError(
                f"{spec.name}: {which}observation {observation_spec.name!r} of agent {ids[found_at]} is not finite: "
                f"{column[found_at]}"
            )
    columns, values = _CARRIED[type(steps)]
    for described, value in zip(columns, values(steps), strict=True):
        if value is not None:
            _check_column(spec, described, value, ids)


def _check_column(spec: BehaviorSpec, column: Column, value: NDArray[Any], ids: Int64) -> None:
    shape = len(ids), *column.shape(spec, 0)
    if value.dtype != column.dtype or value.shape != shape:
        raise EnvironmentFailure(
            f"{spec.name}: {column.name} must be {column.dtype} {shape}, got {value.dtype} {value.shape}"
        )
    if column.dtype == "float32" and np.count_nonzero(np.isfinite(value)) != value.size:
        row, one = _first_row(~np.isfinite(value)), column.name.replace("_", " ").removesuffix("s")
        raise NonFiniteError(f"{spec.name}: the {one} of agent {ids[row]} is not finite: {value[row]}")
    if column.holds_ids and (value < -1).any():
        row = _first_row(value < -1)
        raise EnvironmentFailure(f"{spec.name}: {column.name} must be at least 0, or -1 for none, got {value[row]}")


def _check_measured(behavior: str, measured: Measured) -> None:
    for name, (total, count) in measured.items():
        if not math.isfinite(total) or count < 0:
            raise EnvironmentFailure(
                f"{behavior}: measured[{name!r}] must be a finite sum and a count, got {total}, {count}"
            )


def _check_mask(spec: BehaviorSpec, mask: Bool, ids: Int64) -> None:
    first = 0
    for branch, size in enumerate(spec.actions.branches):
        possible: Bool = np.any(mask[:, first : first + size], axis=1)
        first += size
        if not possible.all():
            raise EnvironmentFailure(
                f"{spec.name}: action_mask leaves agent {ids[_first_row(~possible)]} no choice in branch {branch}"
            )


def _unique(ids: Int64, behavior: str) -> Int64:
    """The same ids; raises EnvironmentFailure unless they are unique whole numbers from 0 up."""
    if ids.dtype != np.int64 or ids.ndim != 1:
        raise EnvironmentFailure(f"{behavior}: agent_ids must be int64 in one dimension, got {ids.dtype} {ids.shape}")
    rising = len(ids) == 0 or (ids[0] >= 0 and np.count_nonzero(ids[1:] > ids[:-1]) == len(ids) - 1)
    if not rising and (ids.min() < 0 or len(set(ids.tolist())) != len(ids)):
        raise EnvironmentFailure(f"{behavior}: agent_ids must be unique and not negative, got {ids}")
    return ids


def _first_row(wrong: NDArray[np.bool_]) -> int:
    """The first row with a True in it."""
    return int(np.argwhere(wrong)[0][0])
