"""Checks that an environment's steps fit its specs; they run at every step, and so must be cheap.

Shapes: N agents.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import EnvironmentFailure, NonFiniteError
from rl_tui.engine.experience import Column, columns_of, values_of
from rl_tui.engine.sampling.wrong_values import in_words
from rl_tui.engine.specs import (
    Aggregation,
    BehaviorSpec,
    Bool,
    DecisionSteps,
    Int64,
    Measured,
    Statistic,
    Steps,
    TerminalSteps,
)

_METHODS = get_args(Aggregation)
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # no file or terminal can have it


class AnswerCheck:
    """Checks the steps of one instance against its specs.

    Raises EnvironmentFailure, or NonFiniteError naming behavior, field and agent for a number that is not finite. What
    is not made of arrays may raise anything else, which `require_types` explains.
    """

    def __init__(self, specs: Mapping[str, BehaviorSpec]) -> None:
        self._specs = specs
        self._decisions = {name: _CarrierCheck(spec, DecisionSteps) for name, spec in specs.items()}
        self._terminals = {name: _CarrierCheck(spec, TerminalSteps) for name, spec in specs.items()}
        self._unique: dict[str, Int64] = {}  # the last ids that were checked

    def check(self, answer: Mapping[str, Steps]) -> None:
        """Return if every behavior's steps fit."""
        for behavior, steps in answer.items():
            if behavior not in self._specs:
                known = ", ".join(self._specs) or "none"
                raise EnvironmentFailure(f"returned steps for {behavior!r}, which is not in specs ({known})")
            self._decisions[behavior].check(steps.decisions)
            if steps.measured is not None:
                _check_measured(behavior, steps.measured)
            if steps.statistics:
                _check_statistics(behavior, steps.statistics)
            if steps.decisions.agent_ids is not self._unique.get(behavior):
                self._unique[behavior] = _unique(steps.decisions.agent_ids, behavior)
            if steps.decisions.action_mask is not None:
                _check_mask(self._specs[behavior], steps.decisions.action_mask, steps.decisions.agent_ids)
            if steps.terminals is not None:
                self._terminals[behavior].check(steps.terminals)
                _unique(steps.terminals.agent_ids, behavior)
                truncated, shape = steps.terminals.truncated, steps.terminals.agent_ids.shape
                if truncated.dtype != np.bool_ or truncated.shape != shape:
                    found = f"{truncated.dtype} {truncated.shape}"
                    raise EnvironmentFailure(f"{behavior}: truncated must be bool {shape}, got {found}")


class _CarrierCheck:
    """Checks the decisions, or the terminal steps, of one behavior."""

    def __init__(self, spec: BehaviorSpec, carrier: type[DecisionSteps | TerminalSteps]) -> None:
        which, columns = "final " if carrier is TerminalSteps else "", columns_of(carrier)
        self._behavior, self._which = spec.name, which
        self._observations = [_Expected(f"{which}observation {o.name!r}", o.dtype, o.shape) for o in spec.observations]
        self._columns = [_Expected(c.name, c.dtype, c.shape(spec, 0), c) for c in columns]
        self._values = values_of(columns)

    def check(self, steps: DecisionSteps | TerminalSteps) -> None:
        """Return if they fit."""
        ids = steps.agent_ids
        if len(steps.observations) != len(self._observations):
            raise EnvironmentFailure(
                f"{self._behavior}: {self._which}observations must be {len(self._observations)} like its specs, "
                f"got {len(steps.observations)}"
            )
        count, behavior = len(ids), self._behavior
        for expected, observation in zip(self._observations, steps.observations, strict=True):
            expected.check(behavior, observation, ids, count)
        for expected, values in zip(self._columns, self._values(steps), strict=True):
            if values is not None:
                expected.check(behavior, values, ids, count)
            elif expected.is_required:
                raise EnvironmentFailure(f"{behavior}: {expected.name} must be {expected.dtype}, got None")


class _Expected:
    """What one array must be. column: its description, None for an observation."""

    def __init__(self, name: str, dtype: str, shape: tuple[int, ...], column: Column | None = None) -> None:
        self.name, self.dtype, self.column = name, np.dtype(dtype), column
        self._shape = shape
        self._is_float = dtype == "float32"
        self._holds_ids = column is not None and column.holds_ids
        self.is_required = column is None or not column.is_optional

    def check(self, behavior: str, values: NDArray[Any], ids: Int64, count: int) -> None:
        """Return if these values of `count` agents fit."""
        if values.dtype != self.dtype or values.shape != (count, *self._shape):
            agents = f" for {count} agents" if self.column is None else ""
            shape, found = (count, *self._shape), f"{values.dtype} {values.shape}"
            raise EnvironmentFailure(f"{behavior}: {self.name} must be {self.dtype} {shape}{agents}, got {found}")
        if self._is_float and np.count_nonzero(np.isfinite(values)) != values.size:
            row = _first_row(~np.isfinite(values))
            one = self.name if self.column is None else f"the {self.name.replace('_', ' ').removesuffix('s')}"
            raise NonFiniteError(f"{behavior}: {one} of agent {ids[row]} is not finite: {values[row]}")
        if self._holds_ids and (values < -1).any():
            wrong = values[_first_row(values < -1)]
            raise EnvironmentFailure(f"{behavior}: {self.name} must be at least 0, or -1 for none, got {wrong}")


