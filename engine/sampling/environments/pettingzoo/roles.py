"""Which behavior each agent of a PettingZoo environment has, or that it acts at random."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeAlias

from rl_tui.engine.errors import ConfigError, EnvironmentFailure
from rl_tui.engine.sampling.environments.pettingzoo.episodes import AgentName
from rl_tui.engine.sampling.environments.spaces import Space

Spaces: TypeAlias = tuple[Space, Space]  # of observations and of actions

_MOST_BEHAVIORS = 100  # that differ only by the spaces of their agents
RANDOM = ""  # the behavior of agents that are not trained


def matches(agent: AgentName, patterns: Iterable[str]) -> bool:
    """Whether an agent's name matches one of these: `*` is any text, `?` one character, `[ab]` one of these."""
    return any(fnmatchcase(str(agent), pattern) for pattern in patterns)


class Roles:
    """The behaviors of agents, by patterns of their names, or else by their spaces. Used by one instance.

    behaviors: patterns of names by behavior; without any, agents of equal spaces share a behavior. only_name: that of
    the behavior of all agents, if their spaces are equal. random_agents: patterns of agents that act at random.
    """

    def __init__(
        self, behaviors: Mapping[str, Sequence[str]], random_agents: Sequence[str], only_name: str, env: str = ""
    ) -> None:
        self._patterns, self._random, self._only_name, self._env = behaviors, random_agents, only_name, env
        self._sets: list[tuple[Spaces, str]] = []  # equal spaces, and their behavior

    def begin(self, agents: Mapping[AgentName, Spaces]) -> None:
        """Name the behaviors of agents that are known before the first step."""
        if self._patterns or self._sets:
            return
        different: list[tuple[Spaces, list[AgentName]]] = []
        for agent, spaces in agents.items():
            if matches(agent, self._random):
                continue
            members = next((members for known, members in different if equal(known, spaces)), None)
            if members is None:
                different.append((spaces, members := []))
            members.append(agent)
        if len(different) == 1 and self._only_name:
            self._sets.append((different[0][0], self._only_name))
            return
        for spaces, members in different:
            self._sets.append((spaces, self._new_name(members)))

    def of(self, agent: AgentName, spaces: Spaces) -> str:
        """The behavior of an agent; RANDOM if it is not trained.

        Raises ConfigError if no pattern is its, EnvironmentFailure where more and more spaces appear.
        """
        if matches(agent, self._random):
            return RANDOM
        if self._patterns:
            return self._by_pattern(agent)
        found = next((name for known, name in self._sets if equal(known, spaces)), None)
        if found is None:
            self._sets.append((spaces, found := self._new_name([agent])))
        return found

    def _by_pattern(self, agent: AgentName) -> str:
        for name, patterns in self._patterns.items():
            if matches(agent, patterns):
                return name
        every = ", ".join(pattern for patterns in self._patterns.values() for pattern in patterns)
        raise ConfigError(
            f"env_settings.behaviors: a pattern must match agent {agent!r} of {self._env}, got {every}. Agents that"
            " are not to be trained are named by env_settings.random_agents"
        )

    def _new_name(self, agents: Sequence[AgentName]) -> str:
        """What the names of these agents begin with, without a number; another one where that is taken."""
        names, taken = [str(agent) for agent in agents], {name for _, name in self._sets}
        if len(taken) >= _MOST_BEHAVIORS:
            raise EnvironmentFailure(
                f"agents must keep their spaces from episode to episode, got agents of {len(taken) + 1} different ones"
            )
        common = re.sub(r"[\W\d_]+$", "", _beginning(names))
        candidates = [common, names[0], *(f"{common or names[0]}_{number}" for number in range(2, len(taken) + 3))]
        return next(name for name in candidates if name and name not in taken)


def equal(some: Spaces, others: Spaces) -> bool:
    """Whether two agents have equal spaces."""
    return some is others or all(a is b or a == b for a, b in zip(some, others, strict=True))


def _beginning(names: Sequence[str]) -> str:
    """What all names begin with."""
    common = zip(*names, strict=False)
    return "".join(letters[0] for letters in itertools.takewhile(lambda letters: len(set(letters)) == 1, common))
