"""What the methods of trainers and reward signals must return; anything else is an error of the plug-in."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from rl_tui.engine import registry
from rl_tui.engine.errors import PluginError
from rl_tui.engine.specs import State


class PluginResults:
    """Checks what a trainer or a reward signal returns. Owns the names, dtypes and shapes of its first state."""

    def __init__(self, kind: str, name: str):
        """kind and name: of the registry."""
        self._kind = kind
        self._name = name
        self._first: dict[str, str] | None = None

    def state(self, found: object) -> State:
        """`found`, a State with the same arrays as the first one. Raises PluginError."""
        if not isinstance(found, State):
            raise self._wrong(f"state must return a State of numpy arrays, got {_described(found)}")
        tensors: Mapping[str, object] = found.tensors
        for name, array in tensors.items():
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
                raise self._wrong(
                    f"state must return a State of numpy arrays of numbers, got {name}: {_described(array)}"
                )
        try:
            json.dumps(found.values)
        except (TypeError, ValueError) as error:
            raise self._wrong(f"the values of its state must be plain JSON: {error}") from error
        arrays = {name: _described(array) for name, array in found.tensors.items()}
        if self._first is None:
            self._first = arrays
        first = self._first
        for name in {**first, **arrays}:
            was, now = first.get(name, "none"), arrays.get(name, "none")
            if was != now:
                text = f"state must always return the same arrays, or no run can be resumed: {name} was {was}, is {now}"
                raise self._wrong(text)
        return found

    def rewards(self, method: str, found: object, num_rows: int) -> NDArray[np.floating]:
        """`found`, a number for each of so many steps. Raises PluginError."""
        is_array = isinstance(found, np.ndarray) and found.dtype.kind in "biuf"
        if not isinstance(found, np.ndarray) or not is_array or found.shape != (num_rows,):
            raise self._wrong(f"{method} must return a numpy array f32[{num_rows}], got {_described(found)}")
        return found

    def metrics(self, found: object) -> dict[str, float | torch.Tensor]:
        """`found`, numbers by tag; tensors without what they were computed from. Raises PluginError."""
        if not isinstance(found, Mapping):
            raise self._wrong(f"update must return a mapping from tags to numbers, got {_described(found)}")
        for tag, number in found.items():
            if not isinstance(tag, str):
                raise self._wrong(f"update must return a mapping from tags to numbers, got the tag {tag!r}")
            is_one = number.numel() == 1 if isinstance(number, torch.Tensor) else np.ndim(number) == 0
            if not is_one or not isinstance(number, int | float | np.number | np.ndarray | torch.Tensor):
                text = f"update must return numbers or tensors of one element, got {tag}: {_described(number)}"
                raise self._wrong(text)
        return {tag: n.detach() if isinstance(n, torch.Tensor) else float(n) for tag, n in found.items()}

    def count(self, attribute: str, found: object) -> int:
        """`found`, a whole number that is not negative. Raises PluginError."""
        if not isinstance(found, int | np.integer) or isinstance(found, bool) or found < 0:
            raise self._wrong(f"{attribute} must be a whole number, or a property that is one, got {_described(found)}")
        return int(found)

    def _wrong(self, text: str) -> PluginError:
        return registry.refused(self._kind, self._name, text)


def _described(found: object) -> str:
    """In a few words, such as "None", "a method", "float32[3, 1]"."""
    if found is None:
        return "None"
    if isinstance(found, np.ndarray):
        return f"{found.dtype}{list(found.shape)}"
    if isinstance(found, torch.Tensor):
        return f"a Tensor of shape {list(found.shape)}"
    if isinstance(found, int | float | str):
        return repr(found)
    return "a method" if callable(found) else type(found).__name__
