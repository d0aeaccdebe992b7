"""Agent steps become packed pieces of experience, with a fixed number of numpy calls per step.

Shapes: L slots (agents seen so far), N agents of one step. A slot owns `capacity` rows of flat columns, used as a
ring: rows from `emitted` to `begun` are whole pieces, rows from `begun` to `written` a piece in progress. All three
count rows since the slot exists; row r lies at slot * capacity + r % capacity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.specs import (
    BehaviorSpec,
    Choice,
    DecisionSteps,
    Ending,
    Int64,
    Observations,
    TerminalSteps,
    Trajectories,
)

FIRST_SLOTS = 64  # grows by doubling
Number = TypeVar("Number", bound=np.generic)
_NO_VERSION = 2**62  # newer than any


@dataclass(slots=True)
class _Pieces:
    """Pieces that ended in the same step: slots, their number of rows, why, and what was seen next."""

    slots: Int64
    lengths: Int64
    endings: NDArray[np.int8]
    next_observations: Observations


class Assembly:
    """The experience of one behavior's agents on its way to a `Trajectories` block. Owned by the collector's thread.

    Call `end` for terminal steps, then `observe` for decisions, then `act` with what the policy chose for them.
    """

    def __init__(self, spec: BehaviorSpec, time_horizon: int):
        self._spec = spec
        self._horizon = time_horizon
        self._capacity = 2 * time_horizon
        self._num_slots = 0
        self._ids: Int64 = np.empty(0, np.int64)  # sorted ids of the agents seen so far
        self._slot_of_id: Int64 = np.empty(0, np.int64)
        self._seen: Int64 | None = None  # the last array of ids, and the slots it stands for
        self._seen_slots: Int64 = np.empty(0, np.int64)
        self._agent_ids: Int64 = np.empty(0, np.int64)  # of slot
        self._columns: dict[str, NDArray[np.generic]] = {}
        self._emitted: Int64 = np.zeros(0, np.int64)
        self._begun: Int64 = np.zeros(0, np.int64)
        self._written: Int64 = np.zeros(0, np.int64)
        self._returns: NDArray[np.float64] = np.zeros(0)
        self._episode_lengths: Int64 = np.zeros(0, np.int64)
        self._pieces: list[_Pieces] = []
        self._episodes: list[tuple[NDArray[np.float64], Int64]] = []
        self._fresh: list[tuple[NDArray[np.float64], Int64]] = []
        self._version = 0
        self._begin_versions: Int64 = np.zeros(
            0, np.int64
        )  # of slot: the policy that chose the first action of its piece
        self._oldest_version = _NO_VERSION
        self.num_complete = 0  # rows of whole pieces that `take` would give
        self._grow(FIRST_SLOTS)

    @property
    def is_full(self) -> bool:
        """Some slot has no room for another piece: `take` before the next step."""
        return bool(((self._begun - self._emitted)[: self._num_slots] >= self._horizon).any())

    def end(self, terminals: TerminalSteps) -> None:
        """Close the episodes of these agents. An agent that never acted in its episode leaves nothing."""
        slots = self._slots(terminals.agent_ids)
        acted = self._written[slots] > self._begun[slots]
        if acted.all():
            observations = terminals.observations
        else:
            slots, observations = slots[acted], tuple(o[acted] for o in terminals.observations)
        rewards, truncated = terminals.rewards[acted], terminals.truncated[acted]
        self._reward(slots, rewards)
        episodes = self._returns[slots], self._episode_lengths[slots]
        self._episodes.append(episodes)
        self._fresh.append(episodes)
        self._returns[slots] = 0
        self._episode_lengths[slots] = 0
        endings = np.where(truncated, Ending.TRUNCATED, Ending.TERMINATED).astype(np.int8)
        self._complete(slots, endings, observations)

    def observe(self, decisions: DecisionSteps) -> None:
        """Credit these agents' last actions with what followed; cut the pieces that reach the horizon."""
        slots = self._slots(decisions.agent_ids)
        lengths = self._written[slots] - self._begun[slots]
        acted = lengths > 0
        if acted.all():
            self._reward(slots, decisions.rewards)
        elif acted.any():
            self._reward(slots[acted], decisions.rewards[acted])
        full = lengths >= self._horizon
        if full.any():
            endings = np.full(int(full.sum()), Ending.CUT, np.int8)
            self._complete(slots[full], endings, tuple(o[full] for o in decisions.observations))

    def follow(self, version: int) -> None:
        """Actions come from this version of the policy from now on."""
        self._version = version
        self._begin_versions[self._written == self._begun] = version

    def act(self, decisions: DecisionSteps, choice: Choice) -> None:
        """Write the rows of these decisions: what was seen, what was chosen."""
        slots = self._slots(decisions.agent_ids)
        rows = slots * self._capacity + self._written[slots] % self._capacity
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
        self._written[slots] += 1

    def take_fresh_episodes(self) -> tuple[NDArray[np.float64], Int64]:
        """Returns and lengths of the episodes that ended since the last call, for showing: `take` gives them too."""
        fresh = self._fresh
        self._fresh = []
        returns = np.concatenate([np.empty(0), *(r for r, _ in fresh)])
        return returns, np.concatenate([np.empty(0, np.int64), *(n for _, n in fresh)])

    def take(self) -> Trajectories:
        """Every whole piece, packed by agent and in time order; at least one row must be complete."""
        pieces = self._pieces
        slots = np.concatenate([p.slots for p in pieces])
        order = np.argsort(slots, kind="stable")  # pieces were noted in time order
        slots = slots[order]
        lengths = np.concatenate([p.lengths for p in pieces])[order]
        rows = self._rows(slots, lengths)
        columns = {name: column[rows] for name, column in self._columns.items()}
        observations = tuple(columns[f"observation.{i}"] for i in range(len(self._spec.observations)))
        following = zip(*(p.next_observations for p in pieces), strict=True)
        returns = [r for r, _ in self._episodes]
        episode_lengths = [n for _, n in self._episodes]
        block = Trajectories(
            observations=observations,  # type: ignore[arg-type]  # float32 columns, see _grow
            continuous_actions=columns["continuous"],  # type: ignore[arg-type]  # float32
            discrete_actions=columns["discrete"],  # type: ignore[arg-type]  # int64
            log_probs=columns["log_probs"],  # type: ignore[arg-type]  # float32
            action_mask=columns.get("mask"),  # type: ignore[arg-type]  # bool
            rewards=columns["rewards"],  # type: ignore[arg-type]  # float32
            lengths=lengths,
            endings=np.concatenate([p.endings for p in pieces])[order],
            next_observations=tuple(np.concatenate(parts)[order] for parts in following),
            agent_ids=self._agent_ids[slots],
            episode_returns=np.concatenate([np.empty(0), *returns]).astype(np.float32),
            episode_lengths=np.concatenate([np.empty(0, np.int64), *episode_lengths]),
            policy_version=self._oldest_version,
        )
        self._emitted[: self._num_slots] = self._begun[: self._num_slots]
        self._pieces, self._episodes, self.num_complete, self._oldest_version = [], [], 0, _NO_VERSION
        return block

    def _rows(self, slots: Int64, lengths: Int64) -> Int64:
        """Where the rows of these pieces lie; pieces are in slot order, and follow each other from `emitted` on."""
        ends = np.cumsum(lengths)
        starts = ends - lengths
        within = np.arange(ends[-1]) - np.repeat(starts, lengths)
        first = np.flatnonzero(np.concatenate([[True], slots[1:] != slots[:-1]]))  # first piece of each slot
        before = starts - np.repeat(
            starts[first], np.diff(first, append=len(slots))
        )  # rows of earlier pieces of the slot
        offset = np.repeat(self._emitted[slots] + before, lengths) + within
        rows: Int64 = np.repeat(slots * self._capacity, lengths) + offset % self._capacity
        return rows

    def _reward(self, slots: Int64, rewards: NDArray[np.float32]) -> None:
        rows = slots * self._capacity + (self._written[slots] - 1) % self._capacity
        self._columns["rewards"][rows] = rewards
        self._returns[slots] += rewards
        self._episode_lengths[slots] += 1

    def _complete(self, slots: Int64, endings: NDArray[np.int8], observations: Observations) -> None:
        lengths = self._written[slots] - self._begun[slots]
        self._begun[slots] = self._written[slots]
        self._oldest_version = min(self._oldest_version, int(self._begin_versions[slots].min(initial=_NO_VERSION)))
        self._begin_versions[slots] = self._version
        copied = tuple(np.array(o, np.float32) for o in observations)  # the environment may reuse its arrays
        self._pieces.append(_Pieces(slots, lengths, endings, copied))
        self.num_complete += int(lengths.sum())

    def _slots(self, agent_ids: Int64) -> Int64:
        """The slots of these agents; an environment whose population is unchanged returns the same array of ids."""
        if agent_ids is self._seen:
            return self._seen_slots
        known = np.searchsorted(self._ids, agent_ids)
        inside = np.minimum(known, max(0, len(self._ids) - 1))
        is_new = np.ones(len(agent_ids), np.bool_) if not len(self._ids) else self._ids[inside] != agent_ids
        if is_new.any():
            self._admit(agent_ids[is_new])
            known = np.searchsorted(self._ids, agent_ids)
        self._seen, self._seen_slots = agent_ids, self._slot_of_id[known]
        return self._seen_slots

    def _admit(self, new: Int64) -> None:
        slots = np.arange(self._num_slots, self._num_slots + len(new))
        self._num_slots += len(new)
        while self._num_slots > len(self._written):
            self._grow(2 * len(self._written))
        self._agent_ids[slots] = new
        self._begin_versions[slots] = self._version
        ids, owners = np.concatenate([self._ids, new]), np.concatenate([self._slot_of_id, slots])
        order = np.argsort(ids, kind="stable")
        self._ids, self._slot_of_id = ids[order], owners[order]

    def _grow(self, num_slots: int) -> None:
        """Room for `num_slots` agents; what is written stays where it is."""
        rows, actions = num_slots * self._capacity, self._spec.actions
        shapes: dict[str, tuple[tuple[int, ...], type[np.generic]]] = {
            f"observation.{i}": (o.shape, np.float32) for i, o in enumerate(self._spec.observations)
        }
        shapes |= {
            "continuous": ((actions.continuous,), np.float32),
            "discrete": ((len(actions.branches),), np.int64),
            "log_probs": ((actions.num_columns,), np.float32),
            "rewards": ((), np.float32),
        }
        if "mask" in self._columns:
            shapes["mask"] = ((actions.mask_size,), np.bool_)
        for name, (shape, dtype) in shapes.items():
            self._columns[name] = _extended(self._columns.get(name), (rows, *shape), dtype)
        self._agent_ids = _extended(self._agent_ids, (num_slots,), np.int64)
        self._emitted = _extended(self._emitted, (num_slots,), np.int64)
        self._begun = _extended(self._begun, (num_slots,), np.int64)
        self._written = _extended(self._written, (num_slots,), np.int64)
        self._begin_versions = _extended(self._begin_versions, (num_slots,), np.int64)
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
