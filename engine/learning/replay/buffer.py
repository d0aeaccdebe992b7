"""The replay buffer.  Shapes: N steps in P segments of a block, B rows drawn, Q sequences, S reward streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.experience import Column
from rl_tui.engine.learning.replay.layout import ReplayLayout, require_fit, stored_name
from rl_tui.engine.learning.replay.priorities import Priorities
from rl_tui.engine.learning.replay.ring import BlockRows, Ring
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import TRUNCATED, Bool, Float32, Int64, Json, Observations, State, Trajectories


@dataclass(frozen=True, slots=True, kw_only=True)
class Minibatch(Transitions):
    """B steps drawn from a replay buffer: copies, which the buffer does not write again.

    What comes next is what comes after n steps, or after the segment's last one. Without memory each is drawn
    independently. With memory they are Q sequences of adjacent steps, packed, each in time order. Besides the columns
    of Transitions there are these, S = reward signals:

    rows: i64[B], in the buffer, for `ReplayBuffer.update_priorities`
    next_mask_is_known: bool[B], False after a truncation, where only the observation is known
    rewards: f32[B, S], the discounted sum over the n steps, or over fewer up to the segment's end
    discounts: f32[B, S], gamma to the number of steps summed
    weights: f32[B], importance weights, at most 1; 1 where all are drawn uniformly
    next_action_mask: bool[B, sum of branches], of the next observations
    lengths: i64[Q] of the sequences, None without memory
    memories: f32[Q, M], the policy's memory before each sequence
    value_memories: f32[Q, V], the critic's; None without such a column
    """

    rows: Int64
    next_mask_is_known: Bool
    rewards: Float32
    discounts: Float32
    weights: Float32
    next_action_mask: Bool | None = None
    lengths: Int64 | None = None
    memories: Float32 | None = None
    value_memories: Float32 | None = None


class ReplayBuffer:
    """The newest steps of a behavior, in columns of a fixed number of rows; the oldest are overwritten.

    Used by one thread. Its arrays are reserved at once and committed by the system as it fills, up to `layout.bytes`.
    """

    def __init__(self, layout: ReplayLayout, reevaluate: Callable[[Transitions, Float32], Float32] | None = None):
        """reevaluate: the rewards of steps when they are drawn, given those that were stored, both f32[B, S]."""
        self.layout = layout
        self._reevaluate = reevaluate
        self.num_added = 0  # steps ever added, over all resumes, on all ranks
        self._columns: dict[str, NDArray[Any]] = {
            name: np.zeros((layout.num_rows, *shape), dtype) for name, (shape, dtype) in layout.columns.items()
        }
        self._ring = Ring(self._columns, layout.sequence_length)
        self._priorities = None if layout.alpha is None else Priorities(layout.num_rows, layout.alpha)
        self._present: set[str] = set()  # optional columns that some block had

    @property
    def num_steps(self) -> int:
        """Steps that can be drawn: 0 while the beginning of every sequence is overwritten."""
        return self._ring.num_steps if self._ring.num_sequences else 0

    @property
    def is_full(self) -> bool:
        """Whether every row is in use; with short segments there are fewer than `capacity` steps then."""
        return self._ring.num_used == self._ring.num_rows

    def add(
        self,
        block: Trajectories,
        rewards: Float32,
        value_memories: Float32 | None = None,
        num_added: int | None = None,
    ) -> None:
        """Add a block with its rewards f32[N, S] and, if the layout has them, the critic's memories f32[N, V].

        Of a block larger than the buffer only the newest part is kept. num_added: steps of all ranks, which add theirs
        at the same time; None for those of the block.
        """
        self.num_added += block.num_rows if num_added is None else num_added
        place = self._ring.add(block.lengths, block.endings, self.num_added)
        values: dict[str, NDArray[Any] | None] = {
            **{f"observation.{index}": observed for index, observed in enumerate(block.observations)},
            **{stored_name(column): getattr(block, column.name) for column in self.layout.required},
            "rewards": rewards,
            "memories": block.memories,
            "value_memories": value_memories,
        }
        for name, of_steps in values.items():
            assert (of_steps is not None) == (name in self._columns), (
                f"{name}: must be given if and only if the layout has it"
            )
            if of_steps is not None:
                self._columns[name][place.steps] = of_steps[place.first_step :]
        for index, observed in enumerate(block.next_observations):
            self._columns[f"observation.{index}"][place.closings] = observed[place.first_segment :]
        self._add_optional(block, place)
        if self._priorities is not None:
            rows = np.concatenate([place.steps, place.closings])
            self._priorities[rows] = np.where(self._columns["remaining"].take(rows), self._priorities.largest, 0)

    def _add_optional(self, block: Trajectories, place: BlockRows) -> None:
        for column in self.layout.optional:
            of_steps = getattr(block, column.name)
            after = getattr(block, f"next_{column.name}") if column.has_next else None
            if of_steps is not None or after is not None:
                self._add_column(column)
            if column.name in self._present:
                stored = self._columns[stored_name(column)]
                stored[place.steps] = 0 if of_steps is None else _combined(of_steps[place.first_step :], column)
                stored[place.closings] = 0 if after is None else _combined(after[place.first_segment :], column)

    def _add_column(self, column: Column) -> None:
        """From now on, the buffer has this optional column."""
        self._present.add(column.name)
        if stored_name(column) not in self._columns:
            shape = self.layout.num_rows, *column.shape(self.layout.spec, 0)
            self._columns[stored_name(column)] = np.zeros(shape, column.dtype)

    def drop_newer(self, num_added: int) -> None:
        """Drop every block added after this `num_added`, and continue counting from it. What they overwrote is lost."""
        dropped = self._ring.drop_newer(num_added)
        if self._priorities is not None:
            self._priorities[dropped] = 0
        self.num_added = num_added

    def sample(
        self, count: int, random: np.random.Generator, n_step: int, gammas: Float32, beta: float = 0.0
    ) -> Minibatch:
        """`count` steps, drawn uniformly with replacement, or by their priorities where the layout has `alpha`.

        gammas: f32[S]. beta: how far importance weights correct for priorities, from 0 to 1. It must not be empty.
        """
        if self._priorities is None:
            rows, weights = self._ring.draw(count, random), np.ones(count, np.float32)
        else:
            rows = self._priorities.draw(count, random)
            weights = self._priorities.weights(rows, self._ring.num_steps, beta)
        return self._minibatch(rows, n_step, gammas, weights)

    def sample_sequences(self, count: int, random: np.random.Generator, gammas: Float32) -> Minibatch:
        """About `count` steps in whole sequences, drawn uniformly with replacement; n_step is 1.

        A sequence begins where the position in its segment is a multiple of `sequence_length`, and ends after that many
        steps or with its segment. gammas: f32[S]. The buffer must not be empty.
        """
        starts, lengths = self._ring.draw_sequences(count, random)
        before = np.cumsum(lengths) - lengths
        rows = (np.repeat(starts - before, lengths) + np.arange(lengths.sum())) % self._ring.num_rows
        return self._with_memories(self._minibatch(rows, 1, gammas, np.ones(len(rows), np.float32)), starts, lengths)

    def sample_transitions(self, count: int, random: np.random.Generator) -> Transitions:
        """`count` single steps, drawn uniformly with replacement. The buffer must not be empty."""
        return self._transitions(self._ring.draw(count, random))

    def all_steps(self, n_step: int, gammas: Float32) -> Minibatch:
        """Every step, oldest first; with memory in whole sequences, none of which may be partly overwritten."""
        rows = self._ring.steps()
        batch = self._minibatch(rows, n_step, gammas, np.ones(len(rows), np.float32))
        return self._with_memories(batch, *self._ring.sequences()) if self.layout.memory_size else batch

    def update_priorities(self, rows: Int64, errors: Float32) -> None:
        """Set the priorities of these rows by errors f32[B]; only with `alpha`, and before anything is added."""
        assert self._priorities is not None
        assert self._columns["remaining"].take(rows).all(), "these rows no longer hold steps"
        self._priorities.update(rows, errors)

    def state(self) -> State:
        """A copy of the contents."""
        rows = self._ring.in_use()
        tensors = {name: column.take(rows, 0) for name, column in self._columns.items()}
        largest = 1.0
        if self._priorities is not None:
            tensors["priorities"], largest = self._priorities[rows], self._priorities.largest
        values: dict[str, Json] = {"num_added": self.num_added, "end": self._ring.end, "largest_priority": largest}
        return State(tensors, values | {"has_masks": "action_mask" in self._present})

    def load(self, state: State) -> None:
        """Replace the contents by those of `state`, or their newest part if the buffer is smaller.

        `num_added` continues from the larger of both counts: what is added later is newer than what was loaded. Raises
        CheckpointError naming what does not fit, and changes nothing then.
        """
        require_fit(state, self.layout)
        tensors, values = cast(dict[str, NDArray[Any]], state.tensors), state.values
        before, skipped = self._ring.in_use(), max(0, len(tensors["remaining"]) - self._ring.num_rows)
        rows = self._ring.reset(int(cast(int, values["end"])), len(tensors["remaining"]) - skipped)
        self._load_present(state)
        for name, column in self._columns.items():
            column[rows] = tensors[name][skipped:]
        self._ring.count(rows)
        self.num_added = max(self.num_added, int(cast(int, values["num_added"])))
        if self._priorities is not None:
            self._priorities[before] = 0
            self._priorities.largest = float(cast(float, values["largest_priority"]))
            as_added = np.where(tensors["remaining"], self._priorities.largest, 0)
            self._priorities[rows] = tensors.get("priorities", as_added)[skipped:]

    def _load_present(self, state: State) -> None:
        """Have the optional columns that the state has, and no others."""
        for column in self.layout.optional:
            name = stored_name(column)
            if column.name == "action_mask":
                is_present = bool(state.values.get("has_masks"))
            else:
                self._columns.pop(name, None)
                is_present = name in state.tensors
            self._present.discard(column.name)
            if is_present:
                self._add_column(column)

    def _minibatch(self, rows: Int64, n_step: int, gammas: Float32, weights: Float32) -> Minibatch:
        powers = (gammas ** np.arange(n_step + 1)[:, None]).astype(np.float32)
        steps, next_rows, endings = self._ring.advance(rows, n_step)
        return Minibatch(
            rows=rows,
            next_mask_is_known=(endings != TRUNCATED) | ("action_mask" not in self._present),
            rewards=self._summed(rows, steps, powers),
            discounts=powers.take(steps, 0),
            weights=weights,
            **self._gather(rows, next_rows, endings),
            **self._optional(next_rows, "next_"),
        )

    def _transitions(self, rows: Int64) -> Transitions:
        _, next_rows, endings = self._ring.advance(rows, 1)
        return Transitions(**self._gather(rows, next_rows, endings))

    def _gather(self, rows: Int64, next_rows: Int64, endings: NDArray[np.int8]) -> dict[str, Any]:
        """The fields of `Transitions`."""
        return {
            "observations": self._observations(rows),
            "next_observations": self._observations(next_rows),
            "endings": endings,
            **{column.name: self._columns[stored_name(column)].take(rows, 0) for column in self.layout.required},
            **self._optional(rows),
        }

    def _with_memories(self, batch: Minibatch, starts: Int64, lengths: Int64) -> Minibatch:
        memories, value_memories = (self._columns.get(name) for name in ("memories", "value_memories"))
        return replace(
            batch,
            lengths=lengths,
            memories=None if memories is None else memories[starts],
            value_memories=None if value_memories is None else value_memories[starts],
        )

    def _observations(self, rows: Int64) -> Observations:
        return tuple(
            self._columns[f"observation.{index}"].take(rows, 0) for index in range(len(self.layout.spec.observations))
        )

    def _optional(self, rows: Int64, prefix: str = "") -> dict[str, Any]:
        """The optional columns in these rows, None where none ever appeared; with a prefix those kept of next rows."""
        values: dict[str, Any] = {}
        for column in self.layout.optional:
            if column.has_next or not prefix:
                stored = self._columns[stored_name(column)] if column.name in self._present else None
                values[prefix + column.name] = None if stored is None else _combined(stored.take(rows, 0), column)
        return values

    def _summed(self, rows: Int64, steps: Int64, powers: Float32) -> Float32:
        """f32[B, S]: the sum over this many steps from each row of rewards times powers of gamma, f32[n + 1, S]."""
        if len(powers) == 2:
            return self._rewards(rows)
        offsets = np.arange(len(powers) - 1)
        is_summed = offsets < steps[:, None]
        terms = np.zeros((*is_summed.shape, self.layout.num_streams), np.float32)
        terms[is_summed] = self._rewards(((rows[:, None] + offsets) % self._ring.num_rows)[is_summed])
        summed: Float32 = (terms * powers[:-1]).sum(1)
        return summed

    def _rewards(self, rows: Int64) -> Float32:
        """f32[B, S]: the rewards of the steps in these rows."""
        stored: Float32 = self._columns["rewards"].take(rows, 0)
        return stored if self._reevaluate is None else self._reevaluate(self._transitions(rows), stored)


def _combined(values: NDArray[Any], column: Column) -> NDArray[Any]:
    """From a column's values to what is stored, and back: zeros are stored for its `fill`."""
    if not column.fill:
        return values
    combined: NDArray[Any] = values ^ np.array(column.fill, column.dtype)
    return combined
