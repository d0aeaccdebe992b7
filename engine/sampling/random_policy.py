"""Policies that learn nothing: for environments that are tried out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rl_tui.engine.specs import Actions, BehaviorSpec, Choice, DecisionSteps, State, Steps, Weights


class RandomPolicy:
    """Implements Policy: every allowed action with equal probability."""

    memory_size = 0

    def __init__(self, spec: BehaviorSpec, seed: int) -> None:
        self.version = 0
        self._spec = spec
        self._random = np.random.default_rng(seed)

    def act(self, decisions: DecisionSteps, memories: object = None) -> Choice:
        """One action for every agent that waits."""
        count, actions = len(decisions.agent_ids), self._spec.actions
        continuous = self._random.uniform(-1, 1, (count, actions.continuous)).astype(np.float32)
        discrete, first = np.zeros((count, len(actions.branches)), np.int64), 0
        for branch, size in enumerate(actions.branches):
            chances = self._random.random((count, size))
            if decisions.action_mask is not None:
                chances = np.where(decisions.action_mask[:, first : first + size], chances, -1.0)
            discrete[:, branch] = chances.argmax(axis=1)
            first += size
        log_probs = np.zeros((count, actions.num_columns), np.float32)
        return Choice(Actions(continuous, discrete), continuous, log_probs)

    def load(self, weights: Weights) -> None:
        """Nothing to load."""

    def state(self) -> State:
        """Empty."""
        return State()

    def load_state(self, state: State) -> None:
        """Nothing to load."""


class RandomPolicies:
    """One for each behavior, made when its agents first act."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._policies: dict[str, RandomPolicy] = {}

    def act(self, steps: Mapping[str, Steps], specs: Mapping[str, BehaviorSpec]) -> dict[str, Actions]:
        """Actions of all agents of an instance that wait, by behavior."""
        chosen = {}
        for name, own in steps.items():
            if len(own.decisions.agent_ids):
                if name not in self._policies:
                    self._policies[name] = RandomPolicy(specs[name], self._seed)
                chosen[name] = self._policies[name].act(own.decisions).actions
        return chosen
