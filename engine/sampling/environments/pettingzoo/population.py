"""The agents of all copies of a PettingZoo environment: their numbers, behaviors and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rl_tui.engine.sampling.environments.measuring import Tally
from rl_tui.engine.sampling.environments.pettingzoo.columns import BehaviorColumns
from rl_tui.engine.sampling.environments.pettingzoo.episodes import AgentName, Env
from rl_tui.engine.sampling.environments.pettingzoo.random_agent import RandomAgent
from rl_tui.engine.sampling.environments.pettingzoo.roles import RANDOM, Roles, Spaces
from rl_tui.engine.specs import BehaviorSpec, Steps

NO_GROUP = -1


@dataclass(slots=True)
class Trained:
    """An agent in an episode. early: what it has earned before its first action."""

    columns: BehaviorColumns
    id: int
    group: int
    early: float = 0.0
    has_acted: bool = False

    def credited(self, reward: float) -> float:
        """What follows its last action: the reward and, the first time, what came before."""
        total, self.early = self.early + reward, 0.0
        return total


class Population:
    """Who is who, in all copies of one instance. groups: behaviors whose agents, those of one copy, cooperate, and
    whether they have a common reward."""

    def __init__(self, roles: Roles, groups: Mapping[str, bool], num_copies: int) -> None:
        self._roles, self._groups, self._num_copies = roles, groups, num_copies
        self._columns: dict[str, BehaviorColumns] = {}
        self._ids: dict[tuple[int, AgentName], int] = {}  # by copy and agent, also of those that have left
        self._random: dict[AgentName, tuple[Spaces, RandomAgent]] = {}
        self._metrics: Sequence[str] | None = None
        self._env_name: object = ""
        self.num_agents: dict[str, int] = {}
        self.specs: dict[str, BehaviorSpec] = {}

    def expect(self, env: Env) -> None:
        """Meet the agents that the environment names before its first step, if it does."""
        metadata = getattr(env, "metadata", None)
        self._env_name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
        found = {agent: spaces_of(env, agent) for agent in getattr(env, "possible_agents", None) or ()}
        self._roles.begin(found)
        for agent, spaces in found.items():
            if (name := self._roles.of(agent, spaces)) != RANDOM:
                self._columns_of(name, agent, spaces)
                self.num_agents[name] += self._num_copies

    def meet(self, copy: int, env: Env, agent: AgentName) -> Trained | RandomAgent:
        """An agent that begins an episode."""
        spaces = spaces_of(env, agent)
        name = self._roles.of(agent, spaces)
        if name == RANDOM:
            return self._random_agent(agent, spaces)
        columns = self._columns_of(name, agent, spaces)
        names = list(self._groups)
        group = copy * len(names) + names.index(name) if name in names else NO_GROUP
        return Trained(columns, self._ids.setdefault((copy, agent), len(self._ids)), group)

    def measure(self, keys: Sequence[str]) -> None:
        """Steps include the numbers that agents' infos have under these keys."""
        self._metrics = keys
        for columns in self._columns.values():
            columns.tally = Tally(keys)

    def begin(self) -> None:
        """Nothing has happened yet in this step."""
        for columns in self._columns.values():
            columns.begin()

    @property
    def columns(self) -> Mapping[str, BehaviorColumns]:
        """By behavior, or team."""
        return self._columns

    def steps(self) -> dict[str, Steps]:
        """All that has happened."""
        return {name: columns.steps() for name, columns in self._columns.items() if columns.has_any}

    def _columns_of(self, name: str, agent: AgentName, spaces: Spaces) -> BehaviorColumns:
        columns = self._columns.get(name)
        if columns is None:
            columns = self._columns[name] = BehaviorColumns(name, spaces, self._groups.get(name), self._env_name)
            columns.tally = None if self._metrics is None else Tally(self._metrics)
            self.specs = {**self.specs, name: columns.spec}
            self.num_agents[name] = 0
        columns.require(agent, spaces)
        return columns

    def _random_agent(self, agent: AgentName, spaces: Spaces) -> RandomAgent:
        known = self._random.get(agent)
        if known is None or known[0] != spaces:
            known = self._random[agent] = spaces, RandomAgent(agent, spaces)
        return known[1]


def spaces_of(env: Env, agent: AgentName) -> Spaces:
    """What an agent observes and does."""
    return env.observation_space(agent), env.action_space(agent)
