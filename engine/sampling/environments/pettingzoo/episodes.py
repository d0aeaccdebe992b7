"""The episodes of one copy of a PettingZoo environment, in one form for both of its interfaces."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.returned import as_flag, as_reward
from rl_tui.engine.sampling.wrong_values import in_words

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
        _require_mappings(("observations", "infos"), returned)
        observations, infos = returned
        self._observations = observations
        agents = self.env.agents
        return Turn([Seen(agent, _of(observations, agent), 0.0, _infos_of(infos, agent)) for agent in agents], [])

    def step(self, actions: Mapping[AgentName, Action]) -> Turn:
        """As `Episodes`."""
        returned = self.env.step(actions)
        if not isinstance(returned, tuple) or len(returned) != 5:
            raise _must_return("observations, rewards, terminations, truncations, infos", returned)
        _require_mappings(("observations", "rewards", "terminations", "truncations", "infos"), returned)
        observations, rewards, terminations, truncations, infos = returned
        turn, alive = Turn(), self.env.agents
        for agent in alive:
            is_truncated = _is_set(truncations, agent, "truncated")
            if not (_is_set(terminations, agent, "terminated") or is_truncated):
                reward = _reward_of(rewards, agent)
                turn.waiting.append(Seen(agent, _of(observations, agent), reward, _infos_of(infos, agent)))
        remaining = {seen.agent for seen in turn.waiting}
        for agent in actions:
            if agent not in remaining:
                last = observations[agent] if agent in observations else self._observations[agent]
                seen = Seen(agent, last, _reward_of(rewards, agent), _infos_of(infos, agent))
                turn.ended.append(Ended(seen, is_truncated=not _is_set(terminations, agent, "terminated")))
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
            returned = env.last()
            if not isinstance(returned, tuple) or len(returned) != 5:
                raise _must_return("observation, reward, terminated, truncated, info from last()", returned)
            observation, reward, terminated, truncated, infos = returned
            seen = Seen(agent, observation, _reward_of({agent: reward}, agent), _infos_of({agent: infos}, agent))
            terminated, truncated = as_flag("terminated", terminated), as_flag("truncated", truncated)
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


def _require_mappings(names: Sequence[str], returned: Sequence[object]) -> None:
    for name, value in zip(names, returned, strict=True):
        if not isinstance(value, Mapping):
            raise EnvironmentFailure(f"{name} must be a mapping by agent, got {in_words(value)}")


def _is_set(flags: Mapping[AgentName, object], agent: AgentName, name: str) -> bool:
    """What the mapping says of an agent; False where it says nothing."""
    flag = flags.get(agent, False)
    return flag if type(flag) is bool else as_flag(f"{name} of {agent}", flag)


def _reward_of(rewards: Mapping[AgentName, object], agent: AgentName) -> float:
    """What an agent has earned; nothing where the mapping does not say."""
    reward = rewards.get(agent, 0.0)
    return reward if type(reward) is float else as_reward(f"the reward of {agent}", reward)


def _infos_of(infos: Mapping[AgentName, Any], agent: AgentName) -> Mapping[str, Any]:  # Any: as it returned them
    """The infos of an agent; none where there are none."""
    found = infos.get(agent)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise EnvironmentFailure(f"the infos of {agent} must be a mapping, got {in_words(found)}")
    return found


def _must_return(expected: str, returned: object) -> EnvironmentFailure:
    kinds = [type(value).__name__ for value in returned] if isinstance(returned, tuple | list) else []
    found = f"({', '.join(kinds)})" if kinds else type(returned).__name__
    return EnvironmentFailure(f"it must return {expected}, got {found}")
