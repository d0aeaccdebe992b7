"""Rows between their collection and their use: none lost, none twice."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.learning.buffers import RolloutBuffer, flat_observations, minibatches
from engine.learning.networks.mlp import Activation
from engine.learning.policies import VectorPolicy
from engine.specs import Weights
from tests.learning.rollouts import SPEC, acted


@settings(deadline=None, max_examples=200, derandomize=True)
@given(rows=st.integers(1, 500), batch_size=st.integers(1, 600), seed=st.integers(0, 99), tensors=st.booleans())
def test_minibatches_hold_every_row_once_in_nearly_equal_parts(
    rows: int, batch_size: int, seed: int, tensors: bool
) -> None:
    columns = {"index": np.arange(rows), "wide": np.arange(3 * rows).reshape(rows, 3)}
    if tensors:
        columns = {name: torch.from_numpy(column) for name, column in columns.items()}
    parts = list(minibatches(columns, batch_size, np.random.default_rng(seed)))
    sizes = [len(part["index"]) for part in parts]
    assert len(parts) == max(1, round(rows / batch_size))
    assert max(sizes) - min(sizes) <= 1
    order = np.concatenate([np.asarray(part["index"]) for part in parts])
    assert sorted(order.tolist()) == list(range(rows))
    wide = np.concatenate([np.asarray(part["wide"]) for part in parts])
    np.testing.assert_array_equal(wide, np.arange(3 * rows).reshape(rows, 3)[order])


def test_every_pass_is_shuffled_anew_and_a_seed_repeats_it() -> None:
    columns = {"index": np.arange(100)}

    def passes(seed: int) -> list[list[int]]:
        random = np.random.default_rng(seed)
        return [np.concatenate([p["index"] for p in minibatches(columns, 30, random)]).tolist() for _ in range(2)]

    assert passes(1) == passes(1)
    assert passes(1)[0] != passes(1)[1] != list(range(100))
    assert passes(1) != passes(2)


def policy(seed: int = 0, activation: Activation = "tanh") -> VectorPolicy:
    """One that acts for `SPEC` with random weights."""
    random = np.random.default_rng(seed)
    made = VectorPolicy(SPEC.actions, activation, False, seed)
    arrays = {"layers.0.weight": random.standard_normal((7, 7)), "layers.0.bias": random.standard_normal(7)}
    arrays["log_sigma"] = random.standard_normal(2)
    made.load(Weights(3, {name: array.astype(np.float32) for name, array in arrays.items()}))
    return made


def test_a_rollout_is_its_blocks_one_after_the_other() -> None:
    random = np.random.default_rng(0)
    blocks = [acted(policy(), random, [3, 1]), acted(policy(), random, [5], masked=True), acted(policy(), random, [2])]
    buffer = RolloutBuffer()
    for block in blocks:
        buffer.add(block, block.rewards[:, None])
    assert buffer.num_rows == 11
    rollout = buffer.take()
    assert buffer.num_rows == 0
    np.testing.assert_array_equal(
        rollout.observations, np.concatenate([flat_observations(b.observations) for b in blocks])
    )
    np.testing.assert_array_equal(rollout.rewards[:, 0], np.concatenate([block.rewards for block in blocks]))
    np.testing.assert_array_equal(rollout.lengths, [3, 1, 5, 2])
    np.testing.assert_array_equal(rollout.log_probs, np.concatenate([block.log_probs for block in blocks]))
    np.testing.assert_array_equal(rollout.endings, np.concatenate([block.endings for block in blocks]))
    assert rollout.next_observations.shape == (4, 7)
    assert rollout.action_mask is not None
    np.testing.assert_array_equal(rollout.action_mask[4:9], blocks[1].action_mask)
    assert rollout.action_mask[:4].all()
    assert rollout.action_mask[9:].all()


def test_observations_of_an_agent_stand_side_by_side_in_their_order() -> None:
    first, second = np.arange(4, dtype=np.float32).reshape(2, 2), np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    assert flat_observations((first, second)).tolist() == [[0, 1, 0, 1, 2, 3], [2, 3, 4, 5, 6, 7]]
    assert flat_observations((second,)).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
