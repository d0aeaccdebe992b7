"""A policy that plays, with the memory of each agent.

Shapes: N agents that wait, M memory columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rl_tui.engine.specs import Actions, Choice, DecisionSteps, Float32, Int64, Policy


class Player:
    """Used by one thread. Owns the agents' memories."""

    def __init__(self, policy: Policy):
        self._policy = policy
        self._memories: dict[int, Float32] = {}

    def forget(self, agents: Int64 | None = None) -> None:
        """Agents whose episodes have ended begin with empty memories; None: all of them."""
        if agents is None:
            self._memories.clear()
        elif self._memories:
            for agent in agents.tolist():
                self._memories.pop(agent, None)

    @property
    def agents(self) -> Int64:
        """Those with a memory."""
        return np.array(list(self._memories), np.int64)

    def act(self, decisions: DecisionSteps) -> Actions:
        """The actions of the agents that wait."""
        return self.choose(decisions, self._policy.act).actions

    def choose(self, decisions: DecisionSteps, choose: Callable[..., Choice]) -> Choice:
        """What `choose` returns for these decisions and memories; `Policy.act` or the like."""
        if not self._policy.memory_size:
            return choose(decisions)
        agents = decisions.agent_ids.tolist()
        memories = np.zeros((len(agents), self._policy.memory_size), np.float32)
        for row, agent in enumerate(agents):
            if agent in self._memories:
                memories[row] = self._memories[agent]
        choice = choose(decisions, memories=memories)
        assert choice.memories is not None
        self._memories.update(zip(agents, choice.memories, strict=True))
        return choice
