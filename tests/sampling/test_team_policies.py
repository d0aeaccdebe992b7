"""A policy of a behavior that is made of several, by the agents' teams."""

from __future__ import annotations

import numpy as np
import pytest

from rl_tui.engine.sampling.team_policies import TeamPolicies
from rl_tui.engine.specs import Actions, ActionSpec, Bool, Choice, DecisionSteps, Float32, Int64, State, Weights

ACTIONS = ActionSpec(1, (3,))


class Constant:
    """Always takes the same action, remembers it, and counts its calls and agents."""

    def __init__(self, value: float, memory_size: int = 0) -> None:
        self.value, self.memory_size = value, memory_size
        self.version = 0
        self.calls: list[list[int]] = []
        self.masks: list[Bool | None] = []
        self.memories: list[Float32 | None] = []

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """Its value for everyone."""
        self.calls.append(decisions.agent_ids.tolist())
        self.masks.append(decisions.action_mask)
        self.memories.append(memories)
        count = len(decisions.agent_ids)
        continuous = np.full((count, 1), self.value, np.float32)
        after = np.full((count, self.memory_size), self.value, np.float32) if self.memory_size else None
        branch = np.full((count, 1), int(self.value) % 3)
        return Choice(Actions(continuous, branch), continuous, np.full((count, 2), self.value, np.float32), after)

    def load(self, weights: Weights) -> None:
        """Only the version matters."""
        self.version = weights.version

    def state(self) -> State:
        """Its value."""
        return State({}, {"value": self.value})

    def load_state(self, state: State) -> None:
        """Restore its value."""
        self.value = state.number("value")


def waiting(agents: list[int], teams: list[int] | None) -> DecisionSteps:
    """Decisions of these agents, whose first choice is forbidden to the odd ones."""
    ids = np.array(agents, np.int64)
    mask = np.ones((len(ids), 3), np.bool_)
    mask[ids % 2 == 1, 0] = False
    seen = (ids[:, None].astype(np.float32),)
    return DecisionSteps(
        ids, seen, np.zeros(len(ids), np.float32), mask, team_ids=None if teams is None else np.array(teams, np.int64)
    )


def numbers(choice: Choice) -> Int64:
    """Which policies acted."""
    assert choice.policies is not None
    return choice.policies


def test_each_policy_is_called_once_for_all_agents_of_its_teams() -> None:
    learning, snapshot = Constant(1, memory_size=2), Constant(2, memory_size=2)
    policies = TeamPolicies(learning)
    policies.assign([1, 3], snapshot)
    before = np.arange(10, dtype=np.float32).reshape(5, 2)
    choice = policies.act(waiting([10, 11, 12, 13, 14], [0, 1, 3, 1, 2]), before)
    assert (learning.calls, snapshot.calls) == ([[10, 14]], [[11, 12, 13]])
    assert numbers(choice).tolist() == [0, 1, 1, 1, 0]
    expected = [1, 2, 2, 2, 1]
    for column in (choice.actions.continuous[:, 0], choice.continuous[:, 0], choice.log_probs[:, 1]):
        assert column.tolist() == expected
    assert choice.actions.discrete[:, 0].tolist() == expected
    assert choice.memories is not None
    assert choice.memories.tolist() == [[value, value] for value in expected]
    np.testing.assert_array_equal(np.asarray(snapshot.memories[0]), before[1:4])
    np.testing.assert_array_equal(np.asarray(snapshot.masks[0])[:, 0], [False, True, False])


def test_every_assigned_policy_is_another_one_also_of_the_same_object() -> None:
    policies, snapshot = TeamPolicies(Constant(1)), Constant(2)
    found = []
    for policy in (snapshot, snapshot, None, snapshot):
        policies.assign([1], policy)
        choice = policies.act(waiting([5, 6], [0, 1]))
        found.append(None if choice.policies is None else int(choice.policies[1]))
    assert found == [1, 2, None, 3]


def test_agents_without_a_team_are_of_team_0() -> None:
    policies = TeamPolicies(Constant(1))
    policies.assign([1], Constant(2))
    assert policies.act(waiting([5, 6], None)).policies is None
    policies.assign([0], Constant(3))
    assert numbers(policies.act(waiting([5, 6], None))).tolist() == [2, 2]


def test_a_policy_without_memory_leaves_the_memory_at_zero_and_one_of_another_size_is_refused() -> None:
    policies = TeamPolicies(Constant(1, memory_size=2))
    policies.assign([1], Constant(2))
    choice = policies.act(waiting([5, 6], [0, 1]), np.full((2, 2), 9, np.float32))
    assert choice.memories is not None
    assert choice.memories.tolist() == [[1, 1], [0, 0]]
    with pytest.raises(ValueError, match="2 columns or none, got 3"):
        policies.assign([1], Constant(2, memory_size=3))


def test_weights_are_those_of_the_policy_that_learns_and_every_generator_is_restored() -> None:
    policies, snapshot = TeamPolicies(Constant(1)), Constant(2)
    policies.assign([1], snapshot)
    policies.load(Weights(7, {}))
    assert (policies.version, snapshot.version) == (7, 0)
    again, other = TeamPolicies(Constant(0)), Constant(0)
    again.assign([1, 2], other)
    again.load_state(policies.state())
    choice = again.act(waiting([5, 6], [0, 1]))
    assert choice.continuous[:, 0].tolist() == [1, 2]
