"""What is used of a BaseEnv of mlagents_envs. That package is not needed: an object with these members will do.

Shapes: N agents, A continuous dimensions, K branches.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import Actions, Float32

MEMBERS = ("behavior_specs", "reset", "step", "get_steps", "set_actions", "close")
_OF_MLAGENTS = "mlagents_envs.base_env"


class ObservationSpec(Protocol):
    """One observation of an agent. dimension_property: bits of each axis. A name is optional."""

    shape: Sequence[int]
    dimension_property: Sequence[int]
    observation_type: Any  # an enum, or its number


class ActionSpec(Protocol):
    """The actions of an agent."""

    continuous_size: int
    discrete_branches: Sequence[int]


class BehaviorSpec(Protocol):
    """What the agents of a behavior observe and do."""

    observation_specs: Sequence[ObservationSpec]
    action_spec: ActionSpec


class AgentSteps(Protocol):
    """Columns of N agents; group_id and group_reward are optional."""

    obs: Sequence[NDArray[Any]]
    reward: NDArray[Any]
    agent_id: NDArray[Any]


class DecisionSteps(AgentSteps, Protocol):
    """Agents that wait. action_mask: for each branch whether a choice is forbidden."""

    action_mask: Sequence[NDArray[Any]] | None


class TerminalSteps(AgentSteps, Protocol):
    """Agents whose episodes have ended, if not interrupted by themselves."""

    interrupted: NDArray[Any]


class BaseEnv(Protocol):
    """A simulation with any number of behaviors."""

    @property
    def behavior_specs(self) -> Mapping[str, BehaviorSpec]:
        """Every behavior; there may be more after any reset or step."""

    def reset(self) -> None:
        """Begin the episodes of all agents."""

    def step(self) -> None:
        """Go on until at least one agent waits for an action."""

    def get_steps(self, behavior_name: str, /) -> tuple[DecisionSteps, TerminalSteps]:
        """The agents that wait, and those whose episodes have ended."""

    def set_actions(self, behavior_name: str, action: Any, /) -> None:
        """For the next step: an ActionTuple of the agents that wait, in their order."""

    def close(self) -> None:
        """Free everything."""


class ActionTuple:
    """What `set_actions` is given: continuous f32[N, A] and discrete i32[N, K]."""

    def __init__(self, continuous: Float32, discrete: NDArray[np.int32]) -> None:
        self.continuous, self.discrete = continuous, discrete

    def add_continuous(self, continuous: Float32) -> None:
        """Replace the continuous actions."""
        self.continuous = continuous

    def add_discrete(self, discrete: NDArray[np.int32]) -> None:
        """Replace the discrete actions."""
        self.discrete = discrete


def action_tuple(actions: Actions) -> object:
    """A copy of the actions; of mlagents_envs' own class where that is imported, for those who look at its type."""
    own = getattr(sys.modules.get(_OF_MLAGENTS), "ActionTuple", ActionTuple)
    made: object = own(actions.continuous.copy(), actions.discrete.astype(np.int32))
    return made