def require_types(answer: object) -> None:
    """Steps by behavior, made of arrays. Raises EnvironmentFailure for what is of another type."""
    if not isinstance(answer, Mapping):
        raise EnvironmentFailure(f"must return a mapping from behavior to Steps, got {in_words(answer)}")
    for behavior, steps in answer.items():
        _require(isinstance(steps, Steps), f"{behavior}: must be Steps", steps)
        _require(
            isinstance(steps.decisions, DecisionSteps), f"{behavior}: decisions must be DecisionSteps", steps.decisions
        )
        is_final = steps.terminals is None or isinstance(steps.terminals, TerminalSteps)
        _require(is_final, f"{behavior}: terminals must be TerminalSteps or None", steps.terminals)
        for which, part in (("", steps.decisions), ("final ", steps.terminals)):
            if part is not None:
                _require_arrays(behavior, which, part)
        for name, pair in _items_of(behavior, steps.measured):
            is_pair = isinstance(pair, tuple | list) and len(pair) == 2
            _require(is_pair, f"{behavior}: measured[{name!r}] must be a sum and a count", pair)
        _require_statistics(behavior, steps.statistics)


def _require_arrays(behavior: str, which: str, steps: DecisionSteps | TerminalSteps) -> None:
    is_tuple = isinstance(steps.observations, tuple | list)
    _require(is_tuple, f"{behavior}: {which}observations must be a tuple of arrays", steps.observations)
    for index, values in enumerate(steps.observations):
        _require(isinstance(values, np.ndarray), f"{behavior}: {which}observations[{index}] must be an array", values)
    _require(
        isinstance(steps.agent_ids, np.ndarray),
        f"{behavior}: agent_ids must be int64 in one dimension",
        steps.agent_ids,
    )
    for column in columns_of(type(steps)):
        values = getattr(steps, column.name)
        is_absent = values is None and column.is_optional
        shape = "" if column.name == "action_mask" else f" ({len(steps.agent_ids)},)"
        expected = f"{behavior}: {column.name} must be {column.dtype}{shape}"
        _require(is_absent or isinstance(values, np.ndarray), expected, values)
    if isinstance(steps, TerminalSteps):
        _require(
            isinstance(steps.truncated, np.ndarray),
            f"{behavior}: truncated must be bool ({len(steps.agent_ids)},)",
            steps.truncated,
        )


def _items_of(behavior: str, measured: object) -> Iterable[tuple[object, object]]:
    _require(measured is None or isinstance(measured, Mapping), f"{behavior}: measured must be a mapping", measured)
    return measured.items() if isinstance(measured, Mapping) else ()


def _require_statistics(behavior: str, statistics: object) -> None:
    is_tuple = statistics is None or isinstance(statistics, tuple | list)
    _require(is_tuple, f"{behavior}: statistics must be a tuple of Statistic", statistics)
    for index, one in enumerate(statistics if isinstance(statistics, tuple | list) else ()):
        _require(isinstance(one, Statistic), f"{behavior}: statistics[{index}] must be a Statistic", one)
        _require(isinstance(one.name, str), f"{behavior}: statistics[{index}].name must be text", one.name)
        is_number = isinstance(one.value, int | float | np.number)
        _require(is_number, f"{behavior}: the statistic {one.name!r} must be a number", one.value)


def _require(is_fine: bool, expected: str, found: object) -> None:
    if not is_fine:
        raise EnvironmentFailure(f"{expected}, got {in_words(found)}")


def _check_measured(behavior: str, measured: Measured) -> None:
    for name, (total, count) in measured.items():
        if not math.isfinite(total) or count < 0:
            raise EnvironmentFailure(
                f"{behavior}: measured[{name!r}] must be a finite sum and a count, got {total}, {count}"
            )


def _check_statistics(behavior: str, statistics: tuple[Statistic, ...]) -> None:
    """Names and methods; a value that is not finite is left out where it is gathered."""
    for statistic in statistics:
        if not statistic.name.strip() or _SURROGATE.search(statistic.name):
            raise EnvironmentFailure(
                f"{behavior}: the name of a statistic must be text, which is not empty, got {statistic.name!r}"
            )
        if statistic.method not in _METHODS:
            raise EnvironmentFailure(
                f"{behavior}: the method of statistic {statistic.name!r} must be one of {', '.join(_METHODS)}, "
                f"got {statistic.method!r}"
            )
        math.isfinite(statistic.value)  # raises TypeError for what is no number


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
    if not rising:
        if (lowest := ids.min()) < 0:
            raise EnvironmentFailure(f"{behavior}: agent_ids must not be negative, got {lowest}")
        found, counts = np.unique(ids, return_counts=True)
        if len(found) < len(ids):
            raise EnvironmentFailure(f"{behavior}: agent_ids must be unique, got {found[counts > 1][0]} more than once")
    return ids


def _first_row(wrong: NDArray[np.bool_]) -> int:
    """The first row with a True in it."""
    return int(np.argwhere(wrong)[0][0])
