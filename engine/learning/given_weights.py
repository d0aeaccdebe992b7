"""A policy's parameters as a program passes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.specs import Float32

GivenWeights: TypeAlias = Mapping[str, NDArray[Any] | Tensor]


def require_weights(given: GivenWeights, own: Mapping[str, Float32]) -> dict[str, Float32]:
    """The same names and shapes as `own`, copied. given: numpy arrays, or tensors of any device.

    Raises ConfigError with a line for each name that is missing, unknown, of another shape or not finite.
    """
    if not isinstance(given, Mapping):
        raise ConfigError(f"weights: must be a mapping from names to arrays, got a {type(given).__name__}")
    wrong = [f"missing: {name} {list(array.shape)}" for name, array in own.items() if name not in given]
    wrong += [f"unknown: {name}" for name in given if name not in own]
    arrays = dict[str, Float32]()
    for name in [name for name in own if name in given]:
        try:
            arrays[name] = array = torch.as_tensor(given[name]).detach().to("cpu", torch.float32).numpy().copy()
        except (TypeError, ValueError, RuntimeError):
            wrong.append(f"{name}: must be an array of numbers, got a {type(given[name]).__name__}")
            continue
        if array.shape != own[name].shape:
            wrong.append(f"{name}: must be {list(own[name].shape)}, got {list(array.shape)}")
        elif not np.isfinite(array).all():
            wrong.append(f"{name}: must be finite numbers")
    if wrong:
        raise ConfigError("weights: must be those of this policy:" + "".join(f"\n  {line}" for line in wrong))
    return arrays
