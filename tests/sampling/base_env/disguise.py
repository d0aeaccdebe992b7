"""Environments of rl-tui's own protocol as a BaseEnv: what an adapter of BaseEnvs must give back.

Nothing here is of mlagents_envs, nor imports it. Shapes: N agents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.factory import make_environments
from rl_tui.engine.specs import Actions, DecisionSteps, ObservationSpec, Steps, TerminalSteps


class Property(IntFlag):
    """As mlagents_envs numbers them."""

    NONE = 1
    TRANSLATIONAL = 2
    VARIABLE_SIZE = 4


class Kind(Enum):
    """As mlagents_envs numbers them."""

    DEFAULT = 0
    GOAL_SIGNAL = 1


PROPERTIES = {
    "vector": (Property.NONE,),
    "entities": (Property.VARIABLE_SIZE, Property.NONE),
    "image": (Property.NONE, Property.TRANSLATIONAL, Property.TRANSLATIONAL),
}


@dataclass
class Seen:
    """An observation."""

    shape: tuple[int, ...]
    dimension_property: tuple[int, ...]
    observation_type: Kind = Kind.DEFAULT
    name: str = ""


@dataclass
class Acts:
    """What agents do."""

    continuous_size: int = 0
    discrete_branches: tuple[int, ...] = ()


@dataclass
class Spec:
    """A behavior."""

    observation_specs: list[Seen]
    action_spec: Acts


@dataclass
class Waiting:
    """Agents that wait."""

    obs: list[NDArray[Any]]
    reward: NDArray[Any]
    agent_id: NDArray[Any]
    action_mask: list[NDArray[Any]] | None
    group_id: NDArray[Any]
    group_reward: NDArray[Any]


@dataclass
class Ended:
    """Agents whose episodes are over."""

    obs: list[NDArray[Any]]
    reward: NDArray[Any]
    agent_id: NDArray[Any]
    interrupted: NDArray[Any]
    group_id: NDArray[Any]
    group_reward: NDArray[Any]


class Disguised:
    """A BaseEnv around an environment, whose ids of groups it raises by 1, since 0 is none."""

    def __init__(self, environment: Environment) -> None:
        self.inner = environment
        self.behavior_specs: dict[str, Spec] = {}
        self.num_closed = 0
        self._answer: Mapping[str, Steps] = {}
        self._actions: dict[str, Actions] = {}

    def reset(self, seed: int | None = None) -> None:
        self._take(self.inner.reset(seed))

    def step(self) -> None:
        self._take(
            self.inner.step({name: self._actions.get(name, _no_actions(self.inner, name)) for name in self.inner.specs})
        )

    def set_actions(self, behavior_name: str, action: Any) -> None:
        waiting = self._answer[behavior_name].decisions
        assert action.continuous.dtype == np.float32
        assert action.discrete.dtype == np.int32
        assert len(action.continuous) == len(action.discrete) == len(waiting.agent_ids) > 0
        self._actions[behavior_name] = Actions(action.continuous, action.discrete.astype(np.int64))

    def get_steps(self, behavior_name: str) -> tuple[Waiting, Ended]:
        spec = self.inner.specs[behavior_name]
        steps = self._answer.get(behavior_name)
        if steps is None:
            return _waiting(spec.observations, spec.actions.branches, None), _ended(spec.observations, None)
        return (
            _waiting(spec.observations, spec.actions.branches, steps.decisions),
            _ended(spec.observations, steps.terminals),
        )

    def close(self) -> None:
        self.num_closed += 1
        self.inner.close()

    def _take(self, answer: Mapping[str, Steps]) -> None:
        self._answer, self._actions = answer, {}
        for name, spec in self.inner.specs.items():
            seen = [_described(one) for one in spec.observations]
            self.behavior_specs[name] = Spec(seen, Acts(spec.actions.continuous, spec.actions.branches))


def toy(name: str, num_agents: int = 3, **arguments: Any) -> Disguised:
    """One of the built-in small tasks as a BaseEnv."""
    return Disguised(make_environments(f"toy:{name}", "Walker", range(num_agents), arguments)[0])


def _described(spec: ObservationSpec) -> Seen:
    height_first = spec.shape if spec.kind != "image" else (spec.shape[2], *spec.shape[:2])
    return Seen(height_first, PROPERTIES[spec.kind], Kind(int(spec.is_goal)), spec.name)


def _no_actions(environment: Environment, name: str) -> Actions:
    actions = environment.specs[name].actions
    return Actions(np.zeros((0, actions.continuous), np.float32), np.zeros((0, len(actions.branches)), np.int64))


def _columns(specs: tuple[ObservationSpec, ...], steps: DecisionSteps | TerminalSteps | None) -> tuple[Any, ...]:
    """obs, reward and agent_id."""
    if steps is None:
        empty = [np.zeros((0, *_described(spec).shape), spec.dtype) for spec in specs]
        return empty, np.zeros(0, np.float32), np.zeros(0, np.int32)
    seen = [values if values.ndim < 4 else values.transpose(0, 3, 1, 2) for values in steps.observations]
    return seen, steps.rewards, steps.agent_ids.astype(np.int32)


def _groups(steps: DecisionSteps | TerminalSteps | None) -> tuple[Any, Any]:
    count = 0 if steps is None else len(steps.agent_ids)
    ids = None if steps is None else steps.group_ids
    rewards = None if steps is None else steps.group_rewards
    return (
        np.zeros(count, np.int32) if ids is None else (ids + 1).astype(np.int32),
        np.zeros(count, np.float32) if rewards is None else rewards,
    )


def _waiting(specs: tuple[ObservationSpec, ...], branches: tuple[int, ...], steps: DecisionSteps | None) -> Waiting:
    count = 0 if steps is None else len(steps.agent_ids)
    allowed = None if steps is None else steps.action_mask
    forbidden = ~allowed if allowed is not None else np.zeros((count, sum(branches)), np.bool_)
    masks = np.split(forbidden, np.cumsum(branches)[:-1], axis=1) if branches else None
    return Waiting(*_columns(specs, steps), masks, *_groups(steps))


def _ended(specs: tuple[ObservationSpec, ...], steps: TerminalSteps | None) -> Ended:
    interrupted = np.zeros(0, np.bool_) if steps is None else steps.truncated
    return Ended(*_columns(specs, steps), interrupted, *_groups(steps))
