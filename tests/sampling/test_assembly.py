"""Every transition of a random world leaves the assembly exactly once, unchanged."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.sampling.assembly import MIN_ROWS, Assembly
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    Choice,
    DecisionSteps,
    Ending,
    ObservationSpec,
    TerminalSteps,
    Trajectories,
)

SEEN = (
    ObservationSpec("speed", (2,)),
    ObservationSpec("others", (2, 1)),
    ObservationSpec("eye", (2, 1, 3), "uint8"),
)
SPEC = BehaviorSpec("Walker", SEEN, ActionSpec(2, (3, 2)))
NO_MASK = np.ones(SPEC.actions.mask_size, np.bool_)


@dataclass
class Row:
    """One action with its row of experience."""

    observations: list[np.ndarray]
    continuous: np.ndarray
    discrete: np.ndarray
    log_probs: np.ndarray
    mask: np.ndarray
    version: int
    memory: np.ndarray
    group: int
    team: int
    reward: float = np.nan
    group_reward: float = 0.0


@dataclass
class Segment:
    """What the assembly should return for one segment."""

    rows: list[Row]
    ending: Ending
    following: list[np.ndarray]
    begins: bool
    next_mask: np.ndarray = field(default_factory=NO_MASK.copy)
    policy: int = 0


@dataclass
class Track:
    """What one agent has done, as the assembly should return it."""

    is_waiting_for_outcome: bool = False
    is_idle: bool = False  # chose no action since silent agents were last marked
    is_present: bool = False  # in an episode
    num_segments: int = 0  # whole ones of this episode
    is_silent: bool = False  # was marked then, and has not been heard of since
    open: list[Row] = field(default_factory=list)
    whole: list[Segment] = field(default_factory=list)
    episode: list[float] = field(default_factory=list)
    memory: np.ndarray | None = None  # None where an episode begins
    policy: int = 0  # that chose the last action
    begins: bool = True  # the next segment does: another episode, or another policy in it

    def end_segment(self, ending: Ending, following: list[np.ndarray], *next_mask: np.ndarray) -> None:
        """What is open is whole."""
        begins = self.num_segments == 0 or self.begins
        self.whole.append(Segment(self.open, ending, following, begins, *next_mask, policy=self.policy))
        self.open, self.num_segments, self.begins = [], self.num_segments + 1, False


class World:
    """Agents appear, leave, end and decide at random. Records what should be returned, for each agent and row."""

    def __init__(
        self,
        seed: int,
        horizon: int,
        num_agents: int,
        masked: bool = True,
        memory_size: int = 0,
        grouped: bool = False,
        many_policies: bool = False,
    ):
        self.random = np.random.default_rng(seed)
        self.horizon = horizon
        self.num_agents = num_agents
        self.masked = masked
        self.grouped = grouped
        self.many_policies = many_policies
        self.handed_over: set[int] = set()  # agents for which a policy acts that does not learn, since the last drain
        self.num_learned = 0
        self.unlearned: list[tuple[float, int]] = []
        self.memory_size = memory_size
        self.assembly = Assembly(SPEC, horizon, memory_size)
        self.tracks: dict[int, Track] = {}
        self.episodes: list[tuple[float, int]] = []
        self.fresh: list[tuple[float, int, int]] = []
        self.num_acted = 0
        self.version = 0
        self.assembly.set_version(0)
        self.counter = 0
        self.departed: list[int] = []
        self.has_mask = False
        self.has_groups = False
        self.ids = np.empty(0, np.int64)
        self.num_rows = 0

    def unique(self, *shape: int) -> np.ndarray:
        """Numbers that are never repeated."""
        size = int(np.prod(shape))
        self.counter += size
        return np.arange(self.counter - size, self.counter, dtype=np.float32).reshape(shape)

    def seen(self, count: int) -> tuple[np.ndarray, ...]:
        """Observations of so many agents."""
        return tuple(self.unique(count, *spec.shape).astype(spec.dtype) for spec in SEEN)

    def step(self) -> None:
        """Terminal steps, decisions and actions of one step of the world."""
        self._end()
        decisions = self._observe()
        if self.assembly.is_full or self.random.random() < 0.2:
            self.check_drain()
        if self.random.random() < 0.1:
            self.version += 1
            self.assembly.set_version(self.version)
        self._act(decisions)
        if self.random.random() < 0.3:
            self._mark_silent()
        if self.random.random() < 0.15:
            self._abandon()
        for observation in decisions.observations:
            observation[:] = 7  # the environment reuses its memory

    def _end(self) -> None:
        ending = [i for i, track in self.tracks.items() if track.is_waiting_for_outcome and self.random.random() < 0.15]
        if self.random.random() < 0.1:  # ends before it ever acted
            ending.append(self._fresh_id())
        if not ending and self.random.random() < 0.5:
            return
        ids = self.random.permutation(np.array(ending, np.int64))
        final = self.seen(len(ids))
        rewards = self._rewards(len(ids))
        group_rewards = self._group_rewards(len(ids))
        truncated = self.random.random(len(ids)) < 0.5
        for row, agent in enumerate(ids):
            track = self.tracks.setdefault(int(agent), Track())
            track.memory, track.is_silent, track.is_present = None, False, False
            if not track.is_waiting_for_outcome:
                continue
            self._credit(track, rewards[row], group_rewards, row)
            ended = Ending.TRUNCATED if truncated[row] else Ending.TERMINATED
            track.end_segment(ended, [o[row].copy() for o in final])
            episode = sum(track.episode), len(track.episode)
            (self.unlearned if track.policy else self.episodes).append(episode)
            if not track.policy:
                self.fresh.append((*episode, self.num_learned))
            track.episode, track.is_waiting_for_outcome, track.num_segments = [], False, 0
        self.assembly.end(TerminalSteps(ids, final, rewards, truncated, group_rewards=group_rewards))
        self._follow_departures()
        for observation in final:
            observation[:] = 7

    def _mark_silent(self) -> None:
        for track in self.tracks.values():
            track.is_silent |= track.is_waiting_for_outcome and track.is_idle
            track.is_idle = True
        self.assembly.mark_silent()
        self._follow_departures()

    def _abandon(self) -> None:
        """Some agents' last actions have no outcome; what came before them ends where they were chosen."""
        waiting = [i for i, track in self.tracks.items() if track.is_waiting_for_outcome and self.random.random() < 0.5]
        for agent in waiting:
            track = self.tracks[agent]
            dropped = track.open.pop()
            self.num_rows -= 1
            if track.open:
                track.end_segment(Ending.TRUNCATED, dropped.observations)
            elif not track.whole:
                self.departed.append(agent)
            elif track.whole[-1].ending == Ending.CUT:
                track.whole[-1].ending = Ending.TRUNCATED
            track.open, track.episode, track.memory = [], [], None
            track.is_waiting_for_outcome = track.is_silent = track.is_present = False
            track.num_segments = 0
        self.assembly.abandon(np.array(waiting, np.int64))

    def _follow_departures(self) -> None:
        """Only silent agents may have lost their slots, and they start a new episode if they return."""
        departed = [int(agent) for agents in self.assembly._slots._departed for agent in agents]
        for agent in departed[len(self.departed) :]:
            track = self.tracks[agent]
            assert track.is_silent
            assert not track.whole
            self.num_rows -= len(track.open)
            track.open, track.episode, track.memory = [], [], None
            track.is_waiting_for_outcome = track.is_silent = track.is_present = False
            track.num_segments = 0
        self.departed = departed

    def _observe(self) -> DecisionSteps:
        known = [i for i in self.tracks if self.random.random() < 0.8]
        wanted = [*known, *(self._fresh_id() for _ in range(int(self.random.integers(0, 3))))]
        if self.random.random() < 0.3:
            wanted = list(self.random.permutation(wanted))
        ids = np.array(wanted[: self.num_agents], np.int64)
        ids = self.ids if np.array_equal(ids, self.ids) and self.random.random() < 0.7 else ids
        self.ids = ids
        mask = None
        if self.masked and self.random.random() < 0.5:
            mask = self.random.random((len(ids), SPEC.actions.mask_size)) < 0.7
        rewards = self._rewards(len(ids))
        group_rewards = self._group_rewards(len(ids))
        groups, teams = self._ids_of(len(ids), -1), self._ids_of(len(ids), 0)
        decisions = DecisionSteps(ids, self.seen(len(ids)), rewards, mask, groups, group_rewards, teams)
        for row, agent in enumerate(ids):
            track = self.tracks.setdefault(int(agent), Track())
            track.is_silent, track.is_present = False, True
            if not track.is_waiting_for_outcome:
                continue
            self._credit(track, rewards[row], group_rewards, row)
            if len(track.open) == self.horizon:
                allowed = NO_MASK if mask is None else mask[row].copy()
                seen = [o[row].copy() for o in decisions.observations]
                track.end_segment(Ending.CUT, seen, allowed)
        self.assembly.observe(decisions)
        self._follow_departures()
        return decisions

    def _act(self, decisions: DecisionSteps) -> None:
        count, actions = len(decisions.agent_ids), SPEC.actions
        self.has_mask |= decisions.action_mask is not None
        self.has_groups |= decisions.group_ids is not None
        continuous = self.unique(count, actions.continuous)
        discrete = self.random.integers(0, 2, (count, len(actions.branches)))
        after = self.unique(count, self.memory_size) if self.memory_size else None
        policies = self._policies(decisions)
        log_probs = self.unique(count, actions.num_columns)
        choice = Choice(Actions(continuous / 7, discrete), continuous, log_probs, after, policies)
        before = self.assembly.memories(decisions)
        assert (before is None) == (after is None)
        for row, agent in enumerate(decisions.agent_ids):
            track = self.tracks[int(agent)]
            mask = NO_MASK if decisions.action_mask is None else decisions.action_mask[row].copy()
            seen = [o[row].copy() for o in decisions.observations]
            memory = np.zeros(self.memory_size) if track.memory is None else track.memory
            if before is not None and after is not None:
                np.testing.assert_array_equal(before[row], memory)
                track.memory = after[row].copy()
            self._take_over(int(agent), 0 if policies is None else int(policies[row]), seen, mask)
            chosen = continuous[row], discrete[row], choice.log_probs[row]
            group = -1 if decisions.group_ids is None else int(decisions.group_ids[row])
            team = 0 if decisions.team_ids is None else int(decisions.team_ids[row])
            track.open.append(Row(seen, *chosen, mask, self.version, memory, group, team))
            track.is_waiting_for_outcome, track.is_idle = True, False
        self.assembly.act(decisions, choice)
        self.num_acted += count
        for reused in (before, after):
            if reused is not None:
                reused[:] = -1
        self.num_rows += count

    def _policies(self, decisions: DecisionSteps) -> np.ndarray | None:
        """Which policy acts: mostly the one that acted before."""
        if not self.many_policies or self.random.random() < 0.1:
            return None
        before = [self.tracks[int(agent)].policy for agent in decisions.agent_ids]
        changes = self.random.random(len(before)) < 0.2
        return np.where(changes, self.random.integers(0, 3, len(before)), before).astype(np.int64)

    def _take_over(self, agent: int, policy: int, seen: list[np.ndarray], mask: np.ndarray) -> None:
        track = self.tracks[agent]
        if policy != track.policy:
            if policy and (track.open or track.num_segments):
                self.handed_over.add(agent)
            if track.open:
                track.end_segment(Ending.CUT, seen, mask)
            track.begins = True
        track.policy = policy
        self.num_learned += policy == 0

    def _fresh_id(self) -> int:
        """Usually an agent that was never seen."""
        agent = int(self.random.integers(0, 2**40))
        return agent if len(self.tracks) < 3 * self.num_agents and agent not in self.tracks else self._absent_id()

    def _absent_id(self) -> int:
        return 2**41 + len(self.tracks) + int(self.random.integers(0, 2**40))

    def _rewards(self, count: int) -> np.ndarray:
        return (self.random.integers(-20, 20, count) / 4).astype(np.float32)  # sums of these are exact

    def _group_rewards(self, count: int) -> np.ndarray | None:
        return self._rewards(count) if self.grouped and self.random.random() < 0.5 else None

    def _ids_of(self, count: int, lowest: int) -> np.ndarray | None:
        return self.random.integers(lowest, 4, count) if self.grouped and self.random.random() < 0.5 else None

    @staticmethod
    def _credit(track: Track, reward: float, group_rewards: np.ndarray | None, row: int) -> None:
        track.open[-1].reward = reward
        track.open[-1].group_reward = 0.0 if group_rewards is None else group_rewards[row]
        track.episode.append(float(reward) + float(track.open[-1].group_reward))

    def check_drain(self) -> None:
        """Take a block, if there is anything, and compare it with what should be in it."""
        expected = {agent: track.whole for agent, track in self.tracks.items() if track.whole}
        segments = [segment for whole in expected.values() for segment in whole]
        assert self.assembly.num_complete == sum(len(segment.rows) for segment in segments)
        learned = sum(len(segment.rows) for segment in segments if segment.policy == 0)
        assert self.assembly.num_complete_learned == learned
        unfinished = sum(len(track.open) for track in self.tracks.values() if track.policy == 0)
        assert self.assembly.num_held == learned + unfinished
        if not segments:
            return
        block = self.assembly.drain()
        check_block(block, expected, self.has_mask, self.horizon)
        assert (block.group_ids is not None) == self.has_groups
        assert list(zip(block.episode_returns, block.episode_lengths, strict=True)) == self.episodes
        assert list(zip(block.unlearned_returns, block.unlearned_lengths, strict=True)) == self.unlearned
        present = {agent for agent, track in self.tracks.items() if track.is_present}
        absent, playing = set(block.departed.tolist()) - present, set(block.departed.tolist()) & present
        assert sorted(absent) == sorted(set(self.departed) - present)
        unlearned = {agent for agent in present if self.tracks[agent].policy}
        assert self.handed_over & unlearned <= playing <= unlearned
        self.num_rows -= block.num_rows
        self.episodes, self.unlearned, self.departed, self.handed_over = [], [], [], set()
        for track in self.tracks.values():
            track.whole = []
        assert self.assembly.num_complete == 0

    def check_fresh(self) -> None:
        """Episodes are reported once, in order."""
        returns, lengths, ends = self.assembly.drain_new_episodes()
        assert list(zip(returns, lengths, ends, strict=True)) == self.fresh
        self.fresh = []


