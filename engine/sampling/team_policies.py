"""A policy of one behavior that is made of several: the agents of each team act by the policy of their team.

Shapes: N agents of one step, M memory columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.experience import take_decisions
from rl_tui.engine.specs import LEARNING, Actions, Choice, DecisionSteps, Float32, Int64, Policy, State, Weights


class TeamPolicies:
    """Owned by the collector's thread. Teams that none was assigned to act by the policy that learns.

    Every policy that is assigned gets a number of its own, by which `Choice.policies` says who acted: experience is
    learned from only where the policy that learns did. Each policy is called once for all of its agents.
    """

    def __init__(self, learning: Policy) -> None:
        self._learning = learning
        self._of_team: dict[int, tuple[int, Policy]] = {}  # number and policy
        self._newest = LEARNING
        self.memory_size = learning.memory_size

    @property
    def version(self) -> int:
        """Of the weights of the policy that learns."""
        return self._learning.version

    def assign(self, teams: Iterable[int], policy: Policy | None) -> None:
        """These teams act by a policy that is not learned, from now on; None: by the one that is.

        A policy that gets other weights must be assigned again: what it does then is another policy's. Raises
        ValueError where its memory has another size.
        """
        if policy is None:
            for team in teams:
                self._of_team.pop(team, None)
            return
        if policy.memory_size not in (0, self.memory_size):
            raise ValueError(f"the memory must have {self.memory_size} columns or none, got {policy.memory_size}")
        self._newest += 1
        self._of_team |= dict.fromkeys(teams, (self._newest, policy))

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """One action for every waiting agent, by the policy of its team."""
        numbers = self._numbers(decisions)
        if not numbers.any():
            return self._learning.act(decisions, memories)
        merged = _Merged(len(numbers), numbers, memories)
        policies = {LEARNING: self._learning, **dict(self._of_team.values())}
        for number in np.unique(numbers).tolist():
            rows = np.flatnonzero(numbers == number)
            policy = policies[number]
            own = None if memories is None or not policy.memory_size else memories[rows]
            merged.add(rows, policy.act(take_decisions(decisions, rows), own))
        return merged.choice()

    def _numbers(self, decisions: DecisionSteps) -> Int64:
        """i64[N], of the policy of each agent; agents without a team are of team 0."""
        numbers: Int64 = np.zeros(len(decisions.agent_ids), np.int64)
        for team, (number, _) in self._of_team.items():
            numbers[slice(None) if decisions.team_ids is None and team == 0 else decisions.team_ids == team] = number
        return numbers

    def load(self, weights: Weights) -> None:
        """The policy that learns acts with these weights from now on."""
        self._learning.load(weights)

    def state(self) -> State:
        """The states of all random generators."""
        teams = {f"team_{team}": policy.state() for team, (_, policy) in self._of_team.items()}
        return State.merge({"learning": self._learning.state(), **teams})

    def load_state(self, state: State) -> None:
        """Restore the generators of the policies that are assigned as they were then."""
        self._learning.load_state(state.part("learning"))
        for team, (_, policy) in self._of_team.items():
            part = state.part(f"team_{team}")
            if part.tensors or part.values:
                policy.load_state(part)


class _Merged:
    """The choices of several policies as one."""

    def __init__(self, count: int, numbers: Int64, memories: Float32 | None) -> None:
        self._count, self._numbers = count, numbers
        self._arrays: dict[str, NDArray[Any]] = {}
        self._memories = None if memories is None else np.zeros_like(memories)  # of a policy without memory

    def add(self, rows: Int64, choice: Choice) -> None:
        """What was chosen for these rows i64[B]."""
        chosen: dict[str, NDArray[Any]] = {
            "continuous_actions": choice.actions.continuous,
            "discrete_actions": choice.actions.discrete,
            "continuous": choice.continuous,
            "log_probs": choice.log_probs,
        }
        for name, values in chosen.items():
            if name not in self._arrays:
                self._arrays[name] = np.zeros((self._count, *values.shape[1:]), values.dtype)
            self._arrays[name][rows] = values
        if self._memories is not None and choice.memories is not None:
            self._memories[rows] = choice.memories

    def choice(self) -> Choice:
        """That of all rows."""
        arrays = self._arrays
        actions = Actions(arrays["continuous_actions"], arrays["discrete_actions"])
        return Choice(actions, arrays["continuous"], arrays["log_probs"], self._memories, self._numbers)
