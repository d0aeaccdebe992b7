"""From agent steps to packed segments of experience, with a fixed number of numpy calls per step.

Shapes: N agents of one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.ended_segments import EndedSegments, Segments
from rl_tui.engine.sampling.finished_episodes import Episodes, FinishedEpisodes
from rl_tui.engine.sampling.finished_groups import FinishedGroups
from rl_tui.engine.sampling.games import joined_groups
from rl_tui.engine.sampling.mates import Candidates, find_mates
from rl_tui.engine.sampling.pending_cut import PendingCut
from rl_tui.engine.sampling.slot_columns import SlotColumns, longer
from rl_tui.engine.sampling.slots import ACTIVE, NO_AGENT, VACANT, Slots
from rl_tui.engine.specs import (
    CUT,
    LEARNING,
    TERMINATED,
    TRUNCATED,
    BehaviorSpec,
    Bool,
    Choice,
    DecisionSteps,
    Float32,
    Game,
    GameSide,
    GatheredStatistic,
    Int64,
    Measured,
    Observations,
    Statistic,
    Steps,
    TerminalSteps,
    Trajectories,
    add_up,
)
from rl_tui.engine.statistics import gather

MIN_ROWS = 16  # of whole segments that a slot has room for: short segments need not leave one by one
_ONE = np.array(1)  # an array, since numpy converts an int at every use


class Assembly:
    """The experience of one behavior's agents on its way to a `Trajectories` block. Owned by the collector's thread.

    Call `receive` for the steps of each instance, then `act` with what the policy chose for those that wait. When
    an agent's episode is over, the next newcomer takes its slot: environments may number every episode from scratch.
    A silent agent loses its slot when there is no other room, or after a very long time.
    """

    def __init__(
        self,
        spec: BehaviorSpec,
        time_horizon: int,
        memory_size: int = 0,
        spare_rows: int = 0,
        *,
        is_rated: bool = False,
    ):
        """memory_size: M, how much the policy remembers of each agent. spare_rows: of each agent, for those that go on
        while a cut is awaited. is_rated: sides whose games have ended are kept."""
        self._behavior = spec.name
        self._has_memory = memory_size > 0
        self._is_rated = is_rated
        self._sides: list[GameSide] = []
        self.games: list[Game] = []  # for the next block
        self._horizon = time_horizon
        self._cut_at = np.array(time_horizon)  # rows, at which a segment ends
        self._capacity = time_horizon + max(time_horizon, MIN_ROWS) + spare_rows
        self._most_complete = max(time_horizon, MIN_ROWS)
        self._slots = Slots(self._capacity)
        self.pending_cut = PendingCut(self._slots)
        self._columns = SlotColumns(spec, self._capacity, memory_size)
        self._last_ids: Int64 | None = None  # the last array of ids, and their slots
        self._last_slots: Int64 = np.empty(0, np.int64)
        self._memories: Float32 = np.zeros((1, memory_size), np.float32)  # of slot, zero where an episode begins
        self._last_rows: Int64 = np.zeros(1, np.int64)  # of slot, where its last action is
        self._returns: NDArray[np.float64] = np.zeros(1)  # of slot, as all that follow
        self._group_returns: NDArray[np.float64] = np.zeros(1)
        self._episode_begun: Int64 = np.zeros(1, np.int64)  # rows of the slot that had been written then
        self._begin_versions: Int64 = np.zeros(1, np.int64)  # of the policy that began its segment
        self._policies: Int64 = np.zeros(1, np.int64)  # which policy chose its last action
        self._policy_begun: Int64 = np.zeros(1, np.int64)  # rows that had been written when that one took over
        self._has_policies = False  # besides the one that learns
        self._segments = EndedSegments()
        self._episodes = FinishedEpisodes()
        self._finished_groups = FinishedGroups()
        self._measured: dict[str, tuple[float, int]] = {}
        self._statistics: dict[str, GatheredStatistic] = {}
        self._version = 0
        self._num_steps = 0  # calls of `act`
        self.num_sampled = 0  # actions chosen in all of them
        self.num_learned = 0  # those that the policy that learns chose

    @property
    def num_complete(self) -> int:
        """Rows of whole segments that `drain` would give."""
        return self._segments.num_rows

    @property
    def num_complete_learned(self) -> int:
        """Those of them that are learned from."""
        return self._segments.num_learned

    @property
    def is_full(self) -> bool:
        """Some slot has no room for another segment, or for another row where a cut is awaited: `drain` before the next
        step."""
        if self.pending_cut.is_awaited:
            return bool((self._slots.written - self._slots.emitted >= self._capacity).any())
        return bool((self._slots.begun - self._slots.emitted >= self._most_complete).any())

    @property
    def num_held(self) -> int:
        """Rows that were written and not yet drained, and are learned from."""
        if not self._has_policies:
            return int((self._slots.written - self._slots.emitted).sum())
        unfinished = (self._slots.written - self._slots.begun)[self._policies == LEARNING]
        return self._segments.num_learned + int(unfinished.sum())

    @property
    def num_departed(self) -> int:
        """How many agents have left without the end of an episode, some of which may have come back."""
        return self._slots.num_departed

    @property
    def agents(self) -> Int64:
        """Those in an episode."""
        ids: Int64 = self._slots.agent_ids[self._slots.state != VACANT]
        return ids

    def measure(self, measured: Measured) -> None:
        """Add what the environment reports besides rewards to the next block."""
        add_up(self._measured, measured)

    def gather(self, statistics: Sequence[Statistic]) -> None:
        """Add what the environment reports under names of its own to the next block."""
        gather(self._statistics, statistics)

    def receive(self, steps: Steps) -> None:
        """What happened in one step of an instance: episodes that ended, then agents that wait for an action."""
        num_before = len(self._segments.parts)
        if steps.terminals is not None and len(steps.terminals.agent_ids):
            self.end(steps.terminals)
        if len(steps.decisions.agent_ids):
            self.observe(steps.decisions)
        if self._columns.group_ids is not None:
            for segments in self._segments.parts[num_before:]:
                self._follow_group(segments, steps.decisions)

    def end(self, terminals: TerminalSteps) -> None:
        """Close the episodes of these agents. An agent that never acted in its episode leaves nothing."""
        slots = self._slots_of(terminals.agent_ids)
        self._slots.state[slots] = VACANT
        acted = (self._slots.written[slots] > self._slots.begun[slots]).nonzero()[0]
        slots = slots[acted]
        self._credit(slots, terminals, acted)
        lengths = self._slots.written[slots] - self._episode_begun[slots]
        episodes = Episodes(self._returns[slots], lengths, np.full(len(slots), self.num_learned))
        self._episodes.add(episodes, self._policies[slots] == LEARNING if self._has_policies else None)
        if self._is_rated:
            self._add_sides(slots, terminals, acted)
        endings = np.where(terminals.truncated[acted], TRUNCATED, TERMINATED)
        segments = self._complete(slots, endings, terminals.observations, acted)
        segments.group_returns = self._group_returns[slots]
        self._clear(slots)

    def _add_sides(self, slots: Int64, terminals: TerminalSteps, acted: Int64) -> None:
        """The agents of these slots that are in no group, and the groups of which no agent goes on."""
        count = len(slots)
        teams = np.zeros(count, np.int64) if terminals.team_ids is None else terminals.team_ids[acted]
        is_whole = self._policy_begun[slots] <= self._episode_begun[slots]
        ended: list[NDArray[Any]] = [teams, self._policies[slots], terminals.total_rewards[acted], self._returns[slots]]
        ended += [terminals.truncated[acted], is_whole]
        if self._columns.group_ids is not None:
            groups = self._groups(slots)
            goes_on = (self._slots.state != VACANT) & (self._slots.written > self._episode_begun)
            is_over = (groups < 0) | ~np.isin(groups, self._groups(goes_on.nonzero()[0]))
            ended = joined_groups(groups[is_over], *(values[is_over] for values in ended))
        columns = [values.tolist() for values in ended]
        self._sides += [GameSide(self._behavior, *values) for values in zip(*columns, strict=True)]

    def pop_sides(self) -> list[GameSide]:
        """Those whose games have ended since the last call."""
        sides, self._sides = self._sides, []
        return sides

    def policies_of(self, agent_ids: Int64, longest: int) -> Int64:
        """i64[N], which policy acts in the episode of each agent; -1 where it begins one, or where that policy has
        acted in it for `longest` steps."""
        slots, written = self._slots_of(agent_ids), self._slots.written
        begun = np.maximum(self._episode_begun[slots], self._policy_begun[slots])
        is_new = (written[slots] == self._episode_begun[slots]) | (written[slots] - begun >= longest)
        return np.where(is_new, -1, self._policies[slots])

    @property
    def policies_in_play(self) -> set[int]:
        """Those that act in an episode that goes on."""
        return set(self._policies[self._slots.state != VACANT].tolist())

    def abandon(self, agent_ids: Int64) -> None:
        """The episodes of these agents are over, and what followed their last actions is not known.

        Those actions are dropped. The steps before them are truncated where they were chosen, and count in no return.
        """
        slots, owned = self._slots.find(agent_ids), self._slots
        slots = slots[slots != NO_AGENT]
        waiting = slots[owned.written[slots] > owned.begun[slots]]
        owned.retract(waiting)
        has_rows = owned.written[slots] > owned.begun[slots]
        if len(left := slots[has_rows]):
            segments = self._complete(
                left, np.full(len(left), TRUNCATED), tuple(self._columns.observations), self._last_rows[left]
            )
            if self._columns.group_ids is not None:
                self._add_mates(segments, np.zeros(len(left), np.bool_), [self._at_last_action(waiting)])
        owned.depart(self._segments.truncate(slots[~has_rows]))
        owned.state[slots] = VACANT
        self._begin_versions[slots] = self._version
        self._clear(slots)

    def observe(self, decisions: DecisionSteps) -> None:
        """Credit these agents' last actions with what followed; cut the segments that are long enough."""
        slots, owned = self._slots_of(decisions.agent_ids), self._slots
        owned.state[slots] = ACTIVE
        lengths = owned.written[slots] - owned.begun[slots]
        acted = lengths.nonzero()[0]
        if len(acted) == len(slots):
            self._credit(slots, decisions)
        elif len(acted):
            self._credit(slots[acted], decisions, acted)
        ends = lengths >= self._cut_at
        if self.pending_cut.limit is not None:
            ends |= (lengths > 0) & (owned.begun[slots] < self.pending_cut.limit[slots])
        full = ends.nonzero()[0]
        if len(full):
            self._cut(slots[full], decisions, full)

    def cut(self, at_once: bool) -> None:
        """From now on, cut segments where their agents are next observed, or again at the horizon."""
        self._cut_at = np.array(1 if at_once else self._horizon)

    def cut_once(self) -> None:
        """Cut every segment that has begun where its agent is next observed, as PendingCut says; no agent is waited for
        longer than a segment has steps."""
        self.pending_cut.begin(self._horizon)

    def set_version(self, version: int) -> None:
        """Actions come from this version of the policy from now on."""
        self._version = version
        self._begin_versions[self._slots.written == self._slots.begun] = version

    def memories(self, decisions: DecisionSteps) -> Float32 | None:
        """f32[N, M], a copy: what the policy remembers of these agents. None for a policy without memory."""
        return self._memories[self._slots_of(decisions.agent_ids)] if self._has_memory else None

    def act(self, decisions: DecisionSteps, choice: Choice) -> None:
        """Write the rows of these decisions: what was observed, remembered and chosen."""
        slots = self._slots_of(decisions.agent_ids)
        if self._has_policies or choice.policies is not None:
            self._follow_policies(slots, decisions, choice.policies)
        else:
            self.num_learned += len(slots)
        written = self._slots.written[slots]
        rows = self._slots.rows(slots, written)
        memories = self._memories[slots] if self._has_memory else None
        self._columns.write(rows, decisions, choice, memories, self._num_steps)
        if self._has_memory:
            assert choice.memories is not None
            self._memories[slots] = choice.memories
        self._num_steps += 1
        self.num_sampled += len(slots)
        self._slots.written[slots] = written + _ONE
        self._last_rows[slots] = rows

    def _follow_policies(self, slots: Int64, decisions: DecisionSteps, policies: Int64 | None) -> None:
        """Cut the segments of agents for which another policy acts from now on. policies: None: the one that learns."""
        self._has_policies = True
        acting = np.zeros_like(slots) if policies is None else policies
        self.num_learned += int(np.count_nonzero(acting == LEARNING))
        changed = (self._policies[slots] != acting).nonzero()[0]
        taken = slots[changed]
        unfinished = changed[self._slots.written[taken] > self._slots.begun[taken]]
        if len(unfinished):
            segments = self._cut(slots[unfinished], decisions, unfinished)
            if self._columns.group_ids is not None:
                self._follow_group(segments, decisions)
        self._policies[taken] = acting[changed]
        self._policy_begun[taken] = self._slots.written[taken]

    def mark_silent(self) -> None:
        """Agents that chose no action since the last call may have left: until they appear again, newcomers may
        take their slots where there is no other room; after ten calls they have left. Call it between `act` and the
        next step."""
        self._clear(self._slots.mark_silent())

    def drain_new_episodes(self) -> Episodes:
        """Of the policy that learns, those that ended since the last call, for display; `drain` has them as well."""
        return self._episodes.pop_new()

    def drain(self) -> Trajectories:
        """Every whole segment, packed by agent and in time order; at least one row must be complete.

        While a cut is pending only those that it divides off.
        """
        ended, self._segments, limit = self.pending_cut.divide(self._segments)
        block = Trajectories(
            measured=self._measured,
            statistics=self._statistics,
            departed=self._pop_departed(),
            **self._columns.take(self._slots.emit(limit)),
            **ended.pop(),
            **self._episodes.pop(),
            **self._finished_groups.pop(),
            games=tuple(self.games),
        )
        self._measured, self._statistics, self.games = {}, {}, []
        return block

    def _pop_departed(self) -> Int64:
        """Agents that left, and those for which a policy that does not learn took over since the last block."""
        departed = self._slots.pop_departed()
        if not self._has_policies:
            return departed
        handed_over = (self._policies != LEARNING) & (self._policy_begun >= self._slots.emitted)
        handed_over &= self._slots.state != VACANT
        return np.concatenate([departed, self._slots.agent_ids[handed_over]])

    def _credit(self, slots: Int64, steps: DecisionSteps | TerminalSteps, acted: Int64 | None = None) -> None:
        """Credit the last actions in these slots with what followed; acted: rows of `steps`, None for all."""
        self._columns.credit(self._last_rows[slots], steps, acted)
        rewards = steps.total_rewards
        self._returns[slots] += rewards if acted is None else rewards[acted]
        if steps.group_rewards is not None:
            self._group_returns[slots] += steps.group_rewards if acted is None else steps.group_rewards[acted]

    def _cut(self, slots: Int64, decisions: DecisionSteps, rows: Int64) -> Segments:
        """End the segments of these slots, whose agents go on in these rows of decisions."""
        segments = self._complete(slots, np.full(len(slots), CUT), decisions.observations, rows)
        segments.fields |= self._columns.following(decisions, rows)
        return segments

    def _complete(self, slots: Int64, endings: NDArray[np.int8], observations: Observations, rows: Int64) -> Segments:
        """End the segments of these slots; what was observed next is in these rows."""
        begun = self._slots.begun[slots]
        fields: dict[str, NDArray[Any]] = {
            "lengths": self._slots.written[slots] - begun,
            "begins": begun == self._episode_begun[slots],
            "endings": endings,
            "agent_ids": self._slots.agent_ids[slots],
        }
        if self._has_policies:
            fields["begins"] |= begun == self._policy_begun[slots]
            fields["is_learned"] = self._policies[slots] == LEARNING
        copied = tuple([o.take(rows, axis=0) for o in observations])  # the environment may reuse its arrays
        segments = Segments(slots, begun, self._begin_versions[slots], copied, fields)
        self._segments.add(segments)
        self._slots.begun[slots] = self._slots.written[slots]
        self._begin_versions[slots] = self._version
        return segments

    def _follow_group(self, segments: Segments, decisions: DecisionSteps) -> None:
        """Add what the groups of these segments did, which have just ended. decisions: of agents that go on."""
        slots, owned, endings = segments.slots, self._slots, segments.fields["endings"]
        goes_on = (owned.state != VACANT) & (owned.written > self._episode_begun)  # of slot, in its episode
        groups = self._groups(slots)
        group_ended = (endings != CUT) & (groups >= 0)
        if group_ended.any():
            group_ended &= ~np.isin(groups, self._groups(goes_on.nonzero()[0]))
        if segments.group_returns is not None:
            counts = (groups >= 0) & (self._policies[slots] == LEARNING)
            self._finished_groups.add(groups[counts], group_ended[counts], segments.group_returns[counts])
        waiting = owned.find(decisions.agent_ids)
        goes_on[waiting] = False
        ids, rows = decisions.group_ids, np.arange(len(waiting))
        observed = Candidates(waiting, np.full(len(rows), -1) if ids is None else ids, decisions.observations, rows)
        ended = Candidates(slots, groups, segments.next_observations, np.arange(len(slots)), ended=True)
        others = self._at_last_action(goes_on.nonzero()[0])
        self._add_mates(segments, group_ended, [observed, others, ended])

    def _groups(self, slots: Int64) -> Int64:
        """The groups of the agents of these slots when they last acted."""
        assert self._columns.group_ids is not None
        return self._columns.group_ids[self._last_rows[slots]]

    def _at_last_action(self, slots: Int64) -> Candidates:
        """The agents of these slots with what they observed then."""
        return Candidates(slots, self._groups(slots), tuple(self._columns.observations), self._last_rows[slots])

    def _add_mates(self, segments: Segments, group_ended: Bool, candidates: Sequence[Candidates]) -> None:
        counts, segments.mates = find_mates(segments.slots, self._groups(segments.slots), group_ended, candidates)
        observed = np.full(len(counts), self._num_steps)
        segments.fields |= {"group_ended": group_ended, "next_mate_counts": counts, "next_step_numbers": observed}

    def _slots_of(self, agent_ids: Int64) -> Int64:
        """The slots of these agents; an environment whose population is unchanged returns the same array of ids."""
        if agent_ids is self._last_ids:
            return self._last_slots
        slots = self._slots.find(agent_ids)
        is_new = slots == NO_AGENT
        if is_new.any():
            self._slots.state[slots[~is_new]] = ACTIVE  # these must not go to newcomers
            slots[is_new] = self._admit(agent_ids[is_new])
        self._last_ids, self._last_slots = agent_ids, slots
        return slots

    def _admit(self, newcomers: Int64) -> Int64:
        slots, released = self._slots.admit(newcomers)
        if (added := len(self._slots) - len(self._returns)) > 0:
            self._columns.grow(added)
            self._memories, self._returns = longer(self._memories, added), longer(self._returns, added)
            self._group_returns = longer(self._group_returns, added)
            self._last_rows = longer(self._last_rows, added)
            self._episode_begun = longer(self._episode_begun, added)
            self._begin_versions = longer(self._begin_versions, added)
            self._policies, self._policy_begun = longer(self._policies, added), longer(self._policy_begun, added)
            self.pending_cut.grow(added)
        self._clear(released)
        self._begin_versions[released] = self._begin_versions[slots] = self._version
        return slots

    def _clear(self, slots: Int64) -> None:
        """The next episodes of these slots begin at zero."""
        self._returns[slots] = self._group_returns[slots] = 0
        self._episode_begun[slots] = self._slots.written[slots]
        self._memories[slots] = 0