def check_block(block: Trajectories, expected: dict[int, list[Segment]], has_mask: bool, horizon: int) -> None:
    """The block holds these segments of these agents, each agent's together and in order."""
    assert block.num_rows == block.lengths.sum() == len(block.log_probs)
    assert block.lengths.min() >= 1
    assert block.lengths.max() <= horizon
    changes = 1 + int((block.agent_ids[1:] != block.agent_ids[:-1]).sum())
    assert changes == len(set(block.agent_ids.tolist())), "the segments of an agent are not adjacent"
    assert (block.action_mask is not None) == has_mask
    left = {agent: list(segments) for agent, segments in expected.items()}
    versions, start = [], 0
    for index, length in enumerate(block.lengths):
        segment = left[int(block.agent_ids[index])].pop(0)
        check_segment(block, index, slice(start, start + length), segment)
        versions += [row.version for row in segment.rows if segment.policy == 0]
        start += length
    assert not any(left.values()), "some segments are missing"
    if versions:
        assert block.policy_version == min(versions)
    assert [o.dtype for o in block.observations] == [o.dtype for o in block.next_observations]
    assert [o.dtype for o in block.observations] == [np.float32, np.float32, np.uint8]
    assert {c.dtype for c in (block.continuous_actions, block.log_probs, block.rewards)} == {np.dtype(np.float32)}
    assert block.discrete_actions.dtype == np.int64
    assert block.endings.dtype == np.int8


