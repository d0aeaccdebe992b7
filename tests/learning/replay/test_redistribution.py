"""Replay buffers of several ranks as one, and one as several: every step is there once, with what came after it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.learning.replay.buffer import Minibatch, ReplayBuffer
from rl_tui.engine.learning.replay.layout import ReplayLayout, require_fit
from rl_tui.engine.learning.replay.redistribution import dealt_out, joined, require_divisible, slices
from rl_tui.engine.specs import Ending, State
from tests.learning.replay.numbered import block, layout, rewards

GAMMAS = np.array([0.9, 0.5], np.float32)
ROOM = 1000  # steps, in which everything fits

# By rank the segments that it adds in an update, possibly none.
Update = st.lists(st.lists(st.tuples(st.integers(1, 9), st.sampled_from(Ending)), max_size=3), min_size=3, max_size=3)
Kind = st.sampled_from(["plain", "prioritized", "with memory"])


def layout_of(kind: str, capacity: int) -> ReplayLayout:
    """With or without priorities or memory."""
    if kind == "with memory":
        return layout(capacity, memory_size=4, value_memory_size=1, sequence_length=3)
    return layout(capacity, alpha=0.6 if kind == "prioritized" else None)


def filled(
    kind: str, capacity: int, updates: list[list[list[tuple[int, Ending]]]], size: int, masked: int
) -> list[ReplayBuffer]:
    """The buffers of ranks after these updates, their rows numbered apart. masked: which has masks and teams."""
    buffers = [ReplayBuffer(layout_of(kind, capacity)) for _ in range(size)]
    first = 0
    for update in updates:
        num_added = sum(length for own in update[:size] for length, _ in own)
        for rank, (buffer, own) in enumerate(zip(buffers, update, strict=False)):
            if not own:
                buffer.num_added += num_added
                continue
            lengths, endings = [length for length, _ in own], [ending for _, ending in own]
            made = block(first, lengths, endings, rank == masked, kind == "with memory")
            if rank == masked:
                made = replace(made, team_ids=np.arange(made.num_rows) % 3)
            memories = np.repeat(made.observations[0][:, :1], 1, 1) if kind == "with memory" else None
            buffer.add(made, rewards(made), memories, num_added)
            first += 1000
    for rank, buffer in enumerate(buffers):
        if kind == "prioritized" and buffer.num_steps:
            batch = buffer.sample(8, np.random.default_rng(rank), 1, GAMMAS)
            buffer.update_priorities(batch.rows, (batch.observations[0][:, 0] % 7 + rank).astype(np.float32))
    return buffers


def steps(buffer: ReplayBuffer) -> list[tuple[object, ...]]:
    """All that is known of each step, by its number."""
    if not buffer.num_steps:
        return []
    plain = ReplayBuffer(replace(buffer.layout, memory_size=0, value_memory_size=0, sequence_length=1, alpha=None))
    state = buffer.state()
    kept = {name: column for name, column in state.tensors.items() if name in ("team_ids", *plain.layout.columns)}
    plain.load(State(kept, state.values))
    batch: Minibatch = plain.all_steps(3, GAMMAS)
    teams = np.zeros(batch.num_rows, int) if batch.team_ids is None else batch.team_ids
    count = batch.num_rows
    masks = [
        np.ones((count, 5), bool) if each is None else each for each in (batch.action_mask, batch.next_action_mask)
    ]
    rows = np.flatnonzero(state.tensors["remaining"])
    others = [
        state.tensors[name][rows] for name in ("position", "added", "priorities", "memories") if name in state.tensors
    ]
    columns = (
        batch.observations[0], batch.next_observations[0], batch.next_observations[1], batch.endings, batch.rewards,
        batch.discounts, batch.continuous_actions, batch.discrete_actions, teams, *masks, *others,
    )  # fmt: skip
    return sorted(tuple(np.ravel(column[row]).tolist() for column in columns) for row in range(count))


def loaded(kind: str, state: State) -> ReplayBuffer:
    """A buffer with room for all of it."""
    buffer = ReplayBuffer(layout_of(kind, ROOM))
    require_fit(state, buffer.layout)
    buffer.load(state)
    return buffer


def everything(buffers: list[ReplayBuffer]) -> list[tuple[object, ...]]:
    """The steps of all of them."""
    return sorted(step for buffer in buffers for step in steps(buffer))


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    kind=Kind,
    capacity=st.integers(3, 40),
    updates=st.lists(Update, min_size=1, max_size=5),
    size=st.integers(1, 3),
    shares=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    masked=st.integers(0, 4),
    slice_bytes=st.sampled_from([1, 500, 1 << 24]),
)
def test_every_step_is_there_once_whatever_the_numbers_of_ranks(
    kind: str,
    capacity: int,
    updates: list[list[list[tuple[int, Ending]]]],
    size: int,
    shares: list[int],
    masked: int,
    slice_bytes: int,
) -> None:
    """Also where a segment has lost its oldest steps, and where a rank has none at all."""
    buffers = filled(kind, capacity, updates, size, masked)
    expected = everything(buffers)
    whole = joined([own for buffer in buffers for own in slices(buffer.state(), slice_bytes)])
    as_one = loaded(kind, whole)
    assert steps(as_one) == expected
    assert as_one.num_added == buffers[0].num_added
    parts = [joined(list(slices(part, slice_bytes))) for part in dealt_out(deepcopy(whole), shares)]
    assert len(parts) == len(shares)
    others = [loaded(kind, part) for part in parts]
    assert everything(others) == expected
    assert {each.num_added for each in others} == {as_one.num_added}
    again = loaded(kind, joined([each.state() for each in others]))
    assert steps(again) == expected
    if kind == "with memory" and as_one.num_steps:
        assert_whole_sequences(as_one, buffers)


def assert_whole_sequences(as_one: ReplayBuffer, buffers: list[ReplayBuffer]) -> None:
    """As many can be drawn as before, each beginning where it did."""

    def starts(buffer: ReplayBuffer) -> set[float]:
        if not buffer.num_steps:
            return set()
        batch = buffer.sample_sequences(2000, np.random.default_rng(0), GAMMAS)
        assert batch.lengths is not None
        return set(batch.observations[0][np.cumsum(batch.lengths) - batch.lengths, 0].tolist())

    assert starts(as_one) == set().union(*map(starts, buffers))


@settings(deadline=None, max_examples=40, derandomize=True)
@given(updates=st.lists(Update, min_size=1, max_size=5), new_size=st.integers(1, 3), back=st.integers(0, 5))
def test_any_number_of_ranks_drops_what_an_update_and_later_ones_added(
    updates: list[list[list[tuple[int, Ending]]]], new_size: int, back: int
) -> None:
    kept = updates[: max(0, len(updates) - back)]
    before = filled("plain", ROOM, kept, 2, 9)
    others = [loaded("plain", part) for part in dealt_out(joined_after(updates), [1] * new_size)]
    for each in others:
        each.drop_newer(before[0].num_added)
    assert everything(others) == everything(before)


def joined_after(updates: list[list[list[tuple[int, Ending]]]]) -> State:
    """What two ranks have after these."""
    return joined([buffer.state() for buffer in filled("plain", ROOM, updates, 2, 9)])


@pytest.mark.parametrize("shares", [[1, 1], [1] * 3, [1] * 4, [2, 1], [3, 1, 2]])
def test_parts_have_about_their_share_of_the_steps_of_each_age(shares: list[int]) -> None:
    random = np.random.default_rng(0)
    buffer = ReplayBuffer(layout(5000, 16))
    for first in range(0, 200_000, 1000):
        made = block(first, random.integers(1, 17, 3).tolist())
        buffer.add(made, rewards(made))
    parts = list(dealt_out(buffer.state(), shares))
    counts = [len(part.tensors["remaining"]) / share for part, share in zip(parts, shares, strict=True)]
    assert max(counts) - min(counts) <= 17
    for age in np.linspace(0, buffer.num_added, 5):
        older = [int((part.tensors["added"] < age).sum()) / share for part, share in zip(parts, shares, strict=True)]
        assert max(older) - min(older) <= 17


def test_what_no_rank_has_is_not_there_and_what_one_has_is_zero_for_others() -> None:
    masked, plain = ReplayBuffer(layout()), ReplayBuffer(layout())
    for buffer, made in ((masked, replace(block(0, [2]), team_ids=np.array([1, 2]))), (plain, block(9, [1]))):
        buffer.add(made, rewards(made), num_added=3)
    both = joined([plain.state(), masked.state()])
    assert both.tensors["team_ids"].tolist() == [0, 0, 1, 2, 0]
    assert "team_ids" not in joined([plain.state(), plain.state()]).tensors


def test_the_largest_priority_of_all_is_that_of_new_steps() -> None:
    buffers = [ReplayBuffer(layout(alpha=1.0)) for _ in range(2)]
    for error, buffer in enumerate(buffers, 2):
        made = block(10 * error, [3])
        buffer.add(made, rewards(made), num_added=6)
        buffer.update_priorities(
            buffer.sample(3, np.random.default_rng(0), 1, GAMMAS).rows, np.full(3, error, np.float32)
        )
    assert joined([buffer.state() for buffer in buffers]).number("largest_priority") == pytest.approx(3.0, abs=1e-5)


def test_buffers_without_a_step_are_one_without_a_step() -> None:
    empty = joined([ReplayBuffer(layout()).state() for _ in range(2)])
    parts = [joined(list(slices(part))) for part in dealt_out(empty, [1, 2, 1])]
    assert [loaded("plain", part).num_steps for part in parts] == [0, 0, 0]


def test_experience_that_a_package_keeps_in_another_way_is_refused() -> None:
    require_divisible(ReplayBuffer(layout()).state())
    with pytest.raises(CheckpointError, match="cannot be divided among ranks"):
        require_divisible(State({"mine": np.zeros(3)}))
