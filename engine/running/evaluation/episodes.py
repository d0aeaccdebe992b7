"""Plays episodes to evaluate a policy, apart from its training.

Shapes: N agents that wait, M memory columns, E episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.learning.player import Player
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.numbering import ids_of_instance
from rl_tui.engine.specs import Actions, BehaviorSpec, DecisionSteps, Int64, Policy, Steps

AWAITED_STEPS = 100_000  # of an environment without the behavior that is played
RECEIVE_SECONDS = 0.1  # how long a pool of other processes may take to see a stop


@dataclass(frozen=True, slots=True)
class Scores:
    """Finished episodes, in the order in which they began.

    returns: f64[E], undiscounted. lengths: i64[E], actions taken.
    """

    returns: NDArray[np.float64]
    lengths: Int64

    @property
    def summary(self) -> dict[str, float]:
        """Statistics for the user, by name."""
        return {
            "mean": float(self.returns.mean()),
            "std": float(self.returns.std()),
            "min": float(self.returns.min()),
            "max": float(self.returns.max()),
            "mean length": float(self.lengths.mean()),
            "episodes": len(self.returns),
        }

    @property
    def metrics(self) -> dict[str, float]:
        """Their means by tag, next to those of training."""
        return {
            "Evaluation/Cumulative Reward": float(self.returns.mean()),
            "Evaluation/Episode Length": float(self.lengths.mean()),
        }


class Recorder(Protocol):
    """Keeps the episodes that count. Its methods are called by `play`, of one behavior."""

    def count(self, agent: int) -> None:
        """The episode of this agent counts; its end is in the steps that are seen next."""

    def abandon(self, agents: Int64) -> None:
        """The instance of these agents was lost, and their episodes with it."""

    def see(self, steps: Steps | None) -> None:
        """An instance has stepped; None without agents of the behavior."""

    def act(self, decisions: DecisionSteps, actions: Actions) -> None:
        """Agents that wait, and what they do."""


class Unrecorded:
    """The default of `play` for `recorder`, which keeps nothing."""

    def count(self, agent: int) -> None:
        """See Recorder."""

    def abandon(self, agents: Int64) -> None:
        """See Recorder."""

    def see(self, steps: Steps | None) -> None:
        """See Recorder."""

    def act(self, decisions: DecisionSteps, actions: Actions) -> None:
        """See Recorder."""


UNRECORDED = Unrecorded()


def ignore_steps(instance: int, steps: Steps | None) -> None:
    """The default of `play` for `on_steps`."""


def ignore_return(total: float) -> None:
    """The default of `play` for `on_return`."""


def play(
    pool: EnvironmentPool,
    policy_for: Callable[[BehaviorSpec], Policy],
    behavior: str,
    num_episodes: int,
    seed: int,
    should_continue: Callable[[], bool],
    on_steps: Callable[[int, Steps | None], None] = ignore_steps,
    on_return: Callable[[float], None] = ignore_return,
    recorder: Recorder = UNRECORDED,
) -> Scores | None:
    """Play that many episodes of `behavior`, from a reset of every instance with `seed`; None when interrupted.

    Episodes of an instance that is lost do not count, and are replaced by others.
    policy_for: called once for every behavior in the pool, as it appears; it may raise. should_continue: called at
    every step. on_steps: called with each instance that has stepped and the steps of `behavior` in it, None without
    any, before any agent acts. on_return: called with the return of each episode that counts, as it ends. recorder:
    sees the episodes of `behavior`. Raises EnvironmentFailure, also if `behavior` does not appear.
    """
    players: dict[str, Player] = {}
    tally = _Tally(num_episodes, lambda: pool.num_agents[behavior], on_return, recorder)
    pool.reset(seed)
    while should_continue():
        arrived = dict(pool.receive(RECEIVE_SECONDS))
        _abandon_lost(pool, tally, players.values())
        for name in [name for name in pool.specs if name not in players]:
            players[name] = Player(policy_for(pool.specs[name]))
        for instance, behaviors in arrived.items():
            tally.add(behaviors.get(behavior))
            on_steps(instance, behaviors.get(behavior))
            recorder.see(behaviors.get(behavior))
        if tally.is_complete:
            return tally.scores()
        if tally.num_awaited > AWAITED_STEPS:
            raise EnvironmentFailure(f"behavior {behavior} has not appeared in {AWAITED_STEPS:,} steps")
        for instance, behaviors in arrived.items():
            for name, steps in behaviors.items():
                if steps.terminals is not None:
                    players[name].forget(steps.terminals.agent_ids)
            waiting = {name: steps.decisions for name, steps in behaviors.items() if len(steps.decisions.agent_ids)}
            chosen = {name: players[name].act(decisions) for name, decisions in waiting.items()}
            _record(recorder, waiting.get(behavior), chosen.get(behavior))
            pool.send(instance, chosen)
    return None


def _record(recorder: Recorder, decisions: DecisionSteps | None, actions: Actions | None) -> None:
    if decisions is not None and actions is not None:
        recorder.act(decisions, actions)


def _abandon_lost(pool: EnvironmentPool, tally: _Tally, players: Iterable[Player]) -> None:
    """Drop the episodes, and the memories, of agents whose instances were lost."""
    for instance in pool.pop_lost():
        tally.abandon(ids_of_instance(tally.agents, instance, pool.num_instances))
        for player in players:
            player.forget(ids_of_instance(player.agents, instance, pool.num_instances))


@dataclass(slots=True)
class _Episode:
    is_counted: bool
    total: float = 0.0
    length: int = 0


class _Tally:
    """The episodes that count: the first ones of each agent, an equal number of each.

    Counting the first ones to end would favor short ones. num_agents: returns how many usually act at once, once the
    first one is there; where others appear later, episodes count as they begin. num_awaited: steps without any agent.
    """

    def __init__(
        self,
        num_episodes: int,
        num_agents: Callable[[], int],
        on_return: Callable[[float], None],
        recorder: Recorder,
    ):
        self.num_awaited = 0
        self._on_return, self._recorder = on_return, recorder
        self._num_episodes, self._num_agents = num_episodes, num_agents
        self._share = self._num_odd = 0  # episodes of each agent, and agents with one more
        self._num_left = num_episodes  # to begin
        self._shares: dict[int, int] = {}  # episodes that an agent may still begin
        self._spare: list[int] = []  # shares of agents that were lost, for those in their place; the largest is last
        self._playing: dict[int, _Episode] = {}  # by agent
        self._counted: list[_Episode] = []
        self._num_open = num_episodes  # to end

    @property
    def is_complete(self) -> bool:
        """Whether all of them have ended."""
        return self._num_open == 0

    def add(self, steps: Steps | None) -> None:
        """Count the steps of one instance."""
        if steps is None:
            self.num_awaited += not self._shares
            return
        if steps.terminals is not None:
            rewards = steps.terminals.total_rewards.tolist()
            for agent, reward in zip(steps.terminals.agent_ids.tolist(), rewards, strict=True):
                self._end(agent, reward)
        rewards = steps.decisions.total_rewards.tolist()
        for agent, reward in zip(steps.decisions.agent_ids.tolist(), rewards, strict=True):
            if agent in self._playing:
                self._reward(self._playing[agent], reward)
            else:
                self._begin(agent)

    @property
    def agents(self) -> Int64:
        """Those that have begun an episode."""
        return np.array(list(self._shares), np.int64)

    def abandon(self, agents: Int64) -> None:
        """These are lost with their episodes. Those in their place, whose ids may be others, play them again."""
        self._recorder.abandon(agents)
        for agent in agents.tolist():
            left, episode = self._shares.pop(agent), self._playing.pop(agent, None)
            if episode is not None and episode.is_counted:
                self._counted = [each for each in self._counted if each is not episode]
                self._num_left += 1
                left += 1
            self._spare.append(left)
        self._spare.sort()

    def scores(self) -> Scores:
        """Their returns and lengths."""
        returns = np.array([episode.total for episode in self._counted])
        return Scores(returns, np.array([episode.length for episode in self._counted], np.int64))

    def _begin(self, agent: int) -> None:
        if not self._shares:
            self._share, self._num_odd = divmod(self._num_episodes, max(1, self._num_agents()))
        if agent not in self._shares:
            share = self._share + (len(self._shares) < self._num_odd)
            self._shares[agent] = self._spare.pop() if self._spare else share
        episode = _Episode(self._num_left > 0 and self._shares[agent] > 0)
        self._playing[agent] = episode
        if episode.is_counted:
            self._num_left -= 1
            self._shares[agent] -= 1
            self._counted.append(episode)

    def _reward(self, episode: _Episode, reward: float) -> None:
        episode.total += reward
        episode.length += 1

    def _end(self, agent: int, reward: float) -> None:
        """An agent that never acted in its episode has none."""
        episode = self._playing.pop(agent, None)
        if episode is not None:
            self._reward(episode, reward)
            if episode.is_counted:
                self._num_open -= 1
                self._on_return(episode.total)
                self._recorder.count(agent)