def check_segment(block: Trajectories, index: int, rows: slice, segment: Segment) -> None:
    """These rows of the block are that segment."""
    assert rows.stop - rows.start == len(segment.rows)
    assert block.endings[index] == segment.ending
    assert block.begins[index] == segment.begins
    assert (block.is_learned is None or bool(block.is_learned[index])) == (segment.policy == 0)
    allowed = NO_MASK if block.next_action_mask is None else block.next_action_mask[index]
    assert allowed.tolist() == segment.next_mask.tolist()
    for column in range(len(SPEC.observations)):
        np.testing.assert_array_equal(
            block.observations[column][rows], np.stack([r.observations[column] for r in segment.rows])
        )
        np.testing.assert_array_equal(block.next_observations[column][index], segment.following[column])
    np.testing.assert_array_equal(block.continuous_actions[rows], np.stack([r.continuous for r in segment.rows]))
    np.testing.assert_array_equal(block.discrete_actions[rows], np.stack([r.discrete for r in segment.rows]))
    np.testing.assert_array_equal(block.log_probs[rows], np.stack([r.log_probs for r in segment.rows]))
    np.testing.assert_array_equal(block.rewards[rows], [r.reward for r in segment.rows])
    for values, absent, wanted in (
        (block.group_rewards, 0, [r.group_reward for r in segment.rows]),
        (block.group_ids, -1, [r.group for r in segment.rows]),
        (block.team_ids, 0, [r.team for r in segment.rows]),
    ):
        assert wanted == ([absent] * len(wanted) if values is None else values[rows].tolist())
    if block.memories is not None:
        assert block.memories.dtype == np.float32
        np.testing.assert_array_equal(block.memories[rows], np.stack([r.memory for r in segment.rows]))
    if block.action_mask is not None:
        np.testing.assert_array_equal(block.action_mask[rows], np.stack([r.mask for r in segment.rows]))


