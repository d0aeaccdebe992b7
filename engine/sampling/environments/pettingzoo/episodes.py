"""The episodes of one copy of a PettingZoo environment, in one form for both of its interfaces."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

from rl_tui.engine.errors import EnvironmentFailure

AgentName: TypeAlias = Hashable  # mostly text, as in `possible_agents`
Env: TypeAlias = Any  # a ParallelEnv or an AECEnv: PettingZoo need not be installed
Action: TypeAlias = Any  # an element of the agent's space, as the next
Observed: TypeAlias = Any


class Seen(NamedTuple):
    """What one agent observes, and what it has earned since its last action."""

    agent: AgentName
    observation: Observed
    reward: float
    infos: Mapping[str, Any]


class Ended(NamedTuple):
    """An agent whose episode has ended, with its last observation."""

    seen: Seen
    is_truncated: bool


@dataclass(slots=True)
class Turn:
    """What followed the last actions. is_over: no agent is left, and the copy must be reset."""

    waiting: list[Seen] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    is_over: bool = False


class Episodes(Protocol):
    """The episodes of one copy, one after another."""

    env: Env

    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> Turn:
        """The first agents of a new episode."""

    def step(self, actions: Mapping[AgentName, Action]) -> Turn:
        """Every agent that waited acts."""


def episodes_of(env: Env) -> Episodes:
    """The episodes of a copy: a ParallelEnv, or an AECEnv."""
    return TurnEpisodes(env) if is_turn_based(env) else ParallelEpisodes(env)


def is_turn_based(env: Env) -> bool:
    """Whether it is an AECEnv: it says whose turn it is."""
    return hasattr(type(env), "last") or hasattr(env, "last")


class ParallelEpisodes:
    """Those of a ParallelEnv: all agents act at once."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self._observations: Mapping[AgentName, Observed] = {}

    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> Turn:
        """As `Episodes`."""
        returned = _reset(self.env, seed, options)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise _must_return("observations, infos", returned)
        observations, infos = returned
        self._observations = observations
        agents = self.env.agents
        return Turn([Seen(agent, _of(observations, agent), 0.0, infos.get(agent) or {}) for agent in agents], [])

    def step(self, actions: Mapping[AgentName, Action]) -> Turn:
        """As `Episodes`."""
        returned = self.env.step(actions)
        if not isinstance(returned, tuple) or len(returned) != 5:
            raise _must_return("observations, rewards, terminations, truncations, infos", returned)
        observations, rewards, terminations, truncations, infos = returned
        turn, alive = Turn(), self.env.agents
        for agent in alive:
            if not (terminations.get(agent) or truncations.get(agent)):
                reward = rewards.get(agent, 0.0)
                turn.waiting.append(Seen(agent, _of(observations, agent), reward, infos.get(agent) or {}))
        remaining = {seen.agent for seen in turn.waiting}
        for agent in actions:
            if agent not in remaining:
                last = observations[agent] if agent in observations else self._observations[agent]
                seen = Seen(agent, last, rewards.get(agent, 0.0), infos.get(agent) or {})
                turn.ended.append(Ended(seen, is_truncated=not terminations.get(agent)))
        turn.is_over = not turn.waiting
        self._observations = observations
        return turn


class TurnEpisodes:
    """Those of an AECEnv: one agent acts at a time."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self._observations: dict[AgentName, Observed] = {}  # the last of each agent whose episode is not over

    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> Turn:
        """As `Episodes`."""
        _reset(self.env, seed, options)
        self._observations.clear()
        return self._turn()

    def step(self, actions: Mapping[AgentName, Action]) -> Turn:
        """As `Episodes`."""
        (action,) = actions.values()
        self.env.step(action)
        return self._turn()

    def _turn(self) -> Turn:
        """Agents whose episode is over take their last turn, with no action, until one waits that may act."""
        env, turn = self.env, Turn()
        while env.agents:
            agent = env.agent_selection
            observation, reward, terminated, truncated, infos = env.last()
            seen = Seen(agent, observation, reward, infos)
            if not (terminated or truncated):
                turn.waiting.append(seen)
                self._observations[agent] = observation
                return turn
            turn.ended.append(Ended(seen, not terminated))
            self._observations.pop(agent, None)
            env.step(None)
        for agent, observation in self._observations.items():  # gone without a last turn
            turn.ended.append(Ended(Seen(agent, observation, 0.0, {}), is_truncated=True))
        turn.is_over = True
        return turn


def _reset(env: Env, seed: int | None, options: Mapping[str, Any] | None) -> Any:  # Any: what the environment returns
    return env.reset(seed=seed) if options is None else env.reset(seed=seed, options=dict(options))


def _of(observations: Mapping[AgentName, Observed], agent: AgentName) -> Observed:
    try:
        return observations[agent]
    except KeyError:
        raise EnvironmentFailure(f"it must return an observation of every agent, got none of {agent}") from None


def _must_return(expected: str, returned: object) -> EnvironmentFailure:
    kinds = [type(value).__name__ for value in returned] if isinstance(returned, tuple | list) else []
    found = f"({', '.join(kinds)})" if kinds else type(returned).__name__
    return EnvironmentFailure(f"it must return {expected}, got {found}")
