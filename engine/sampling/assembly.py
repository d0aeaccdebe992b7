"""Agent steps become packed segments of experience, with a fixed number of numpy calls per step.

Shapes: L slots (agents that live or have something to hand over), N agents of one step. A slot owns `capacity` rows of
flat columns, used as a ring: rows from `emitted` to `begun` are whole segments, rows from `begun` to `written` an
unfinished one. All three count rows since the slot exists; row r lies at slot * capacity + r % capacity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.slots import NOBODY, Slots
from rl_tui.engine.specs import (
    BehaviorSpec,
    Bool,
    Choice,
    DecisionSteps,
    Ending,
    Float32,
    Int64,
    Measured,
    Observations,
    TerminalSteps,
    Trajectories,
    add_up,
)

MIN_ROWS = 16  # of whole segments that a slot holds: short segments need not leave one by one
Number = TypeVar("Number", bound=np.generic)
_NO_VERSION = 2**62  # newer than any
_ACTIVE, _SILENT, _VACANT = np.arange(3, dtype=np.int8)  # of slot: an episode goes on, or so it seems, or none does


@dataclass(slots=True)
class _Segments:
    """Segments that ended in the same step: slots, their number of rows, why, what was seen next, what was allowed then
    (None: everything, or nobody knows)."""

    slots: Int64
    lengths: Int64
    endings: NDArray[np.int8]
    next_observations: Observations
    next_mask: Bool | None


class Assembly:
    """The experience of one behavior's agents on its way to a `Trajectories` block. Owned by the collector's thread.

    Call `end` for terminal steps, then `observe` for decisions, then `act` with what the policy chose for them. The
    slot of an agent whose episode is over goes to the next newcomer: environments may number every episode anew. A
    silent agent's does where there is no other room.
    """

    def __init__(self, spec: BehaviorSpec, time_horizon: int, memory_size: int = 0):
        """memory_size: M, how much the policy remembers of each agent."""
        self._spec = spec
        self._has_memory = memory_size > 0
        self._horizon = time_horizon
        self._cut_at = time_horizon  # rows, at which a segment ends
        self._capacity = time_horizon + max(time_horizon, MIN_ROWS)
        self._owners = Slots()
        self._seen: Int64 | None = None  # the last array of ids, and the slots it stands for
        self._seen_slots: Int64 = np.empty(0, np.int64)
        self._columns: dict[str, NDArray[np.generic]] = {}
        self._memories: Float32 = np.zeros((0, memory_size), np.float32)  # of slot, zero where an episode begins
        self._emitted: Int64 = np.zeros(0, np.int64)
        self._begun: Int64 = np.zeros(0, np.int64)
        self._written: Int64 = np.zeros(0, np.int64)
        self._state: NDArray[np.int8] = np.zeros(0, np.int8)  # of slot
        self._returns: NDArray[np.float64] = np.zeros(0)
        self._episode_lengths: Int64 = np.zeros(0, np.int64)
        self._begin_versions: Int64 = np.zeros(0, np.int64)  # of slot: the policy that began its segment
        self._written_before: Int64 = np.zeros(0, np.int64)  # when silent agents were last noted
        self._departed: list[Int64] = []
        self._segments: list[_Segments] = []
        self._episodes: list[tuple[NDArray[np.float64], Int64]] = []
        self._fresh: list[tuple[NDArray[np.float64], Int64]] = []
        self._measured: dict[str, tuple[float, int]] = {}
        self._version = 0
        self._oldest_version = _NO_VERSION
        self.num_complete = 0  # rows of whole segments that `take` would give
        self._grow(1)

    @property
    def is_full(self) -> bool:
        """Some slot has no room for another segment: `take` before the next step."""
        return bool((self._begun - self._emitted >= self._capacity - self._horizon).any())

    def measure(self, measured: Measured) -> None:
        """Keep what the environment reports beside rewards for the next block."""
        add_up(self._measured, measured)

    def end(self, terminals: TerminalSteps) -> None:
        """Close the episodes of these agents. An agent that never acted in its episode leaves nothing."""
        slots = self._slots(terminals.agent_ids)
        self._state[slots] = _VACANT
        acted = (self._written[slots] > self._begun[slots]).nonzero()[0]
        slots = slots[acted]
        self._reward(slots, terminals.rewards[acted])
        episodes = self._returns[slots], self._episode_lengths[slots]
        self._episodes.append(episodes)
        self._fresh.append(episodes)
        self._returns[slots] = 0
        self._episode_lengths[slots] = 0
        self._memories[slots] = 0
        endings = np.where(terminals.truncated[acted], Ending.TRUNCATED, Ending.TERMINATED).astype(np.int8)
        self._complete(slots, endings, terminals.observations, acted)

    def observe(self, decisions: DecisionSteps) -> None:
        """Credit these agents' last actions with what followed; cut the segments that are long enough."""
        slots = self._slots(decisions.agent_ids)
        self._state[slots] = _ACTIVE
        lengths = self._written[slots] - self._begun[slots]
        acted = lengths.nonzero()[0]
        if len(acted) == len(slots):
            self._reward(slots, decisions.rewards)
        elif len(acted):
            self._reward(slots[acted], decisions.rewards[acted])
        full = (lengths >= self._cut_at).nonzero()[0]
        if len(full):
            cut = np.full(len(full), Ending.CUT, np.int8)
            self._complete(slots[full], cut, decisions.observations, full, decisions.action_mask)

    @property
    def num_held(self) -> int:
        """Rows that were written and not yet taken."""
        return int((self._written - self._emitted).sum())

    def cut(self, at_once: bool) -> None:
        """From now on, cut segments where their agents are next observed, or again at the horizon."""
        self._cut_at = 1 if at_once else self._horizon

    def follow(self, version: int) -> None:
        """Actions come from this version of the policy from now on."""
        self._version = version
        self._begin_versions[self._written == self._begun] = version

    def memories(self, decisions: DecisionSteps) -> Float32 | None:
        """f32[N, M], a copy: what the policy remembers of these agents. None for a policy without memory."""
        return self._memories[self._slots(decisions.agent_ids)] if self._has_memory else None

    def act(self, decisions: DecisionSteps, choice: Choice) -> None:
        """Write the rows of these decisions: what was seen and remembered, what was chosen."""
        slots = self._slots(decisions.agent_ids)
        written = self._written[slots]
        rows = slots * self._capacity + written % self._capacity
        columns = self._columns
        for index, observation in enumerate(decisions.observations):
            columns[f"observation.{index}"][rows] = observation
        if self._spec.actions.continuous:
            columns["continuous"][rows] = choice.continuous
        if self._spec.actions.branches:
            columns["discrete"][rows] = choice.actions.discrete
            if decisions.action_mask is not None:
                self._mask()[rows] = decisions.action_mask
            elif "mask" in columns:
                columns["mask"][rows] = True
        columns["log_probs"][rows] = choice.log_probs
        if self._has_memory:
            assert choice.memories is not None
            columns["memories"][rows] = self._memories[slots]
            self._memories[slots] = choice.memories
        self._written[slots] = written + 1

    def note_silent(self) -> None:
        """Agents that chose no action since the last call may have left: newcomers for whom there is no room may have
        their slots, until they are heard of again. Call it between `act` and the next step."""
        self._state[(self._state == _ACTIVE) & (self._written == self._written_before)] = _SILENT
        self._written_before = self._written.copy()

    def take_fresh_episodes(self) -> tuple[NDArray[np.float64], Int64]:
        """Returns and lengths of the episodes that ended since the last call, for showing: `take` gives them too."""
        fresh = self._fresh
        self._fresh = []
        returns = np.concatenate([np.empty(0), *(r for r, _ in fresh)])
        return returns, np.concatenate([np.empty(0, np.int64), *(n for _, n in fresh)])

    def take(self) -> Trajectories:
        """Every whole segment, packed by agent and in time order; at least one row must be complete."""
        segments = self._segments
        slots = np.concatenate([p.slots for p in segments])
        order = slots.argsort(kind="stable")  # segments were noted in time order
        rows = self._whole_rows()
        columns = {name: column.take(rows, axis=0) for name, column in self._columns.items()}
        following = zip(*(p.next_observations for p in segments), strict=True)
        returns = [r for r, _ in self._episodes]
        episode_lengths = [n for _, n in self._episodes]
        block = Trajectories(
            observations=tuple([columns[f"observation.{i}"] for i in range(len(self._spec.observations))]),
            continuous_actions=columns["continuous"],  # type: ignore[arg-type]  # float32
            discrete_actions=columns["discrete"],  # type: ignore[arg-type]  # int64
            log_probs=columns["log_probs"],  # type: ignore[arg-type]  # float32
            action_mask=columns.get("mask"),  # type: ignore[arg-type]  # bool
            rewards=columns["rewards"],  # type: ignore[arg-type]  # float32
            lengths=np.concatenate([p.lengths for p in segments])[order],
            endings=np.concatenate([p.endings for p in segments])[order],
            next_observations=tuple([np.concatenate(parts)[order] for parts in following]),
            agent_ids=self._owners.agent_ids[slots[order]],
            episode_returns=np.concatenate([np.empty(0), *returns]).astype(np.float32),
            episode_lengths=np.concatenate([np.empty(0, np.int64), *episode_lengths]),
            policy_version=self._oldest_version,
            memories=columns.get("memories"),  # type: ignore[arg-type]  # float32
            next_action_mask=self._next_mask(order),
            measured=self._measured,
            departed=np.concatenate([np.empty(0, np.int64), *self._departed]),
        )
        self._emitted[:] = self._begun
        self._segments, self._episodes, self._departed, self._measured = [], [], [], {}
        self.num_complete, self._oldest_version = 0, _NO_VERSION
        return block

    def _next_mask(self, order: Int64) -> Bool | None:
        """What was allowed after each whole segment, in that order."""
        if all(segments.next_mask is None for segments in self._segments):
            return None
        size = self._spec.actions.mask_size
        masks = [
            np.ones((len(p.slots), size), np.bool_) if p.next_mask is None else p.next_mask for p in self._segments
        ]
        ordered: Bool = np.concatenate(masks)[order]
        return ordered

    def _whole_rows(self) -> Int64:
        """Where the rows of all whole segments lie, slot after slot and in time order."""
        counts = self._begun - self._emitted
        slots = counts.nonzero()[0]
        counts = counts[slots]
        skipped = self._emitted[slots] - (counts.cumsum() - counts)
        numbers = np.arange(counts.sum()) + skipped.repeat(counts)  # since the slot exists
        rows: Int64 = (slots * self._capacity).repeat(counts) + numbers % self._capacity
        return rows

    def _reward(self, slots: Int64, rewards: NDArray[np.float32]) -> None:
        rows = slots * self._capacity + (self._written[slots] - 1) % self._capacity
        self._columns["rewards"][rows] = rewards
        self._returns[slots] += rewards
        self._episode_lengths[slots] += 1

    def _complete(
        self,
        slots: Int64,
        endings: NDArray[np.int8],
        observations: Observations,
        rows: Int64,
        mask: Bool | None = None,
    ) -> None:
        """Segments of these slots end; next observations and masks are these rows of `observations` and `mask`."""
        lengths = self._written[slots] - self._begun[slots]
        self._begun[slots] = self._written[slots]
        self._oldest_version = min(self._oldest_version, int(self._begin_versions[slots].min(initial=_NO_VERSION)))
        self._begin_versions[slots] = self._version
        copied = tuple([o.take(rows, axis=0) for o in observations])  # the environment may reuse its arrays
        allowed = None if mask is None else mask.take(rows, axis=0)
        self._segments.append(_Segments(slots, lengths, endings, copied, allowed))
        self.num_complete += int(lengths.sum())

    def _slots(self, agent_ids: Int64) -> Int64:
        """The slots of these agents; an environment whose population is unchanged returns the same array of ids."""
        if agent_ids is self._seen:
            return self._seen_slots
        slots = self._owners.find(agent_ids)
        is_new = slots == NOBODY
        if is_new.any():
            self._state[slots[~is_new]] = _ACTIVE  # these are no newcomer's to take
            slots[is_new] = self._admit(agent_ids[is_new])
        self._seen, self._seen_slots = agent_ids, slots
        return slots

    def _admit(self, newcomers: Int64) -> Int64:
        """Slots for agents that have none: those where no episode goes on and nothing waits to be taken."""
        num_slots = len(self._written)
        free = self._free()
        if len(free) < len(newcomers):
            self._release_silent()
            free = self._free()
        if (missing := len(newcomers) - len(free)) > 0:
            self._grow(max(2 * num_slots, num_slots + missing))
            free = np.append(free, np.arange(num_slots, len(self._written)))
        slots: Int64 = free[: len(newcomers)]
        self._owners.give(slots, newcomers)
        self._begin_versions[slots] = self._version
        return slots

    def _free(self) -> Int64:
        slots: Int64 = ((self._state == _VACANT) & (self._written == self._emitted)).nonzero()[0]
        return slots

    def _release_silent(self) -> None:
        """Silent agents have left: what they had not finished is dropped. One that comes back begins anew."""
        slots = (self._state == _SILENT).nonzero()[0]
        self._departed.append(self._owners.agent_ids[slots])
        self._state[slots] = _VACANT
        self._written[slots] = self._begun[slots]
        self._begin_versions[slots] = self._version
        self._returns[slots] = 0
        self._episode_lengths[slots] = 0
        self._memories[slots] = 0

    def _grow(self, num_slots: int) -> None:
        """Room for `num_slots` agents; what is written stays where it is."""
        rows, actions = num_slots * self._capacity, self._spec.actions
        shapes: dict[str, tuple[tuple[int, ...], type[np.generic]]] = {
            f"observation.{i}": (o.shape, np.dtype(o.dtype).type) for i, o in enumerate(self._spec.observations)
        }
        shapes |= {
            "continuous": ((actions.continuous,), np.float32),
            "discrete": ((len(actions.branches),), np.int64),
            "log_probs": ((actions.num_columns,), np.float32),
            "rewards": ((), np.float32),
        }
        if self._has_memory:
            shapes["memories"] = (self._memories.shape[1:], np.float32)
        if "mask" in self._columns:
            shapes["mask"] = ((actions.mask_size,), np.bool_)
        for name, (shape, dtype) in shapes.items():
            self._columns[name] = _extended(self._columns.get(name), (rows, *shape), dtype)
        self._owners.grow(num_slots)
        state = np.full(num_slots, _VACANT)
        state[: len(self._state)] = self._state
        self._state = state
        self._emitted = _extended(self._emitted, (num_slots,), np.int64)
        self._begun = _extended(self._begun, (num_slots,), np.int64)
        self._written = _extended(self._written, (num_slots,), np.int64)
        self._written_before = _extended(self._written_before, (num_slots,), np.int64)
        self._begin_versions = _extended(self._begin_versions, (num_slots,), np.int64)
        self._memories = _extended(self._memories, (num_slots, *self._memories.shape[1:]), np.float32)
        self._returns = _extended(self._returns, (num_slots,), np.float64)
        self._episode_lengths = _extended(self._episode_lengths, (num_slots,), np.int64)

    def _mask(self) -> NDArray[np.generic]:
        """The column of action masks, made when the first mask appears; rows before it allowed everything."""
        if "mask" not in self._columns:
            shape = (len(self._columns["rewards"]), self._spec.actions.mask_size)
            self._columns["mask"] = np.ones(shape, np.bool_)
        return self._columns["mask"]


def _extended(old: NDArray[Number] | None, shape: tuple[int, ...], dtype: type[Number]) -> NDArray[Number]:
    """A zeroed array of that shape that begins with `old`."""
    new = np.zeros(shape, dtype)
    if old is not None:
        new[: len(old)] = old
    return new
