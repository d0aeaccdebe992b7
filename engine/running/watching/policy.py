"""A policy that is watched: always the newest, with a record of its last actions."""

from __future__ import annotations

from dataclasses import dataclass

from rl_tui.engine.learning.policy_copies import MakePolicy
from rl_tui.engine.specs import Actions, BehaviorSpec, Choice, DecisionSteps, Float32, Int64, State, Weights


@dataclass(frozen=True, slots=True)
class PolicySnapshot:
    """Weights, and how many steps they were learned from; None for a policy that only plays."""

    weights: Weights
    step: int | None


class LatestPolicy:
    """Written by its learner, read by any thread at any time. Outlives both the learner and the run."""

    def __init__(self, snapshot: PolicySnapshot) -> None:
        self.snapshot = snapshot


class WatchedPolicy:
    """A Policy that takes the most likely actions where `is_greedy`, and else samples them as in training.

    step: at which it was learned. last: the agents that acted last, and their actions.
    """

    def __init__(self, spec: BehaviorSpec, make: MakePolicy, latest: LatestPolicy) -> None:
        self.is_greedy = True
        self.step: int | None = None
        self.version = -1
        self.last: tuple[Int64, Actions] | None = None
        self.observations = spec.observations
        self._latest = latest
        self._policies = {is_greedy: make(is_greedy) for is_greedy in (True, False)}
        self.memory_size = self._policies[True].memory_size
        self.update()

    def update(self) -> None:
        """Act as the newest policy from now on."""
        newest = self._latest.snapshot
        self.step = newest.step
        if newest.weights.version != self.version:
            self.load(newest.weights)

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """One action for every agent that waits."""
        choice = self._policies[self.is_greedy].act(decisions, memories)
        self.last = decisions.agent_ids.copy(), choice.actions
        return choice

    def load(self, weights: Weights) -> None:
        """Act with these weights from now on."""
        self.version = weights.version
        for policy in self._policies.values():
            policy.load(weights)

    def state(self) -> State:
        """The random generator of sampled actions."""
        return self._policies[False].state()

    def load_state(self, state: State) -> None:
        """Continue sampling from `state`."""
        self._policies[False].load_state(state)
