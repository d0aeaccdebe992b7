"""Moving to the side that is shown is rewarded."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.sampling.environments.toys.moves import ActionKind
from rl_tui.engine.specs import Steps
from tests.sampling.environments.toys.playing import make, step


@pytest.mark.parametrize("kind", get_args(ActionKind))
def test_walking_to_the_side_is_rewarded_and_away_punished(kind: ActionKind) -> None:
    for sign, outcome in [(1.0, 1.0), (-1.0, -1.0)]:
        line = make("line", 6, actions=kind)
        steps = line.reset(4)["B"]
        for _ in range(4):
            assert steps.terminals is None
            steps = step(line, sign * steps.decisions.observations[0], kind)
        assert steps.terminals is not None
        assert steps.terminals.agent_ids.tolist() == list(range(6))
        assert steps.terminals.rewards == pytest.approx(np.full(6, outcome - 0.01))
        assert np.abs(steps.terminals.observations[1]) == pytest.approx(np.ones((6, 1)))
        assert not steps.terminals.truncated.any()
        assert steps.decisions.observations[1].tolist() == [[0]] * 6


@pytest.mark.parametrize("kind", get_args(ActionKind))
def test_standing_still_is_truncated(kind: ActionKind) -> None:
    line = make("line", 2, actions=kind)
    steps: Steps = line.reset(4)["B"]
    for _ in range(2 * int(Line.LENGTH) + Line.SPARE_STEPS):
        assert steps.terminals is None
        steps = step(line, np.zeros(2, np.float32), kind)
    assert steps.terminals is not None
    assert steps.terminals.truncated.all()


@pytest.mark.parametrize("kind", get_args(ActionKind))
def test_one_step_rewards_the_move_towards_the_side(kind: ActionKind) -> None:
    task = make("one-step", 5, actions=kind)
    steps = task.reset(0)["B"]
    for sign in (1.0, 0.0, -1.0):
        steps = step(task, sign * steps.decisions.observations[0], kind)
        assert steps.terminals is not None
        assert steps.terminals.rewards.tolist() == [sign] * 5
        assert not steps.terminals.truncated.any()


@pytest.mark.parametrize("task", ["one-step", "line"])
def test_mask_forbids_moving_away_from_the_side(task: str) -> None:
    steps = make(task, 8, masked=True).reset(2)["B"]
    mask, side = steps.decisions.action_mask, steps.decisions.observations[0][:, 0]
    assert mask is not None
    assert (mask[:, 1]).all()
    assert (mask[:, 0] == (side < 0)).all()
    assert (mask[:, 2] == (side > 0)).all()


@pytest.mark.parametrize("task", ["one-step", "line", "entities", "goal", "pixels"])
def test_continuous_task_has_no_mask(task: str) -> None:
    assert make(task, actions="continuous", masked=True).reset(0)["B"].decisions.action_mask is None