@settings(deadline=None, max_examples=80, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    horizon=st.integers(1, 9),
    num_agents=st.integers(1, 12),
    num_steps=st.integers(1, 60),
    masked=st.booleans(),
    memory_size=st.sampled_from([0, 2]),
    grouped=st.booleans(),
    many_policies=st.booleans(),
)
def test_every_transition_of_a_random_world_comes_out_once(
    seed: int,
    horizon: int,
    num_agents: int,
    num_steps: int,
    masked: bool,
    memory_size: int,
    grouped: bool,
    many_policies: bool,
) -> None:
    world = World(seed, horizon, num_agents, masked, memory_size, grouped, many_policies)
    for _ in range(num_steps):
        world.step()
        if world.random.random() < 0.1:
            world.check_fresh()
    world.check_drain()
    world.check_fresh()
    assert world.num_rows == sum(len(track.open) for track in world.tracks.values())


@pytest.mark.parametrize("seed", range(2))
def test_a_crowd_that_grows_loses_nothing(seed: int) -> None:
    world = World(seed, horizon=4, num_agents=192, memory_size=1)
    for _ in range(100):
        world.step()
    world.check_drain()
    assert len(world.tracks) > 64


def steps(agents: list[int], value: float, mask: np.ndarray | None = None) -> DecisionSteps:
    """Decisions of these agents that see and earned `value`."""
    count = len(agents)
    seen = tuple(np.full((count, *spec.shape), value, spec.dtype) for spec in SEEN)
    return DecisionSteps(np.array(agents, np.int64), seen, np.full(count, value, np.float32), mask)


