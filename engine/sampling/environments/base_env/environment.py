"""A BaseEnv of mlagents_envs as an environment."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.base_env.interface import BaseEnv, action_tuple
from rl_tui.engine.sampling.environments.base_env.reader import BehaviorReader, as_ids
from rl_tui.engine.sampling.parameters import Parameters
from rl_tui.engine.sampling.wrong_values import in_words
from rl_tui.engine.specs import Actions, BehaviorSpec, Steps

_IDS_OF_A_TEAM = 2**40  # more than int32, of which the ids are


class BaseEnvironment:
    """Steps a BaseEnv, which is reset when it is first asked for its specs: only then are its first agents known.

    A behavior is there from when it has agents, as in Unity. Teams may use the same ids, which differ here.
    """

    set_parameters: Callable[[Parameters], None]  # absent where the BaseEnv has no such method

    def __init__(self, env: BaseEnv) -> None:
        self._env: Any = env  # Any: `reset` may take a seed, or not
        self._takes_seed = "seed" in inspect.signature(env.reset).parameters
        self._readers: dict[str, BehaviorReader] = {}
        self._specs: dict[str, BehaviorSpec] = {}
        self._num_agents: dict[str, int] = {}
        self._is_new = True
        self._first: Mapping[str, Steps] | None = None  # what the next reset returns, unless it has a seed
        if hasattr(env, "set_parameters"):
            self.set_parameters = env.set_parameters

    @property
    def specs(self) -> Mapping[str, BehaviorSpec]:
        """Every behavior that has had agents so far. Raises EnvironmentFailure, and what the BaseEnv raises."""
        self._meet_first()
        return self._specs

    @property
    def num_agents(self) -> Mapping[str, int]:
        """Of each behavior, how many agents have waited at once."""
        self._meet_first()
        return self._num_agents

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """The first steps of every agent. A seed is passed on where `reset` of the BaseEnv takes one."""
        self._meet_first()
        first, self._first = self._first, None
        is_seeded = self._takes_seed and seed is not None
        if first is not None and not is_seeded:
            return first
        if is_seeded:
            self._env.reset(seed=seed)
        else:
            self._env.reset()
        return self._begin()

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """What followed these actions."""
        for name, chosen in actions.items():
            if len(chosen.continuous):
                self._env.set_actions(name, action_tuple(chosen))
        self._env.step()
        return self._outcome()

    def close(self) -> None:
        """Close the BaseEnv."""
        self._env.close()

    def _meet_first(self) -> None:
        if self._is_new:
            self._is_new = False
            self._env.reset()
            self._first = self._begin()

    def _begin(self) -> dict[str, Steps]:
        """What still ends began before the reset, and nothing has been earned since."""
        return {name: _beginning(steps) for name, steps in self._outcome().items()}

    def _outcome(self) -> dict[str, Steps]:
        answer: dict[str, Steps] = {}
        for name, spec in self._env.behavior_specs.items():
            waiting, ended = _pair(name, self._env.get_steps(name))
            num_waiting = len(as_ids(name, waiting.agent_id))
            if not num_waiting and not len(as_ids(name, ended.agent_id)):
                continue
            if name not in self._readers:
                self._meet(BehaviorReader(name, spec, waiting, self._shift_of(name)))
            answer[name] = self._readers[name].read(waiting, ended)
            self._num_agents[name] = max(self._num_agents[name], num_waiting)
        return answer

    def _meet(self, reader: BehaviorReader) -> None:
        name = reader.spec.name
        self._readers[name], self._specs[name], self._num_agents[name] = reader, reader.spec, 0

    def _shift_of(self, name: str) -> int:
        """Of the ids of a team that follows others of its behavior."""
        behavior = name.partition("?")[0]
        return _IDS_OF_A_TEAM * sum(other.partition("?")[0] == behavior for other in self._specs)


def _pair(name: str, returned: Any) -> tuple[Any, Any]:  # Any: as the BaseEnv returned it
    """The agents that wait, and those whose episodes have ended. Raises EnvironmentFailure."""
    parts = returned if isinstance(returned, tuple | list) else ()
    if len(parts) != 2 or not all(hasattr(part, column) for part in parts for column in ("obs", "reward", "agent_id")):
        text = "the agents that wait and those that have ended, each with obs, reward and agent_id"
        raise EnvironmentFailure(f"get_steps({name!r}) must return {text}, got {in_words(returned)}")
    waiting, ended = parts
    return waiting, ended


def _beginning(steps: Steps) -> Steps:
    decisions = replace(steps.decisions, rewards=np.zeros_like(steps.decisions.rewards), group_rewards=None)
    return Steps(decisions)
