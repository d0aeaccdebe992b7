"""What learning keeps of each agent from block to block, where agents come, end, vanish and return at random."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.experience import join_trajectories
from rl_tui.engine.learning.agent_state import AgentState
from rl_tui.engine.learning.rewards.scaling import RewardScaler
from rl_tui.engine.learning.rewards.streams import EpisodeSums
from rl_tui.engine.learning.sequences import link_episodes
from rl_tui.engine.sampling.assembly import Assembly
from rl_tui.engine.sampling.slots import MARKS
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    Choice,
    DecisionSteps,
    ObservationSpec,
    TerminalSteps,
    Trajectories,
)

SPEC = BehaviorSpec("Walker", (ObservationSpec("number", (1,)),), ActionSpec(1))  # observes the number of the action
GAMMA = 0.5  # sums of small whole numbers times its powers are exact


SPELL = 2 * MARKS  # steps for which agents are silent


@dataclass
class Episode:
    """Numbers and rewards of an agent's actions; the last one may not be paid yet."""

    actions: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


class Walkers:
    """Random agents in an assembly. episodes: of those that are present, by agent; ended: of the others, in order."""

    def __init__(self, seed: int, horizon: int) -> None:
        self.random = np.random.default_rng(seed)
        self.assembly = Assembly(SPEC, horizon)
        self.episodes: dict[int, Episode] = {}
        self.ended: list[Episode] = []
        self.episode_of: dict[int, Episode] = {}  # by action
        self.blocks: list[Trajectories] = []
        self._num_actions = self._num_steps = 0

    def step(self, num_agents: int) -> None:
        """Some end, some of them begin again at once, others come; a third is silent, so long that it may have left."""
        random, self._num_steps = self.random, self._num_steps + 1
        asleep = {agent for agent in range(num_agents) if (agent + self._num_steps // SPELL) % 3 == 0}
        present = [agent for agent in self.episodes if agent not in asleep]
        ending = [agent for agent in present if random.random() < 0.1]
        if ending:
            rewards = self._pay(ending)
            self.assembly.end(TerminalSteps(*self._columns(ending, rewards), random.random(len(ending)) < 0.5))
            self.ended += [self.episodes.pop(agent) for agent in ending]
        waiting = [agent for agent in present if agent not in ending and random.random() < 0.5]
        again = [agent for agent in ending if random.random() < 0.5]
        new = [
            int(agent)
            for agent in random.permutation(num_agents)[:2]
            if agent not in {*self.episodes, *asleep, *ending}
        ]
        self.act([*waiting, *again, *new])

    def act(self, agents: list[int]) -> None:
        """These agents are paid and act; a whole block may be drained between."""
        decisions = DecisionSteps(*self._columns(agents, self._pay(agents)))
        self.assembly.observe(decisions)
        self._follow_departures()
        if self.assembly.is_full or self.random.random() < 0.15:
            self.drain()
        for agent, number in zip(agents, decisions.observations[0][:, 0].tolist(), strict=True):
            episode = self.episodes.setdefault(agent, Episode())
            episode.actions.append(int(number))
            self.episode_of[int(number)] = episode
        zeros = np.zeros((len(agents), 1), np.float32)
        self.assembly.act(decisions, Choice(Actions(zeros, np.zeros((len(agents), 0), np.int64)), zeros, zeros))

    def drain(self) -> None:
        """Keep the block that is complete, if there is one."""
        if self.assembly.num_complete:
            self.blocks.append(self.assembly.drain())

    def mark_silent(self) -> None:
        """The assembly looks for agents that have left."""
        self.assembly.mark_silent()
        self._follow_departures()

    def _pay(self, agents: list[int]) -> np.ndarray:
        rewards = self.random.integers(-3, 4, len(agents)).astype(np.float32)
        for agent, reward in zip(agents, rewards.tolist(), strict=True):
            if agent in self.episodes:
                self.episodes[agent].rewards.append(reward)
        return rewards

    def _columns(self, agents: list[int], rewards: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray], np.ndarray]:
        numbers = np.arange(self._num_actions, self._num_actions + len(agents), dtype=np.float32)
        self._num_actions += len(agents)
        return np.array(agents, np.int64), (numbers[:, None],), rewards

    def _follow_departures(self) -> None:
        """An agent that the assembly has given up is in a new episode when it acts again."""
        owned = self.assembly._slots
        for agent in list(self.episodes):
            slot = owned.find(np.array([agent]))[0]
            if slot < 0 or (owned.written[slot] == owned.emitted[slot] == owned.begun[slot] and owned.state[slot] == 2):
                del self.episodes[agent]


@settings(deadline=None, max_examples=60, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), horizon=st.integers(1, 5), num_agents=st.integers(2, 9))
def test_what_is_kept_of_an_agent_is_of_its_episode_and_goes_with_it(seed: int, horizon: int, num_agents: int) -> None:
    """Against plain lists: discounted returns of every row, sums of every episode, and which segment follows which."""
    walkers = Walkers(seed, horizon)
    for _ in range(60):
        walkers.step(num_agents)
        if walkers.random.random() < 0.6:
            walkers.mark_silent()
    scaler, sums = RewardScaler(GAMMA), EpisodeSums(1)
    found: list[float] = []
    for block in walkers.blocks:
        returns = scaler._returns(block, block.rewards)
        found += sums(block, block.rewards[:, None])[:, 0].tolist()
        for number, value in zip(block.observations[0][:, 0].astype(int).tolist(), returns.tolist(), strict=True):
            assert value == discounted(walkers.episode_of[number], number)
    drained = {int(n) for block in walkers.blocks for n in block.observations[0][:, 0]}
    complete = [e for e in walkers.ended if e.actions and e.actions[-1] in drained]
    assert sorted(found) == sorted(sum(episode.rewards) for episode in complete)
    check_links(walkers)


