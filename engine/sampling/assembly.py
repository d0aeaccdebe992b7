"""From agent steps to packed segments of experience, with a fixed number of numpy calls per step.

Shapes: N agents of one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.slots import ACTIVE, NO_AGENT, VACANT, Slots
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

MIN_ROWS = 16  # of whole segments that a slot has room for: short segments need not leave one by one
_NO_VERSION = 2**62  # newer than any
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(slots=True)
class _Segments:
    """Segments that ended in the same step: their slots and numbers of rows, why they ended, what was observed next,
    and what was allowed then (None: everything, or it is not known)."""

    slots: Int64
    lengths: Int64
    endings: NDArray[np.int8]
    next_observations: Observations
    next_mask: Bool | None


class Assembly:
    """The experience of one behavior's agents on its way to a `Trajectories` block. Owned by the collector's thread.

    Call `end` for terminal steps, then `observe` for decisions, then `act` with what the policy chose for them. When
    an agent's episode is over, the next newcomer takes its slot: environments may number every episode from scratch.
    A silent agent loses its slot only when there is no other room.
    """

    def __init__(self, spec: BehaviorSpec, time_horizon: int, memory_size: int = 0):
        """memory_size: M, how much the policy remembers of each agent."""
        self._spec = spec
        self._has_memory = memory_size > 0
        self._horizon = time_horizon
        self._cut_at = time_horizon  # rows, at which a segment ends
        self._capacity = time_horizon + max(time_horizon, MIN_ROWS)
        self._slots = Slots(self._capacity)
        self._last_ids: Int64 | None = None  # the last array of ids, and their slots
        self._last_slots: Int64 = np.empty(0, np.int64)
        self._memories: Float32 = np.zeros((1, memory_size), np.float32)  # of slot, zero where an episode begins
        self._columns = self._new_columns()
        self._returns: NDArray[np.float64] = np.zeros(1)  # of slot, as the next two
        self._episode_lengths: Int64 = np.zeros(1, np.int64)
        self._begin_versions: Int64 = np.zeros(1, np.int64)  # of the policy that began its segment
        self._segments: list[_Segments] = []
        self._episodes: list[tuple[NDArray[np.float64], Int64]] = []
        self._new_episodes: list[tuple[NDArray[np.float64], Int64]] = []
        self._measured: dict[str, tuple[float, int]] = {}
        self._version = 0
        self._oldest_version = _NO_VERSION
        self.num_complete = 0  # rows of whole segments that `drain` would give

    @property
    def is_full(self) -> bool:
        """Some slot has no room for another segment: `drain` before the next step."""
        return bool((self._slots.begun - self._slots.emitted >= self._capacity - self._horizon).any())

    @property
    def num_held(self) -> int:
        """Rows that were written and not yet drained."""
        return int((self._slots.written - self._slots.emitted).sum())

    def measure(self, measured: Measured) -> None:
        """Add what the environment reports besides rewards to the next block."""
        add_up(self._measured, measured)

    def end(self, terminals: TerminalSteps) -> None:
        """Close the episodes of these agents. An agent that never acted in its episode leaves nothing."""
        slots = self._slots_of(terminals.agent_ids)
        self._slots.state[slots] = VACANT
        acted = (self._slots.written[slots] > self._slots.begun[slots]).nonzero()[0]
        slots = slots[acted]
        self._reward(slots, terminals.rewards[acted])
        episodes = self._returns[slots], self._episode_lengths[slots]
        self._episodes.append(episodes)
        self._new_episodes.append(episodes)
        self._clear(slots)
        endings = np.where(terminals.truncated[acted], Ending.TRUNCATED, Ending.TERMINATED).astype(np.int8)
        self._complete(slots, endings, terminals.observations, acted)

    def observe(self, decisions: DecisionSteps) -> None:
        """Credit these agents' last actions with what followed; cut the segments that are long enough."""
        slots, owned = self._slots_of(decisions.agent_ids), self._slots
        owned.state[slots] = ACTIVE
        lengths = owned.written[slots] - owned.begun[slots]
        acted = lengths.nonzero()[0]
        if len(acted) == len(slots):
            self._reward(slots, decisions.rewards)
        elif len(acted):
            self._reward(slots[acted], decisions.rewards[acted])
        full = (lengths >= self._cut_at).nonzero()[0]
        if len(full):
            cut = np.full(len(full), Ending.CUT, np.int8)
            self._complete(slots[full], cut, decisions.observations, full, decisions.action_mask)

    def cut(self, at_once: bool) -> None:
        """From now on, cut segments where their agents are next observed, or again at the horizon."""
        self._cut_at = 1 if at_once else self._horizon

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
        written = self._slots.written[slots]
        rows = self._slots.rows(slots, written)
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
        self._slots.written[slots] = written + 1

    def mark_silent(self) -> None:
        """Agents that chose no action since the last call may have left: until they are heard of again, newcomers may
        take their slots where there is no other room. Call it between `act` and the next step."""
        self._slots.mark_silent()

    def drain_new_episodes(self) -> tuple[NDArray[np.float64], Int64]:
        """Returns and lengths of the episodes that ended since the last call, for display: `drain` gives them too."""
        new, self._new_episodes = self._new_episodes, []
        returns = np.concatenate([np.empty(0), *(r for r, _ in new)])
        return returns, np.concatenate([np.empty(0, np.int64), *(n for _, n in new)])

    def drain(self) -> Trajectories:
        """Every whole segment, packed by agent and in time order; at least one row must be complete."""
        segments = self._segments
        slots = np.concatenate([s.slots for s in segments])
        order = slots.argsort(kind="stable")  # segments were added in time order
        rows = self._slots.whole_rows()
        columns = {name: column.take(rows, axis=0) for name, column in self._columns.items()}
        following = zip(*(s.next_observations for s in segments), strict=True)
        returns = [r for r, _ in self._episodes]
        episode_lengths = [n for _, n in self._episodes]
        block = Trajectories(
            observations=tuple([columns[f"observation.{i}"] for i in range(len(self._spec.observations))]),
            continuous_actions=columns["continuous"],  # type: ignore[arg-type]  # float32
            discrete_actions=columns["discrete"],  # type: ignore[arg-type]  # int64
            log_probs=columns["log_probs"],  # type: ignore[arg-type]  # float32
            action_mask=columns.get("mask"),  # type: ignore[arg-type]  # bool
            rewards=columns["rewards"],  # type: ignore[arg-type]  # float32
            lengths=np.concatenate([s.lengths for s in segments])[order],
            endings=np.concatenate([s.endings for s in segments])[order],
            next_observations=tuple([np.concatenate(parts)[order] for parts in following]),
            agent_ids=self._slots.agent_ids[slots[order]],
            episode_returns=np.concatenate([np.empty(0), *returns]).astype(np.float32),
            episode_lengths=np.concatenate([np.empty(0, np.int64), *episode_lengths]),
            policy_version=self._oldest_version,
            memories=columns.get("memories"),  # type: ignore[arg-type]  # float32
            next_action_mask=self._next_mask(order),
            measured=self._measured,
            departed=np.concatenate([np.empty(0, np.int64), *self._slots.departed]),
        )
        self._slots.emitted[:] = self._slots.begun
        self._segments, self._episodes, self._slots.departed, self._measured = [], [], [], {}
        self.num_complete, self._oldest_version = 0, _NO_VERSION
        return block

    def _next_mask(self, order: Int64) -> Bool | None:
        """What was allowed after each whole segment, in that order."""
        if all(segments.next_mask is None for segments in self._segments):
            return None
        size = self._spec.actions.mask_size
        masks = [
            np.ones((len(s.slots), size), np.bool_) if s.next_mask is None else s.next_mask for s in self._segments
        ]
        ordered: Bool = np.concatenate(masks)[order]
        return ordered

    def _reward(self, slots: Int64, rewards: NDArray[np.float32]) -> None:
        self._columns["rewards"][self._slots.rows(slots, self._slots.written[slots] - 1)] = rewards
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
        """End the segments of these slots; what was observed next, and allowed, is in these rows of the arrays."""
        lengths = self._slots.written[slots] - self._slots.begun[slots]
        self._slots.begun[slots] = self._slots.written[slots]
        self._oldest_version = min(self._oldest_version, int(self._begin_versions[slots].min(initial=_NO_VERSION)))
        self._begin_versions[slots] = self._version
        copied = tuple([o.take(rows, axis=0) for o in observations])  # the environment may reuse its arrays
        allowed = None if mask is None else mask.take(rows, axis=0)
        self._segments.append(_Segments(slots, lengths, endings, copied, allowed))
        self.num_complete += int(lengths.sum())

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
            self._columns = {name: _longer(column, added * self._capacity) for name, column in self._columns.items()}
            self._memories, self._returns = _longer(self._memories, added), _longer(self._returns, added)
            self._episode_lengths = _longer(self._episode_lengths, added)
            self._begin_versions = _longer(self._begin_versions, added)
        self._clear(released)
        self._begin_versions[released] = self._begin_versions[slots] = self._version
        return slots

    def _clear(self, slots: Int64) -> None:
        """The next episodes of these slots begin at zero."""
        self._returns[slots] = 0
        self._episode_lengths[slots] = 0
        self._memories[slots] = 0

    def _new_columns(self) -> dict[str, NDArray[np.generic]]:
        """Room for one slot's rows."""
        rows, actions = self._capacity, self._spec.actions
        columns: dict[str, NDArray[np.generic]] = {
            f"observation.{i}": np.zeros((rows, *o.shape), o.dtype) for i, o in enumerate(self._spec.observations)
        }
        columns["continuous"] = np.zeros((rows, actions.continuous), np.float32)
        columns["discrete"] = np.zeros((rows, len(actions.branches)), np.int64)
        columns["log_probs"] = np.zeros((rows, actions.num_columns), np.float32)
        columns["rewards"] = np.zeros(rows, np.float32)
        if self._has_memory:
            columns["memories"] = np.zeros((rows, self._memories.shape[1]), np.float32)
        return columns

    def _mask(self) -> NDArray[np.generic]:
        """The column of action masks, made when the first mask appears; rows before it allowed everything."""
        if "mask" not in self._columns:
            shape = (len(self._columns["rewards"]), self._spec.actions.mask_size)
            self._columns["mask"] = np.ones(shape, np.bool_)
        return self._columns["mask"]


def _longer(column: NDArray[Scalar], added: int) -> NDArray[Scalar]:
    """The column and so many rows of zeros."""
    longer: NDArray[Scalar] = np.append(column, np.zeros((added, *column.shape[1:]), column.dtype), axis=0)
    return longer