def ends(agents: list[int], value: float, truncated: bool = False) -> TerminalSteps:
    """The end of these agents' episodes, as `steps`."""
    decisions = steps(agents, value)
    final = decisions.agent_ids, decisions.observations, decisions.rewards
    return TerminalSteps(*final, np.full(len(agents), truncated))


def choice(count: int, value: float = 0.0, remembered: float | None = None) -> Choice:
    """The same choice for everyone, remembering one number."""
    continuous = np.full((count, 2), value, np.float32)
    actions = Actions(continuous, np.zeros((count, 2), np.int64))
    memories = None if remembered is None else np.full((count, 1), remembered, np.float32)
    return Choice(actions, continuous, np.zeros((count, 4), np.float32), memories)


def test_a_reward_belongs_to_the_action_before_it() -> None:
    assembly = Assembly(SPEC, 10)
    for value in (1.0, 2.0, 3.0):
        decisions = steps([7], value)
        assembly.observe(decisions)
        assembly.act(decisions, choice(1, value))
    assembly.end(ends([7], 4.0))
    block = assembly.drain()
    assert block.continuous_actions[:, 0].tolist() == [1, 2, 3]
    assert block.observations[0][:, 0].tolist() == [1, 2, 3]
    assert block.rewards.tolist() == [2, 3, 4]
    assert block.next_observations[0].tolist() == [[4, 4]]
    assert block.episode_returns.tolist() == [9]
    assert block.episode_lengths.tolist() == [3]


