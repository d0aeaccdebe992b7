"""The toy tasks mean what they say: going to the side that is shown pays."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from engine.sampling.environments.toy import TASKS, ActionKind, Line, OneStep
from engine.specs import Actions, DecisionSteps, Steps


def towards(kind: ActionKind, decisions: DecisionSteps, sign: float = 1.0) -> Actions:
    """Every agent goes to its side (sign 1), or away from it (-1), or stays (0)."""
    moves = sign * decisions.observations[0]
    none = np.zeros((len(moves), 0))
    continuous = none if kind == "discrete" else moves
    choices = none if kind == "continuous" else moves + 1
    return Actions(continuous.astype(np.float32), choices.astype(np.int64))


@pytest.mark.parametrize("kind", get_args(ActionKind))
def test_walking_to_the_side_pays_and_away_costs(kind: ActionKind) -> None:
    for sign, outcome in [(1.0, 1.0), (-1.0, -1.0)]:
        line = Line("B", 6, kind)
        steps = line.reset(4)["B"]
        for _ in range(4):
            assert steps.terminals is None
            steps = line.step({"B": towards(kind, steps.decisions, sign)})["B"]
        assert steps.terminals is not None
        assert steps.terminals.agent_ids.tolist() == list(range(6))
        assert steps.terminals.rewards == pytest.approx(np.full(6, outcome - 0.01))
        assert np.abs(steps.terminals.observations[1]) == pytest.approx(np.ones((6, 1)))
        assert not steps.terminals.truncated.any()
        assert steps.decisions.observations[1].tolist() == [[0]] * 6


@pytest.mark.parametrize("kind", get_args(ActionKind))
def test_standing_still_is_truncated(kind: ActionKind) -> None:
    line = Line("B", 2, kind)
    steps: Steps = line.reset(4)["B"]
    for _ in range(Line.MAX_EPISODE_STEPS):
        assert steps.terminals is None
        steps = line.step({"B": towards(kind, steps.decisions, 0.0)})["B"]
    assert steps.terminals is not None
    assert steps.terminals.truncated.all()


@pytest.mark.parametrize("kind", get_args(ActionKind))
def test_one_step_pays_the_move_towards_the_side(kind: ActionKind) -> None:
    task = OneStep("B", 5, kind)
    steps = task.reset(0)["B"]
    for sign in (1.0, 0.0, -1.0):
        steps = task.step({"B": towards(kind, steps.decisions, sign)})["B"]
        assert steps.terminals is not None
        assert steps.terminals.rewards.tolist() == [sign] * 5
        assert not steps.terminals.truncated.any()


@pytest.mark.parametrize("task", TASKS)
def test_mask_forbids_the_way_away_from_the_side(task: str) -> None:
    steps = TASKS[task]("B", 8, "discrete", masked=True).reset(2)["B"]
    mask, side = steps.decisions.action_mask, steps.decisions.observations[0][:, 0]
    assert mask is not None
    assert (mask[:, 1]).all()
    assert (mask[:, 0] == (side < 0)).all()
    assert (mask[:, 2] == (side > 0)).all()


@pytest.mark.parametrize("task", TASKS)
def test_continuous_task_has_no_mask(task: str) -> None:
    assert TASKS[task]("B", 2, "continuous", masked=True).reset(0)["B"].decisions.action_mask is None
