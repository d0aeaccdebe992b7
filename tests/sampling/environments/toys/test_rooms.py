"""The walk through rooms: walls stop, doors let through, and only the end pays."""

from __future__ import annotations

import numpy as np
import pytest

from rl_tui.engine.sampling.environments.base import Rendered
from rl_tui.engine.sampling.environments.toys.rooms import SIZE, STEPS_PER_ROOM
from rl_tui.engine.specs import Actions, ObservationSpec, Steps
from tests.learning.rewards.rooms import way
from tests.sampling.environments.toys.playing import make


def walk(world: object, moves: np.ndarray) -> Steps:
    """What follows when every agent moves so."""
    none = np.zeros((len(moves), 0), np.float32)
    steps: Steps = world.step({"B": Actions(none, moves[:, None].astype(np.int64))})["B"]  # type: ignore[attr-defined]  # an environment
    return steps


@pytest.mark.parametrize("num_rooms", [2, 3, 8])
def test_the_way_leads_to_the_reward(num_rooms: int) -> None:
    world, num_columns = make("rooms", 3, rooms=num_rooms), num_rooms * (SIZE + 1) - 1
    assert world.specs["B"].observations == (ObservationSpec("cell", (SIZE + num_columns,)),)
    steps, length = world.reset(None)["B"], 0
    while steps.terminals is None:
        cells = steps.decisions.observations[0]
        np.testing.assert_array_equal(cells.sum(1), [2, 2, 2])
        assert not steps.decisions.rewards.any()
        steps, length = walk(world, way(cells, num_rooms)), length + 1
    assert steps.terminals.rewards.tolist() == [1, 1, 1]
    assert not steps.terminals.truncated.any()
    assert length == num_columns - 1 - SIZE // 2 + SIZE // 2 + (num_rooms - 1) * (SIZE - 1)
    assert steps.decisions.observations[0][:, SIZE // 2].all(), "it begins in the middle again"


def test_walls_stop_and_time_runs_out() -> None:
    world = make("rooms", 4, rooms=2)
    steps = world.reset(None)["B"]
    for number in range(2 * STEPS_PER_ROOM):
        assert steps.terminals is None, number
        steps = walk(world, np.arange(4))
    assert steps.terminals is not None
    assert steps.terminals.truncated.all()
    assert not steps.terminals.rewards.any()
    seen = steps.terminals.observations[0]
    assert list(zip(seen[:, :SIZE].argmax(1).tolist(), seen[:, SIZE:].argmax(1).tolist(), strict=True)) == [
        (0, 2),
        (SIZE - 1, 2),
        (2, 0),
        (2, SIZE - 1),
    ]


def test_the_rooms_can_be_watched() -> None:
    world = make("rooms", 1)
    world.reset(None)
    assert isinstance(world, Rendered)
    frame = world.render()
    assert isinstance(frame, np.ndarray)
    assert len({tuple(color) for color in frame.reshape(-1, 3).tolist()}) == 4