def test_an_agent_that_ends_and_begins_in_the_same_step_gets_the_end_of_the_old_episode() -> None:
    assembly = Assembly(SPEC, 10)
    decisions = steps([7], 1.0)
    assembly.observe(decisions)
    assembly.act(decisions, choice(1))
    assembly.end(ends([7], 5.0, truncated=True))
    decisions = steps([7], 100.0)
    assembly.observe(decisions)
    assembly.act(decisions, choice(1))
    block = assembly.drain()
    assert block.rewards.tolist() == [5]
    assert block.next_observations[0].tolist() == [[5, 5]]
    assert block.endings.tolist() == [Ending.TRUNCATED]
    assert assembly.num_complete == 0


def test_an_end_at_the_horizon_is_an_end_and_not_a_cut() -> None:
    assembly = Assembly(SPEC, 2)
    for value in (1.0, 2.0):
        decisions = steps([3], value)
        assembly.observe(decisions)
        assembly.act(decisions, choice(1))
    assembly.end(ends([3], 3.0))
    block = assembly.drain()
    assert block.lengths.tolist() == [2]
    assert block.endings.tolist() == [Ending.TERMINATED]


def test_an_agent_that_never_acted_leaves_nothing() -> None:
    assembly = Assembly(SPEC, 2)
    assembly.end(ends([3, 4], 3.0))
    assert assembly.num_complete == 0
    assert not len(assembly.drain_new_episodes()[0])


def test_columns_wrap_around_for_as_long_as_blocks_are_taken_when_full() -> None:
    """No block is drained before, so each holds as many rows of the fast agent as fit."""
    assembly = Assembly(SPEC, 3)
    taken: list[float] = []
    for value in range(200):
        agents = [5] if value % 4 else [5, 6]
        decisions = steps(agents, float(value))
        assembly.observe(decisions)
        if assembly.is_full:
            block = assembly.drain()
            taken += block.observations[0][np.repeat(block.agent_ids, block.lengths) == 5, 0].tolist()
        assembly.act(decisions, choice(len(agents)))
    assert taken == list(range(len(taken)))
    assert len(taken) > 190


@pytest.mark.parametrize(("horizon", "most"), [(1, MIN_ROWS), (4, MIN_ROWS), (3 * MIN_ROWS, 3 * MIN_ROWS)])
def test_full_columns_say_so_before_anything_is_overwritten(horizon: int, most: int) -> None:
    """Segments of any length may wait until together they have some rows; a long one goes at once."""
    assembly = Assembly(SPEC, horizon)
    values = itertools.count()
    while not assembly.is_full:
        decisions = steps([1], next(values) % 256)
        assembly.observe(decisions)
        if not assembly.is_full:
            assembly.act(decisions, choice(1))
    assert assembly.num_complete == most
    assert assembly.drain().observations[0][:, 0].tolist() == list(range(most))
    assert not assembly.is_full


def test_room_of_those_who_ended_goes_to_newcomers() -> None:
    """An environment that numbers agents from scratch in every episode must not need more memory with every episode."""
    assembly = Assembly(SPEC, 4, memory_size=1)
    for episode in range(100):
        agents = [3 * episode, 3 * episode + 1, 3 * episode + 2]
        for value in range(6):
            decisions = steps(agents, float(value))
            assembly.observe(decisions)
            assembly.act(decisions, choice(3, remembered=9.0))
        assembly.end(ends(agents, 6.0))
        if episode % 2:
            block = assembly.drain()
            segments = [(agent, length) for agent in range(agents[0] - 3, agents[-1] + 1) for length in (4, 2)]
            assert sorted(zip(block.agent_ids.tolist(), block.lengths.tolist(), strict=True)) == sorted(segments)
            assert block.memories is not None
            assert (block.memories[:, 0] == np.where(block.observations[0][:, 0] == 0, 0, 9)).all()
            assert block.observations[0][:, 0].tolist() == [0, 1, 2, 3, 4, 5] * 6
    assert len(assembly._slots) * (4 + MIN_ROWS) <= 8 * (4 + MIN_ROWS)


