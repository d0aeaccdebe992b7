"""Between elements of Gymnasium spaces, single or batched, and the columns that policies read and choose.

Shapes: N rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_tui.engine.errors import ConfigError, EnvironmentFailure, ExportError
from rl_tui.engine.sampling.environments.action_space import ActionCodec
from rl_tui.engine.sampling.environments.observation_space import observation_leaves, stack
from rl_tui.engine.sampling.environments.space_json import space_from_json
from rl_tui.engine.specs import Actions, BehaviorSpec, Bool, Observations


class SpaceColumns:
    """Converts both ways for one behavior. What is not of its spaces is a ConfigError."""

    def __init__(self, spec: BehaviorSpec):
        """Raises ExportError where the spaces are not those of the spec."""
        fields: Any = spec.spaces
        try:
            self._leaves = observation_leaves(space_from_json(fields["observation"]), spec.name)
            self._codec = ActionCodec(space_from_json(fields["action"]), spec.name)
        except (KeyError, TypeError, ValueError) as error:
            raise ExportError(f"{spec.name}: the spaces of its environment cannot be read: {error}") from error
        if (tuple(leaf.spec for leaf in self._leaves), self._codec.spec) != (spec.observations, spec.actions):
            raise ExportError(f"{spec.name}: the spaces of its environment are not those of its policy")

    def seen(self, observation: Any, mask: Any) -> tuple[Observations, Bool | None, bool]:  # Any: elements of spaces
        """Columns and action mask of one observation or of a batch, and whether it is one."""
        first = self._leaves[0]
        try:
            shape = np.shape(first.pick(observation))
            if shape == first.raw_shape:
                allowed = None if mask is None else self._codec.mask(mask)[None]
                return stack(self._leaves, [observation]), allowed, True
            if shape[1:] != first.raw_shape:
                raise EnvironmentFailure(first.misshaped(shape, first.raw_shape))
            columns = tuple(leaf.batch(observation, shape[0]) for leaf in self._leaves)
            return columns, None if mask is None else self._codec.mask_rows(list(mask)), False
        except (EnvironmentFailure, KeyError, IndexError, TypeError, ValueError) as error:
            text = str(error) if isinstance(error, EnvironmentFailure) else f"{type(error).__name__}: {error}"
            raise ConfigError(f"observation: must be an element of its space or a batch of them: {text}") from error

    def num_rows(self, observations: Any) -> int:  # Any: as below
        """N of a batch of observations."""
        try:
            return len(self._leaves[0].pick(observations))
        except (EnvironmentFailure, TypeError) as error:
            raise ConfigError(f"must be a batch of observations, with a row for each: {error}") from error

    def observations(self, batch: Any, count: int) -> Observations:  # Any: nested as its space, rows first
        """The columns of so many observations."""
        try:
            return tuple(leaf.batch(batch, count) for leaf in self._leaves)
        except (EnvironmentFailure, ValueError) as error:
            raise ConfigError(f"must be of its space: {error}") from error

    def actions(self, batch: Any, count: int | None) -> Actions:  # Any: nested as its space
        """The columns of so many actions of the environment; None: of one."""
        try:
            return self._codec.columns(batch, count)
        except EnvironmentFailure as error:
            raise ConfigError(str(error)) from error

    def masks(self, masks: Any) -> Bool | None:  # Any: a list of masks, or an array
        """bool[N, sum of branches]."""
        try:
            return self._codec.mask_rows(list(masks))
        except (EnvironmentFailure, ValueError, TypeError) as error:
            raise ConfigError(str(error)) from error

    def taken(self, actions: Actions, is_single: bool) -> Any:  # Any: an element of the action space, or a batch
        """What the environment's `step` takes."""
        return self._codec.rows(actions)[0] if is_single else self._codec.batch(actions)
