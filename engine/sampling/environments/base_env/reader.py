"""What the agents of one behavior of a BaseEnv observed, as columns.

Shapes: N agents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.base_env import interface
from rl_tui.engine.sampling.environments.base_env.sensors import action_spec_of, require_count, sensors_of
from rl_tui.engine.sampling.environments.returned import NUMBERS, as_flags, as_numbers
from rl_tui.engine.sampling.wrong_values import in_words
from rl_tui.engine.specs import (
    BehaviorSpec,
    Bool,
    DecisionSteps,
    Float32,
    Int64,
    Observations,
    Steps,
    TerminalSteps,
)


class BehaviorReader:
    """Reads the agents of one behavior. Owned by one thread.

    first: some of them. shift: what is added to the ids of agents and groups, so that no other team has them. Raises
    EnvironmentFailure for what cannot be learned from.
    """

    def __init__(self, name: str, found: interface.BehaviorSpec, first: interface.AgentSteps, shift: int) -> None:
        self._name, self._shift = name, shift
        self._sensors = sensors_of(name, found.observation_specs, first.obs)
        actions = action_spec_of(name, found.action_spec)
        self.spec = BehaviorSpec(name, tuple(sensor.spec for sensor in self._sensors), actions)
        self._ids: Int64 = np.empty(0, np.int64)  # the last that waited

    def read(self, waiting: interface.DecisionSteps, ended: interface.TerminalSteps) -> Steps:
        """The steps of the agents that wait, and of those whose episodes have ended."""
        decisions = self._decisions(waiting)
        if not len(ended.agent_id):
            return Steps(decisions)
        terminals = self._terminals(ended)
        # the rest of an episode is in its last step, and what a new one begins with is not earned by an action
        is_new = np.isin(decisions.agent_ids, terminals.agent_ids)
        decisions.rewards = np.where(is_new, np.float32(0), decisions.rewards)
        if decisions.group_rewards is not None:
            decisions.group_rewards = np.where(is_new, np.float32(0), decisions.group_rewards)
        return Steps(decisions, terminals)

    def _decisions(self, found: interface.DecisionSteps) -> DecisionSteps:
        ids = self._shifted(found.agent_id)
        if not np.array_equal(ids, self._ids):
            self._ids = ids
        mask = self._allowed(found.action_mask, len(ids))
        return DecisionSteps(
            self._ids,
            self._observations(found),
            self._floats("reward", found.reward, len(ids)),
            mask,
            self._groups(found, len(ids)),
            self._group_rewards(found, len(ids)),
        )

    def _terminals(self, found: interface.TerminalSteps) -> TerminalSteps:
        ids = self._shifted(found.agent_id)
        return TerminalSteps(
            ids,
            self._observations(found),
            self._floats("reward", found.reward, len(ids)),
            as_flags(f"{self._name}: interrupted", found.interrupted),
            self._groups(found, len(ids)),
            self._group_rewards(found, len(ids)),
        )

    def _observations(self, found: interface.AgentSteps) -> Observations:
        require_count(self._name, found.obs, self._sensors)
        return tuple(
            sensor.read(as_numbers(f"{self._name}: observation {sensor.spec.name!r}", values))
            for sensor, values in zip(self._sensors, found.obs, strict=True)
        )

    def _shifted(self, ids: NDArray[Any]) -> Int64:
        """Ids of agents; negative ones, which the pool refuses, stay."""
        own = np.array(as_ids(self._name, ids), np.int64)
        return np.where(own < 0, own, own + self._shift) if self._shift else own

    def _groups(self, found: interface.AgentSteps, count: int) -> Int64 | None:
        """None where no agent has a group, which 0 stands for."""
        given = getattr(found, "group_id", None)
        if given is None or not (own := self._column("group_id", given, count, "iu")).any():
            return None
        return np.where(own > 0, own.astype(np.int64) + self._shift, -1)

    def _allowed(self, masks: Sequence[NDArray[Any]] | None, count: int) -> Bool | None:
        """bool[N, choices of all branches], from one array for each branch in which True is forbidden."""
        if masks is not None and not hasattr(masks, "__len__"):
            raise EnvironmentFailure(f"{self._name}: action_mask must be a list of arrays, got {in_words(masks)}")
        if masks is None or not len(masks):
            return None
        masks = [as_flags(f"{self._name}: action_mask", mask) for mask in masks]
        branches = self.spec.actions.branches
        found, expected = [np.shape(mask) for mask in masks], [(count, size) for size in branches]
        if found != expected:
            raise EnvironmentFailure(
                f"{self._name}: action_mask must have an array for each branch, of shapes {expected}, got {found}"
            )
        return ~np.concatenate(masks, axis=1) if any(mask.any() for mask in masks) else None

    def _group_rewards(self, found: interface.AgentSteps, count: int) -> Float32 | None:
        """None where no group earned anything."""
        given = getattr(found, "group_reward", None)
        if given is None or not (earned := self._floats("group_reward", given, count)).any():
            return None
        return earned

    def _floats(self, name: str, values: object, count: int) -> Float32:
        return np.array(self._column(name, values, count), np.float32)

    def _column(self, name: str, values: object, count: int, kinds: str = NUMBERS) -> NDArray[Any]:
        """A number for each of so many agents. Raises EnvironmentFailure."""
        column = as_numbers(f"{self._name}: {name}", values, kinds)
        if column.shape != (count,):
            raise EnvironmentFailure(f"{self._name}: {name} must have the shape ({count},), got {column.shape}")
        return column


def as_ids(behavior: str, ids: object) -> NDArray[Any]:
    """Whole numbers in one dimension. Raises EnvironmentFailure."""
    found = as_numbers(f"{behavior}: agent_id", ids, "iu")
    if found.ndim != 1:
        raise EnvironmentFailure(f"{behavior}: agent_id must have one dimension, got the shape {found.shape}")
    return found