def test_a_silent_agent_keeps_its_place_until_a_newcomer_needs_it() -> None:
    """Agent 1 waits for a hundred steps of agent 2, for example while it falls; then agents 3 and 4 come."""
    assembly = Assembly(SPEC, 4)
    assembly.observe(steps([1, 2], 1.0))
    assembly.act(steps([1, 2], 1.0), choice(2))
    for index in range(100):
        assembly.observe(steps([2], 1.0))
        assembly.act(steps([2], 1.0), choice(1))
        if index % 20 == 0:
            assembly.mark_silent()
        if assembly.num_complete:
            assert not len(assembly.drain().departed)
    assembly.observe(steps([1, 2], 5.0))
    assembly.act(steps([1, 2], 5.0), choice(2))
    assembly.end(ends([1], 7.0))
    block = assembly.drain()
    own = np.repeat(block.agent_ids, block.lengths) == 1
    assert (block.rewards[own].tolist(), block.episode_returns.tolist()) == ([5, 7], [12])
    for _ in range(2):
        assembly.observe(steps([3], 0.0))
        assembly.act(steps([3], 0.0), choice(1))
        assembly.mark_silent()
    assembly.observe(steps([4], 0.0))
    assembly.act(steps([4], 0.0), choice(1))
    assembly.end(ends([3, 4], 0.0))
    assert assembly.drain().departed.tolist() == [2]


def test_an_agent_that_stays_silent_leaves_though_its_slot_is_not_needed() -> None:
    """Its unfinished row is dropped. When it returns, its episode is a new one."""
    assembly, alone = Assembly(SPEC, 4, memory_size=1), Assembly(SPEC, 4, memory_size=1)
    for each, agents in ((assembly, [1, 2]), (alone, [2])):
        each.observe(steps(agents, 1.0))
        each.act(steps(agents, 1.0), choice(len(agents), remembered=9.0))
    departed, kept = [], []
    for _ in range(12):
        for each in (assembly, alone):
            each.observe(steps([2], 1.0))
            each.act(steps([2], 1.0), choice(1, remembered=9.0))
            if each.num_complete:
                departed += each.drain().departed.tolist()
            each.mark_silent()
        kept.append(assembly.num_held - alone.num_held)
    assert kept == [1] * 10 + [0] * 2
    assert departed == [1]
    assembly.observe(steps([1, 2], 5.0))
    assembly.act(steps([1, 2], 5.0), choice(2, remembered=9.0))
    assembly.end(ends([1], 7.0))
    block = assembly.drain()
    own = np.repeat(block.agent_ids, block.lengths) == 1
    assert (block.rewards[own].tolist(), block.episode_returns.tolist()) == ([7], [7])
    assert block.memories is not None
    assert block.memories[own].tolist() == [[0]]


def test_newcomer_that_acts_in_the_slot_of_a_silent_agent_is_not_silent() -> None:
    """Agent 1 leaves one unfinished row. Agent 2 takes its slot, writes a row, and may keep it."""
    assembly = Assembly(SPEC, 4)
    for agent in (1, 2):
        assembly.observe(steps([agent], 0.0))
        assembly.act(steps([agent], 0.0), choice(1))
        assembly.mark_silent()
        if agent == 1:
            assembly.mark_silent()
    assembly.observe(steps([3], 0.0))
    assembly.act(steps([3], 0.0), choice(1))
    assembly.end(ends([2, 3], 1.0))
    block = assembly.drain()
    assert block.departed.tolist() == [1]
    assert block.agent_ids.tolist() == [2, 3]


def test_agents_of_instances_that_answer_one_after_the_other_keep_apart() -> None:
    """Both populations are new before either has acted."""
    assembly = Assembly(SPEC, 4)
    first, second = steps([0, 2], 1.0), steps([1, 3], 2.0)
    assembly.observe(first)
    assembly.observe(second)
    joined = steps([0, 2, 1, 3], 1.0)
    joined.observations[0][2:] = 2.0
    assembly.act(joined, choice(4))
    assembly.end(ends([0, 2], 3.0))
    assembly.end(ends([1, 3], 4.0))
    block = assembly.drain()
    assert block.agent_ids.tolist() == [0, 2, 1, 3]
    assert block.observations[0][:, 0].tolist() == [1, 1, 2, 2]
    assert block.rewards.tolist() == [3, 3, 4, 4]


