"""Demonstrations in the place of an environment, for behaviors that learn from nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rl_tui.engine.demonstrations.opening import open_demonstrations, require_found
from rl_tui.engine.sampling.environments.base import Environment, EnvironmentKind
from rl_tui.engine.sampling.environments.settings import DemonstrationsSettings
from rl_tui.engine.sampling.environments.without_agents import WithoutAgents


class DemonstrationsInPlace(EnvironmentKind[DemonstrationsSettings]):
    """What "demonstrations:PATH" names."""

    def make(self, name: str, behavior: str, copies: range, settings: DemonstrationsSettings) -> Sequence[Environment]:
        """Without an agent; it observes and does what is demonstrated. Raises DemonstrationError."""
        return [WithoutAgents(replace(open_demonstrations(name).spec, name=behavior))]

    def require(self, name: str) -> None:
        """There are such files. Raises DemonstrationError."""
        require_found(name)