def discounted(episode: Episode, action: int) -> float:
    """The discounted return of this episode from its beginning to the action's reward."""
    total = 0.0
    for number, reward in zip(episode.actions, episode.rewards, strict=False):
        total = GAMMA * total + reward
        if number == action:
            return total
    raise AssertionError(f"{action} is not of this episode")


def check_links(walkers: Walkers) -> None:
    """In a rollout of all blocks, a segment continues the one before it in its episode."""
    if not walkers.blocks:
        return
    rollout = join_trajectories(walkers.blocks)
    links = link_episodes(rollout.agent_ids, rollout.begins, np.arange(rollout.num_segments))
    firsts = (np.cumsum(rollout.lengths) - rollout.lengths).tolist()
    numbers = rollout.observations[0][:, 0].astype(int).tolist()
    last: dict[int, int] = defaultdict(lambda: -1)  # of each episode: its last segment
    for segment, first in enumerate(firsts):
        episode = walkers.episode_of[numbers[first]]
        assert links.before[segment] == last[id(episode)]
        last[id(episode)] = segment


@settings(deadline=None, max_examples=30, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), horizon=st.integers(1, 5))
def test_of_agents_that_vanish_nothing_is_kept(seed: int, horizon: int) -> None:
    """All but one vanish, whether newcomers need their slots or not."""
    walkers = Walkers(seed, horizon)
    for _ in range(30):
        walkers.step(9)
    for _ in range((MARKS + 2) * horizon):
        walkers.act([99])
        walkers.drain()
        walkers.mark_silent()
    walkers.assembly.end(TerminalSteps(*walkers._columns([99], np.ones(1, np.float32)), np.zeros(1, np.bool_)))
    walkers.drain()
    assert walkers.assembly.num_held == 0
    scaler, sums, joined = RewardScaler(GAMMA), EpisodeSums(1), AgentState.empty(1, np.float64)
    for block in walkers.blocks:
        scaler(block, block.rewards)
        sums(block, block.rewards[:, None])
    rollout = join_trajectories(walkers.blocks)
    columns = np.ones((rollout.num_segments, 1))
    joined = joined.updated(rollout.agent_ids, rollout.endings, columns, rollout.departed)
    for kept in (scaler._carried, sums._unfinished, joined):
        assert kept.agent_ids.tolist() == []
