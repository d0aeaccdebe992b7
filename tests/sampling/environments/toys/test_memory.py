"""The side must be remembered."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from rl_tui.engine.sampling.environments.toys.moves import ActionKind
from tests.sampling.environments.toys.playing import make, step


@pytest.mark.parametrize("kind", get_args(ActionKind))
@pytest.mark.parametrize("delay", [1, 5])
def test_only_the_last_move_counts_and_the_side_is_seen_only_at_first(kind: ActionKind, delay: int) -> None:
    task = make("memory", 6, actions=kind, delay=delay)
    steps = task.reset(3)["B"]
    for _ in range(3):
        sides = steps.decisions.observations[0][:, 0].copy()
        assert set(np.abs(sides).tolist()) == {1}
        for number in range(delay):
            assert not steps.decisions.observations[1].any()
            steps = step(task, -sides, kind)
            assert steps.terminals is None
            assert not steps.decisions.rewards.any()
            assert not steps.decisions.observations[0].any()
            assert (steps.decisions.observations[1] == (number == delay - 1)).all()
        steps = step(task, sides, kind)
        assert steps.terminals is not None
        assert steps.terminals.rewards.tolist() == [1] * 6
        assert not steps.terminals.truncated.any()
        assert not steps.decisions.rewards.any()


def test_what_does_not_depend_on_the_side_returns_nothing() -> None:
    task = make("memory", 50, delay=1)
    task.reset(0)
    earned = []
    for _ in range(200):
        steps = step(task, np.ones(50, np.float32))
        if steps.terminals is not None:
            earned.append(steps.terminals.rewards)
    assert len(earned) == 100
    assert abs(np.mean(earned)) < 0.05
