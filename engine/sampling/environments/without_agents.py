"""An environment for behaviors that learn offline: it says what they observe and do, and nothing happens in it."""

from __future__ import annotations

from collections.abc import Mapping

from rl_tui.engine.specs import Actions, BehaviorSpec, Steps


class WithoutAgents:
    """One behavior without agents."""

    def __init__(self, spec: BehaviorSpec):
        self.specs: Mapping[str, BehaviorSpec] = {spec.name: spec}
        self.num_agents: Mapping[str, int] = {spec.name: 0}

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """No agent begins an episode."""
        return {}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """No agent acts."""
        return {}

    def close(self) -> None:
        """There is nothing to free."""
