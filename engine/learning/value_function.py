"""What a critic expects, with the parameters of one moment.  Shapes: B observations, S reward streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from rl_tui.engine.errors import NotSupportedError
from rl_tui.engine.learning.feature_layout import Features
from rl_tui.engine.specs import Float32, Observations

Values: TypeAlias = Callable[[Observations], Float32]  # f32[B, S]


def no_values(text: str) -> Values:
    """Where there is no critic that could say it: raises NotSupportedError with this text."""

    def values(_: Observations) -> Float32:
        raise NotSupportedError(text)

    return values


class ValueFunction:
    """A copy of a critic on the CPU, which is made when it is first called: most policies are only to act."""

    def __init__(
        self,
        make: Callable[[np.random.Generator], nn.Module],
        read: Callable[[Any, Features], Tensor],
        arrays: Mapping[str, Float32],
        to_features: Callable[[Observations], Features],
    ):
        """make: a network, whose parameters are overwritten by `arrays`, copies by name. read: f32[B, S] of it."""
        self._make, self._read, self._arrays, self._to_features = make, read, arrays, to_features
        self._network: nn.Module | None = None

    def __call__(self, observations: Observations) -> Float32:
        """f32[B, S]."""
        if self._network is None:
            self._network = self._make(np.random.default_rng(0))
            state = {name: torch.from_numpy(array) for name, array in self._arrays.items()}
            self._network.load_state_dict(state, strict=False)  # buffers, which are constants, have no copies
        with torch.no_grad():
            features = tuple(map(torch.from_numpy, self._to_features(observations)))
            values: Float32 = self._read(self._network, features).numpy()
        return values
