"""What a policy would do in the person's place."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.experience import take_decisions
from rl_tui.engine.learning.acting.policy import ActorPolicy
from rl_tui.engine.session.games import Advice
from rl_tui.engine.specs import Actions, BehaviorSpec, DecisionSteps, Float32, Policy


class Adviser:
    """Used by one thread. It sees every turn of the person, for the policy's memory. policy: greedy."""

    def __init__(self, policy: Policy, spec: BehaviorSpec) -> None:
        self._policy, self._spec = policy, spec
        self._decisions: DecisionSteps | None = None
        self._before: Float32 | None = None  # the memory with which it sees the newest turn
        self._after: Float32 | None = None
        self._choice = 0

    def begin(self) -> None:
        """A game begins."""
        self._decisions = self._before = self._after = None

    def see(self, decisions: DecisionSteps) -> None:
        """The person's agent waits, alone in these decisions."""
        self._decisions, self._before = decisions, self._after
        choice = self._policy.act(decisions, self._before) if self._policy.memory_size else self._policy.act(decisions)
        self._after = choice.memories
        self._choice = int(choice.actions.discrete[0, 0])

    def advice(self) -> Advice:
        """For the newest turn."""
        return Advice(self._choice, self._chances())

    def _chances(self) -> tuple[float, ...]:
        """Of each choice, where the policy knows: as if the agent had taken each of them."""
        if self._decisions is None or not isinstance(self._policy, ActorPolicy):
            return ()
        rows = np.zeros(self._spec.actions.mask_size, np.int64)
        actions = Actions(np.empty((len(rows), 0), np.float32), np.arange(len(rows))[:, None])
        memories = None if self._before is None else self._before[rows]
        evaluated = self._policy.evaluate(take_decisions(self._decisions, rows), actions, memories)
        chances = np.exp(evaluated.log_probs[:, 0])
        if self._decisions.action_mask is not None:
            chances = np.where(self._decisions.action_mask[0], chances, 0.0)
        return tuple(chances.tolist())