def test_memory_begins_at_zero_after_an_end_and_goes_on_after_a_cut() -> None:
    """Agent 7 ends and starts a new episode in the same step; agent 8 continues."""
    assembly = Assembly(SPEC, 2, memory_size=1)
    for value in range(1, 7):
        if value == 4:
            assembly.end(ends([7], 0.0))
        decisions = steps([7, 8], float(value))
        assembly.observe(decisions)
        assembly.act(decisions, choice(2, remembered=10.0 * value))
    for agent in (7, 8):
        assembly.end(ends([agent], 0.0))
    block = assembly.drain()
    assert block.agent_ids.tolist() == [7] * 4 + [8] * 3
    assert block.endings.tolist() == [0, 1, 0, 1, 0, 0, 1]
    assert block.memories is not None
    assert block.memories[:, 0].tolist() == [0, 10, 20, 0, 40, 50, 0, 10, 20, 30, 40, 50]


def test_a_policy_without_memory_leaves_none() -> None:
    assembly = Assembly(SPEC, 1)
    decisions = steps([7], 1.0)
    assembly.observe(decisions)
    assert assembly.memories(decisions) is None
    assembly.act(decisions, choice(1))
    assembly.observe(steps([7], 2.0))
    assert assembly.drain().memories is None


def test_rows_before_the_first_mask_allowed_everything() -> None:
    assembly = Assembly(SPEC, 10)
    forbidden = np.array([[True, False, True, True, False]])
    for mask in (None, forbidden, None):
        decisions = steps([1], 0.0, mask)
        assembly.observe(decisions)
        assembly.act(decisions, choice(1))
    assembly.end(ends([1], 0.0))
    mask = assembly.drain().action_mask
    assert mask is not None
    assert mask.tolist() == [[True] * 5, forbidden[0].tolist(), [True] * 5]


def test_a_block_does_not_change_when_collecting_goes_on() -> None:
    assembly = Assembly(SPEC, 2)
    blocks = []
    for value in range(12):
        decisions = steps([1], float(value))
        assembly.observe(decisions)
        if assembly.num_complete:
            blocks.append(assembly.drain())
        assembly.act(decisions, choice(1))
    assert [block.observations[0][:, 0].tolist() for block in blocks] == [[i, i + 1] for i in range(0, 10, 2)]


def test_an_unknown_outcome_truncates_the_steps_before_it_and_counts_in_no_return() -> None:
    """Agents 1 and 2 act three times; what follows the third action of agent 1 is not known."""
    assembly = Assembly(SPEC, 10)
    for value in (1.0, 2.0, 3.0):
        decisions = steps([1, 2], value)
        assembly.observe(decisions)
        assembly.act(decisions, choice(2, value))
    assembly.abandon(np.array([1]))
    assert assembly.agents.tolist() == [2]
    block = assembly.drain()
    assert (block.agent_ids.tolist(), block.lengths.tolist()) == ([1], [2])
    assert (block.rewards.tolist(), block.endings.tolist()) == ([2, 3], [Ending.TRUNCATED])
    assert block.next_observations[0].tolist() == [[3, 3]]
    assert not len(block.episode_returns)
    assembly.observe(steps([1, 2], 5.0))
    assembly.act(steps([1, 2], 5.0), choice(2))
    assembly.end(ends([1, 2], 7.0))
    again = assembly.drain()
    assert (again.agent_ids.tolist(), again.begins.tolist()) == ([1, 2], [True, True])
    assert (again.rewards.tolist(), again.episode_returns.tolist()) == ([7, 2, 3, 5, 7], [7, 2 + 3 + 5 + 7])


def test_an_unknown_outcome_right_after_a_cut_truncates_the_segment_that_was_cut() -> None:
    """Unless it has left already: then its agent departs."""
    assembly = Assembly(SPEC, 2)
    for is_drained in (False, True):
        for value in (1.0, 2.0, 3.0):
            decisions = steps([1, 2], value)
            assembly.observe(decisions)
            assembly.act(decisions, choice(2, value))
        blocks = [assembly.drain()] if is_drained else []
        assembly.abandon(np.array([1]))
        assembly.end(ends([2], 4.0))
        blocks.append(assembly.drain())
        own = [block.endings[block.agent_ids == 1].tolist() for block in blocks]
        assert own == ([[Ending.CUT], []] if is_drained else [[Ending.TRUNCATED]])
        assert blocks[-1].departed.tolist() == ([1] if is_drained else [])
