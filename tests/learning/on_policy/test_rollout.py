"""Rows between their collection and their use: none lost, none twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.experience import join_by_agent
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.on_policy.minibatches import num_parts, split_rows
from rl_tui.engine.learning.on_policy.rollout import RolloutBuffer
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.learning.rewards.scaling import RewardScaler
from rl_tui.engine.learning.rewards.streams import EpisodeSums
from rl_tui.engine.learning.row_selection import RowSelection
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec, Policy
from tests.learning.rollouts import SPEC, Simulation, acted
from tests.weights import Kind


def minibatches(
    columns: dict[str, Any], batch_size: int, random: np.random.Generator | None, sequences: Sequences | None = None
) -> Iterator[tuple[dict[str, Any], Sequences | None]]:
    """One pass over columns of the same rows, in parts that are not empty."""
    num_rows = len(next(iter(columns.values())))
    for part in split_rows(num_rows, num_parts(num_rows, batch_size), random, sequences):
        if len(part.rows):
            select = RowSelection(part.rows)
            yield {name: select(column) for name, column in columns.items()}, part.sequences


@settings(deadline=None, max_examples=200, derandomize=True)
@given(rows=st.integers(1, 500), batch_size=st.integers(1, 600), seed=st.integers(0, 99), tensors=st.booleans())
def test_minibatches_hold_every_row_once_in_nearly_equal_parts(
    rows: int, batch_size: int, seed: int, tensors: bool
) -> None:
    columns = {"index": np.arange(rows), "wide": np.arange(3 * rows).reshape(rows, 3)}
    if tensors:
        columns = {name: torch.from_numpy(column) for name, column in columns.items()}
    parts = [part for part, _ in minibatches(columns, batch_size, np.random.default_rng(seed))]
    sizes = [len(part["index"]) for part in parts]
    assert len(parts) == max(1, round(rows / batch_size))
    assert max(sizes) - min(sizes) <= 1
    order = np.concatenate([np.asarray(part["index"]) for part in parts])
    assert sorted(order.tolist()) == list(range(rows))
    wide = np.concatenate([np.asarray(part["wide"]) for part in parts])
    np.testing.assert_array_equal(wide, np.arange(3 * rows).reshape(rows, 3)[order])


def test_every_pass_is_shuffled_again_and_a_seed_repeats_it() -> None:
    columns = {"index": np.arange(100)}

    def passes(seed: int) -> list[list[int]]:
        random = np.random.default_rng(seed)
        return [np.concatenate([p["index"] for p, _ in minibatches(columns, 30, random)]).tolist() for _ in range(2)]

    assert passes(1) == passes(1)
    assert passes(1)[0] != passes(1)[1] != list(range(100))
    assert passes(1) != passes(2)


def test_without_a_generator_the_order_stays() -> None:
    parts = [part["index"].tolist() for part, _ in minibatches({"index": np.arange(7)}, 3, None)]
    assert parts == [[0, 1, 2], [3, 4, 5, 6]]


@settings(deadline=None, max_examples=200, derandomize=True)
@given(
    lengths=st.lists(st.integers(1, 8), min_size=1, max_size=80),
    batch_size=st.integers(8, 100),
    seed=st.integers(0, 99),
    tensors=st.booleans(),
)
def test_minibatches_of_sequences_hold_whole_ones_and_about_as_many_rows_as_requested(
    lengths: list[int], batch_size: int, seed: int, tensors: bool
) -> None:
    rows = sum(lengths)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    columns = {"index": np.arange(rows), "owner": owner}
    memories = np.arange(2 * len(lengths)).reshape(-1, 2)
    if tensors:
        columns, memories = ({n: torch.from_numpy(c) for n, c in columns.items()}, torch.from_numpy(memories))
    sequences = Sequences(np.array(lengths), memories)
    seen: list[int] = []
    for part, found in minibatches(columns, batch_size, np.random.default_rng(seed), sequences):
        assert found is not None
        owners, memory = np.asarray(part["owner"]), np.asarray(found.memories)
        np.testing.assert_array_equal(owners, np.repeat(memory[:, 0] // 2, found.lengths))
        for own in memory[:, 0] // 2:
            index = np.asarray(part["index"])[owners == own]
            np.testing.assert_array_equal(index, np.flatnonzero(owner == own))
        assert abs(len(owners) - rows / max(1, round(rows / batch_size))) <= 8
        seen += (memory[:, 0] // 2).tolist()
    assert sorted(seen) == list(range(len(lengths)))


def test_no_minibatch_is_empty_where_sequences_are_long() -> None:
    """Rows 7 and 14, where three equal parts would end, are both nearest to the end of the second sequence."""
    sequences = Sequences(np.array([3, 8, 8, 2]), np.zeros((4, 2)))
    parts = [len(part["index"]) for part, _ in minibatches({"index": np.arange(21)}, 8, None, sequences)]
    assert parts == [11, 10]


@settings(deadline=None, max_examples=50, derandomize=True)
@given(lengths=st.lists(st.integers(1, 8), max_size=9), parts=st.integers(1, 30), with_memory=st.booleans())
def test_rows_are_split_into_as_many_parts_as_wanted_of_which_some_may_be_empty(
    lengths: list[int], parts: int, with_memory: bool
) -> None:
    rows, numbers = sum(lengths), np.array(lengths, np.int64)
    sequences = Sequences(numbers, np.arange(len(lengths))[:, None]) if with_memory else None
    found = split_rows(rows, parts, np.random.default_rng(0), sequences)
    assert len(found) == parts
    assert sorted(np.concatenate([part.rows for part in found]).tolist()) == list(range(rows))
    for part in found:
        if with_memory:
            assert part.sequences is not None
            assert part.sequences.lengths.sum() == len(part.rows)
            assert len(part.sequences.memories) == len(part.sequences.lengths)


def policy() -> Policy:
    """One that acts for `SPEC`."""
    kind = Kind(SPEC)
    made = make_policy(SPEC, kind.network, False, 0)
    made.load(kind.weights())
    return made


def test_a_rollout_is_its_blocks_one_after_the_other() -> None:
    random = np.random.default_rng(0)
    blocks = [acted(policy(), random, [3, 1]), acted(policy(), random, [5], masked=True), acted(policy(), random, [2])]
    buffer = RolloutBuffer()
    for block in blocks:
        buffer.add(block, block.rewards[:, None])
    assert buffer.num_rows == 11
    rollout = buffer.drain()
    assert buffer.num_rows == 0
    for index in range(len(SPEC.observations)):
        joined = np.concatenate([block.observations[index] for block in blocks])
        np.testing.assert_array_equal(rollout.experience.observations[index], joined)
    np.testing.assert_array_equal(rollout.rewards[:, 0], np.concatenate([block.rewards for block in blocks]))
    np.testing.assert_array_equal(rollout.experience.lengths, [3, 1, 5, 2])
    np.testing.assert_array_equal(rollout.experience.log_probs, np.concatenate([block.log_probs for block in blocks]))
    np.testing.assert_array_equal(rollout.experience.endings, np.concatenate([block.endings for block in blocks]))
    assert [following.shape for following in rollout.experience.next_observations] == [(4, 3), (4, 4)]
    assert rollout.experience.memories is None
    assert rollout.experience.action_mask is not None
    np.testing.assert_array_equal(rollout.experience.action_mask[4:9], blocks[1].action_mask)
    assert rollout.experience.action_mask[:4].all()
    assert rollout.experience.action_mask[9:].all()


def test_images_stay_bytes_and_a_single_block_is_not_copied() -> None:
    camera = BehaviorSpec("Walker", (ObservationSpec("camera", (20, 20, 3), "uint8"),), ActionSpec(1))
    acting = make_policy(camera, NetworkSettings(hidden_units=4, num_layers=1), False, 0)
    acting.load(Kind(camera, NetworkSettings(hidden_units=4, num_layers=1)).weights())
    block, buffer = acted(acting, np.random.default_rng(0), [3], camera), RolloutBuffer()
    buffer.add(block, block.rewards[:, None])
    (seen,) = buffer.drain().experience.observations
    assert seen.dtype == np.uint8
    assert seen is block.observations[0]


def test_what_was_remembered_comes_along() -> None:
    network = NetworkSettings.model_validate({"hidden_units": 4, "memory": {"memory_size": 6}})
    acting = make_policy(SPEC, network, False, 0)
    acting.load(Kind(SPEC, network).weights())
    simulated, buffer = Simulation(acting, SPEC, 3, 5), RolloutBuffer()
    blocks = [simulated.run(8), simulated.run(9)]
    for block in blocks:
        buffer.add(block, block.rewards[:, None])
    rollout = buffer.drain()
    assert rollout.experience.memories is not None
    np.testing.assert_array_equal(rollout.experience.memories, np.concatenate([block.memories for block in blocks]))
    np.testing.assert_array_equal(rollout.experience.agent_ids, np.concatenate([block.agent_ids for block in blocks]))


def test_blocks_joined_by_agent_are_paid_what_they_were_paid_one_by_one() -> None:
    """Episodes continue from block to block, and agents come back after they have left."""
    simulation = Simulation(policy(), SPEC, num_agents=5, horizon=3, seed=2)
    blocks = [simulation.run(4) for _ in range(6)]
    whole, sums, sums_of_whole = join_by_agent(blocks), EpisodeSums(1), EpisodeSums(1)
    changes = np.flatnonzero(np.diff(whole.agent_ids))
    assert len(changes) == len(np.unique(whole.agent_ids)) - 1
    assert whole.num_rows == sum(block.num_rows for block in blocks)
    one_by_one = np.concatenate([sums(block, block.rewards[:, None]) for block in blocks])
    assert len(one_by_one) > 5
    together = sums_of_whole(whole, whole.rewards[:, None])
    np.testing.assert_allclose(np.sort(together[:, 0]), np.sort(one_by_one[:, 0]), rtol=1e-12)
    scaler, scaler_of_whole = RewardScaler(0.9), RewardScaler(0.9)
    for block in blocks:
        scaler(block, block.rewards)
    scaler_of_whole(whole, whole.rewards)
    for name, value in scaler.state().values.items():
        assert np.isclose(float(str(scaler_of_whole.state().values[name])), float(str(value)), rtol=1e-12)
    rows = {tuple(row) for block in blocks for row in np.column_stack([*block.observations, block.rewards]).tolist()}
    assert rows == {tuple(row) for row in np.column_stack([*whole.observations, whole.rewards]).tolist()}
