"""Replay buffers that are saved and do not fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.learning.replay.buffer import ReplayBuffer
from rl_tui.engine.learning.replay.layout import ReplayLayout
from rl_tui.engine.specs import ActionSpec, ObservationSpec, State
from tests.learning.replay.numbered import SPEC, block, layout, rewards

GAMMAS = np.array([0.9, 0.5], np.float32)
PLAIN = layout()
SMALLER = replace(SPEC, observations=(SPEC.observations[0], ObservationSpec("camera", (1, 2, 3), "uint8")))
BRIGHTER = replace(SPEC, observations=(SPEC.observations[0], ObservationSpec("camera", (2, 2, 3))))
BLIND = replace(SPEC, observations=SPEC.observations[:1])


def filled(shape: ReplayLayout) -> ReplayBuffer:
    """A buffer with one block of nine steps."""
    buffer, experience = ReplayBuffer(shape), block(0, [5, 4], memory=shape.memory_size > 0)
    buffer.add(experience, rewards(experience))
    return buffer


def assert_refused(saved: State, buffer: ReplayBuffer, message: str) -> None:
    """With this message, and `buffer` still draws what it held."""
    before = buffer.state()
    with pytest.raises(CheckpointError, match=message):
        buffer.load(saved)
    after = buffer.state()
    assert after.values == before.values
    for name, tensor in before.tensors.items():
        np.testing.assert_array_equal(after.tensors[name], tensor)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (replace(PLAIN, spec=SMALLER), r"has uint8\[11, 2, 2, 3\] as observation.1, expected uint8\[11, 1, 2, 3\]"),
        (replace(PLAIN, spec=BRIGHTER), r"has uint8\[11, 2, 2, 3\] as observation.1, expected float32"),
        (replace(PLAIN, spec=BLIND), "has observation.1, which this run does not have"),
        (replace(PLAIN, spec=replace(SPEC, actions=ActionSpec(3, (3, 2)))), "continuous, expected"),
        (replace(PLAIN, spec=replace(SPEC, actions=ActionSpec(2))), "discrete, expected"),
        (replace(PLAIN, num_streams=1), r"rewards, expected float32\[11, 1\]"),
        (replace(PLAIN, memory_size=4), r"has no memories, expected float32\[11, 4\]"),
    ],
)
def test_another_shape_is_refused_by_name(shape: ReplayLayout, message: str) -> None:
    assert_refused(filled(PLAIN).state(), ReplayBuffer(shape), message)


def test_memories_that_are_not_kept_are_refused_by_name() -> None:
    saved = filled(layout(memory_size=4, sequence_length=2)).state()
    assert_refused(saved, filled(PLAIN), "memories, which this run does not have")


@pytest.mark.parametrize(
    ("name", "row", "value"),
    [
        ("remaining", 0, 3),
        ("remaining", 10, 1),
        ("remaining", 5, -1),
        ("position", 2, 7),
        ("ending", 3, 9),
        ("added", 4, 99),
    ],
)
def test_segments_that_do_not_hang_together_are_refused(name: str, row: int, value: int) -> None:
    saved = filled(PLAIN).state()
    saved.tensors[name][row] = value
    assert_refused(saved, filled(PLAIN), "inconsistent")


def test_a_missing_count_is_refused() -> None:
    saved = filled(PLAIN).state()
    assert_refused(State(saved.tensors, {}), filled(PLAIN), "num_added")


def test_nothing_at_all_is_refused() -> None:
    assert_refused(State(), filled(PLAIN), "has no observation.0")


def test_an_empty_buffer_is_restored_empty() -> None:
    buffer = filled(PLAIN)
    buffer.load(ReplayBuffer(PLAIN).state())
    assert buffer.num_steps == 0
    experience = block(0, [5])
    buffer.add(experience, rewards(experience))
    assert buffer.num_steps == 5


def test_a_copy_is_saved() -> None:
    buffer = filled(PLAIN)
    saved = buffer.state()
    seen = saved.tensors["observation.0"].copy()
    experience = block(50, [20])
    buffer.add(experience, rewards(experience))
    np.testing.assert_array_equal(saved.tensors["observation.0"], seen)


def test_priorities_are_optional_both_ways() -> None:
    prioritized = filled(layout(alpha=0.6))
    prioritized.load(filled(PLAIN).state())
    drawn = prioritized.sample(9, np.random.default_rng(0), 1, GAMMAS)
    assert len(set(drawn.rows.tolist())) == 9  # one of each of nine equal parts
    uniform = ReplayBuffer(PLAIN)
    uniform.load(prioritized.state())
    assert uniform.num_steps == 9


def test_only_rows_in_use_are_saved() -> None:
    saved = filled(layout(10_000)).state()
    assert {len(tensor) for tensor in saved.tensors.values()} == {11}
