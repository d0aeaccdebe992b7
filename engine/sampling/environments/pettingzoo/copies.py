"""One copy of a PettingZoo environment: steps it until an agent that is trained waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.pettingzoo.columns import BehaviorColumns
from rl_tui.engine.sampling.environments.pettingzoo.episodes import Action, AgentName, Env, Seen, Turn, episodes_of
from rl_tui.engine.sampling.environments.pettingzoo.population import Trained
from rl_tui.engine.sampling.environments.pettingzoo.random_agent import RandomAgent

Meet: TypeAlias = Callable[[AgentName], "Trained | RandomAgent"]
Options: TypeAlias = Callable[[], "dict[str, float] | None"]

_MOST_TURNS = 10_000  # without any agent that is trained


class Copy:
    """Writes what happens to its agents into the columns of their behaviors.

    waiting: agents that are trained and must act before the next step, in the order of their rows. before_next: called
    when no agent is left, before the next episode begins.
    """

    def __init__(self, env: Env, meet: Meet, options: Options, random: np.random.Generator) -> None:
        """meet: who an agent is that begins an episode. options: of each reset."""
        self.env, self._meet, self._options, self._random = env, meet, options, random
        self._episodes = episodes_of(env)
        self._agents: dict[AgentName, Trained | RandomAgent] = {}  # in their episodes
        self._actions: dict[AgentName, Action] = {}
        self.waiting: list[tuple[AgentName, BehaviorColumns]] = []
        self.before_next: Callable[[], None] = _ignore

    def reset(self, seed: int | None) -> None:
        """Begin an episode, dropping what is open."""
        self._agents.clear()
        self._actions.clear()
        self._until_trained(self._episodes.reset(seed, self._options()))

    def act(self, agent: AgentName, action: Action) -> None:
        """What a waiting agent does in the next step."""
        self._actions[agent] = action

    def step(self) -> None:
        """Everyone acts; where no agent is left, the next episode begins."""
        self._until_trained(self._step())

    def _until_trained(self, turn: Turn) -> None:
        self.waiting = []
        self._take(turn)
        num_turns = 0
        while not self.waiting:
            turn = self._begin_next() if turn.is_over else self._step()
            self._take(turn)
            num_turns += 1
            if num_turns > _MOST_TURNS:
                raise EnvironmentFailure(f"no agent that is trained has acted in {_MOST_TURNS:,} steps")

    def _begin_next(self) -> Turn:
        self.before_next()
        return self._episodes.reset(None, self._options())

    def _step(self) -> Turn:
        actions, self._actions = self._actions, {}
        return self._episodes.step(actions)

    def _take(self, turn: Turn) -> None:
        """Terminal rows of agents whose episode is over, and rows of those that wait; random agents choose."""
        for ended in turn.ended:
            agent = self._agents.pop(ended.seen.agent, None)
            if isinstance(agent, Trained) and agent.has_acted:
                agent.columns.add_ended(agent.id, ended, agent.credited(ended.seen.reward), agent.group)
        for seen in turn.waiting:
            agent = self._agents.get(seen.agent)
            if agent is None:
                agent = self._agents[seen.agent] = self._meet(seen.agent)
            if isinstance(agent, Trained):
                self._wait(agent, seen)
            else:
                self._actions[seen.agent] = agent.act(seen, self._random)

    def _wait(self, agent: Trained, seen: Seen) -> None:
        if agent.has_acted:
            agent.columns.add_waiting(agent.id, seen, agent.credited(seen.reward), agent.group)
        else:
            agent.early, agent.has_acted = seen.reward, True
            agent.columns.add_newcomer(agent.id, seen, agent.group)
        self.waiting.append((seen.agent, agent.columns))


def _ignore() -> None:
    """No one wants to see how it ended."""
