"""What an answer must be for its specs. (test_failures.py has how failures are reported.)"""

from __future__ import annotations

import numpy as np
import pytest

from rl_tui.engine.errors import EnvironmentFailure, NonFiniteError
from rl_tui.engine.sampling.pools.checks import AnswerCheck
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, DecisionSteps, ObservationSpec, Steps, TerminalSteps

SEEN = ObservationSpec("eye", (2, 2, 3), "uint8"), ObservationSpec("others", (4, 2))
CHECK = AnswerCheck({"B": BehaviorSpec("B", SEEN, ActionSpec(1))})


def steps(eye: object = np.uint8, others: object = np.float32, value: float = 1.0) -> Steps:
    """Two agents that see these types, in their last step and in the next."""
    seen = np.full((2, 2, 2, 3), 255).astype(eye), np.full((2, 4, 2), value).astype(others)  # type: ignore[call-overload]  # a dtype
    ids, rewards = np.arange(2), np.zeros(2, np.float32)
    return Steps(DecisionSteps(ids, seen, rewards), TerminalSteps(ids, seen, rewards, np.zeros(2, np.bool_)))


def test_bytes_and_floats_that_fit_pass() -> None:
    CHECK.check({"B": steps()})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"eye": np.float32}, r"'eye' must be uint8 \(2, 2, 2, 3\) for 2 agents, got float32 \(2, 2, 2, 3\)"),
        ({"eye": np.int8}, "'eye' must be uint8 .*, got int8"),
        ({"others": np.uint8}, r"'others' must be float32 \(2, 4, 2\) for 2 agents, got uint8 \(2, 4, 2\)"),
    ],
)
def test_another_type_is_named(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(EnvironmentFailure, match=words):
        CHECK.check({"B": steps(**wrong)})


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_set_that_is_not_finite_is_named(value: float) -> None:
    with pytest.raises(NonFiniteError, match="'others' of agent 0 is not finite"):
        CHECK.check({"B": steps(value=value)})
