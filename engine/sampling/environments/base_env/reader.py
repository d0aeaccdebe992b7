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
            _floats(found.reward),
            mask,
            self._groups(found),
            _group_rewards(found),
        )

    def _terminals(self, found: interface.TerminalSteps) -> TerminalSteps:
        return TerminalSteps(
            self._shifted(found.agent_id),
            self._observations(found),
            _floats(found.reward),
            np.array(found.interrupted, np.bool_),
            self._groups(found),
            _group_rewards(found),
        )

    def _observations(self, found: interface.AgentSteps) -> Observations:
        require_count(self._name, found.obs, self._sensors)
        return tuple(sensor.read(np.asarray(values)) for sensor, values in zip(self._sensors, found.obs, strict=True))

    def _shifted(self, ids: NDArray[Any]) -> Int64:
        """Ids of agents; negative ones, which the pool refuses, stay."""
        own = np.array(ids, np.int64)
        return np.where(own < 0, own, own + self._shift) if self._shift else own

    def _groups(self, found: interface.AgentSteps) -> Int64 | None:
        """None where no agent has a group, which 0 stands for."""
        given = getattr(found, "group_id", None)
        if given is None or not np.any(given):
            return None
        own = np.asarray(given, np.int64)
        return np.where(own > 0, own + self._shift, -1)

    def _allowed(self, masks: Sequence[NDArray[Any]] | None, count: int) -> Bool | None:
        """bool[N, choices of all branches], from one array for each branch in which True is forbidden."""
        if masks is None or not any(np.any(mask) for mask in masks):
            return None
        branches = self.spec.actions.branches
        found, expected = [np.shape(mask) for mask in masks], [(count, size) for size in branches]
        if found != expected:
            raise EnvironmentFailure(
                f"{self._name}: action_mask must have an array for each branch, of shapes {expected}, got {found}"
            )
        return ~np.concatenate([np.asarray(mask, np.bool_) for mask in masks], axis=1)


def _floats(values: NDArray[Any]) -> Float32:
    return np.array(values, np.float32)


def _group_rewards(found: interface.AgentSteps) -> Float32 | None:
    """None where no group earned anything."""
    given = getattr(found, "group_reward", None)
    return _floats(given) if given is not None and np.any(given) else None
