"""What an answer must be for its specs. (test_failures.py has how failures are reported.)"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from rl_tui.engine.errors import EnvironmentFailure, NonFiniteError
from rl_tui.engine.sampling.pools.checks import AnswerCheck
from rl_tui.engine.sampling.pools.instance import Instance
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, DecisionSteps, ObservationSpec, Steps, TerminalSteps

SEEN = ObservationSpec("eye", (2, 2, 3), "uint8"), ObservationSpec("others", (4, 2))
SPEC = BehaviorSpec("B", SEEN, ActionSpec(1))
CHECK = AnswerCheck({"B": SPEC})


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


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("group_ids", np.zeros(2, np.int32), r"B: group_ids must be int64 \(2,\), got int32 \(2,\)"),
        ("group_ids", np.array([3, -2]), "B: group_ids must be at least 0, or -1 for none, got -2"),
        ("group_rewards", np.zeros(3, np.float32), r"B: group_rewards must be float32 \(2,\), got float32 \(3,\)"),
        ("group_rewards", np.array([1, np.nan], np.float32), "B: the group reward of agent 1 is not finite: nan"),
        ("team_ids", np.zeros((2, 1), np.int64), r"B: team_ids must be int64 \(2,\), got int64 \(2, 1\)"),
    ],
)
def test_groups_and_teams_that_do_not_fit_are_named(column: str, value: np.ndarray, words: str) -> None:
    wrong = steps()
    setattr(wrong.decisions, column, value)
    with pytest.raises((EnvironmentFailure, NonFiniteError), match=words):
        CHECK.check({"B": wrong})


def test_groups_and_teams_that_fit_pass() -> None:
    fine = steps()
    fine.decisions.group_ids, fine.decisions.team_ids = np.array([7, -1]), np.array([0, 1])
    assert fine.terminals is not None
    for part in (fine.decisions, fine.terminals):
        part.group_rewards = np.ones(2, np.float32)
    CHECK.check({"B": fine})


def test_agents_that_are_there_twice_or_negative_are_named() -> None:
    for ids, words in (([5, 5], "must be unique, got 5 more than once"), ([2, -3], "must not be negative, got -3")):
        wrong = steps()
        wrong.decisions.agent_ids = np.array(ids)
        with pytest.raises(EnvironmentFailure, match=f"^B: agent_ids {words}$"):
            CHECK.check({"B": wrong})


@pytest.mark.parametrize(
    ("part", "column", "value", "words"),
    [
        ("decisions", "agent_ids", [0, 1], "agent_ids must be int64 in one dimension, got a list"),
        ("decisions", "group_ids", [0, 1], "group_ids must be int64 (2,), got a list"),
        ("decisions", "rewards", None, "rewards must be float32, got None"),
        ("decisions", "rewards", 1.0, "rewards must be float32 (2,), got 1.0"),
        ("decisions", "observations", None, "observations must be a tuple of arrays, got None"),
        ("terminals", "observations", ([], []), "final observations[0] must be an array, got a list"),
        ("terminals", "truncated", False, "truncated must be bool (2,), got False"),
        ("terminals", "truncated", np.array(["no", "no"]), "truncated must be bool (2,), got <U2 (2,)"),
        ("", "terminals", steps().decisions, "terminals must be TerminalSteps or None, got DecisionSteps"),
        ("", "decisions", None, "decisions must be DecisionSteps, got None"),
        ("", "measured", {"x": 3.0}, "measured['x'] must be a sum and a count, got 3.0"),
        ("", "measured", [3.0], "measured must be a mapping, got a list"),
    ],
)
def test_another_type_than_an_array_is_named(part: str, column: str, value: object, words: str) -> None:
    wrong = steps()
    setattr(getattr(wrong, part) if part else wrong, column, value)
    with pytest.raises(EnvironmentFailure, match=f"^B: {re.escape(words)}$"):
        Instance(Answering({"B": wrong})).step({})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "must return a mapping from behavior to Steps, got None"),
        ([steps()], "must return a mapping from behavior to Steps, got a list"),
        ({"B": steps().decisions}, "B: must be Steps, got DecisionSteps"),
        ({"Worm": steps()}, "returned steps for 'Worm', which is not in specs (B)"),
    ],
)
def test_answer_that_is_not_steps_by_behavior_is_named(answer: Any, words: str) -> None:
    with pytest.raises(EnvironmentFailure, match=f"^{re.escape(words)}$"):
        Instance(Answering(answer)).step({})


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [
        ("specs", [SPEC], "specs must be a mapping by behavior, got a list"),
        ("specs", {"C": SPEC}, "specs['C'] must have that name, got 'B'"),
        ("num_agents", 2, "num_agents must be a mapping by behavior, got 2"),
        ("num_agents", {"C": 2}, "num_agents must have every behavior of specs, got none for 'B'"),
    ],
)
def test_what_an_environment_says_of_itself_must_be_complete(attribute: str, value: object, words: str) -> None:
    environment = Answering({})
    environment.num_agents = {"B": 2, "C": 2}
    setattr(environment, attribute, value)
    with pytest.raises(EnvironmentFailure, match=f"^{re.escape(words)}$"):
        Instance(environment)


class Answering:
    """Two agents, and whatever they are said to do."""

    def __init__(self, answer: Any) -> None:
        self.specs: Any = {"B": SPEC}
        self.num_agents: Any = {"B": 2}
        self._answer = answer

    def reset(self, seed: int | None) -> Any:
        return self._answer

    def step(self, actions: object) -> Any:
        return self._answer

    def close(self) -> None:
        pass
