"""What other libraries' environments return, as bools and numbers. Anything else is an EnvironmentFailure: Python and
numpy would take almost everything for true, and much of it for a number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.wrong_values import in_words
from rl_tui.engine.specs import Bool

NUMBERS = "biuf"  # numpy's kinds: bools, whole numbers, floats


def as_flag(name: str, value: object) -> bool:
    """A bool, also in an array of one entry, or the number 0 or 1."""
    if type(value) is bool or type(value) is np.bool_:
        return bool(value)
    found = _one_number(value)
    if found is None or found.dtype.kind not in "biu" or found.item() not in (0, 1):
        raise EnvironmentFailure(f"{name} must be True or False, got {in_words(value)}")
    return bool(found.item())


def as_flags(name: str, values: object) -> Bool:
    """bool[N] of an array of bools, or of the numbers 0 and 1."""
    found = as_numbers(name, values, "biu")
    if found.dtype != np.bool_ and not np.isin(found, (0, 1)).all():
        raise EnvironmentFailure(f"{name} must be True or False, got other numbers")
    return found.astype(np.bool_, copy=False)


def as_reward(name: str, value: object) -> float:
    """A number, also in an array of one entry."""
    if type(value) is float:
        return value
    found = _one_number(value)
    if found is None:
        raise EnvironmentFailure(f"{name} must be a number, got {in_words(value)}")
    return float(found.item())


def as_numbers(name: str, values: object, kinds: str = NUMBERS) -> NDArray[Any]:
    """An array of numbers of any shape. kinds: of numpy's types."""
    if isinstance(values, np.ndarray):
        found: NDArray[Any] = values
    else:
        try:
            found = np.asarray(values)
        except ValueError:
            raise EnvironmentFailure(f"{name} must be an array of numbers, got {in_words(values)}") from None
    if found.dtype.kind not in kinds and found.size:
        what = in_words(values) if found.dtype.kind == "O" and not isinstance(values, np.ndarray) else found.dtype
        raise EnvironmentFailure(f"{name} must be an array of numbers, got {what}")
    return found


def _one_number(value: object) -> NDArray[Any] | None:
    """An array with the only number of a number or of an array; None without one."""
    if not isinstance(value, int | float | np.generic | np.ndarray) and not hasattr(value, "__array__"):
        return None
    found: NDArray[Any] = np.asarray(value)
    return found if found.size == 1 and found.dtype.kind in NUMBERS else None
