"""The seam between the program and a world with agents in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import Actions, BehaviorSpec, Steps


class Environment(Protocol):
    """One instance of a world, with any number of behaviors and agents. Lives in one thread or worker process.

    Agent ids are non-negative and unique within one instance. An agent's episode should end with a terminal step: the
    unfinished steps of one that is silent for very long are dropped when a newcomer needs its place. Methods may raise
    anything: the pool that owns the instance turns it into an EnvironmentFailure that names it.
    """

    @property
    def specs(self) -> Mapping[str, BehaviorSpec]:
        """Every behavior by name; fixed for the life of the instance."""

    @property
    def num_agents(self) -> Mapping[str, int]:
        """How many agents of each behavior usually act at once."""

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Start every agent's episode anew; the first decisions of every behavior."""

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Act for the agents of the last decisions, in their order, and tell what followed."""

    def close(self) -> None:
        """Free everything. Called once; nothing is called after it."""


@runtime_checkable
class Rendered(Protocol):
    """An environment that can be watched."""

    def render(self) -> NDArray[np.uint8] | str | None:
        """The world of the first agent as u8[H, W, 3], the caller's to keep, or as text; None where it shows neither.

        Environments made by `EnvironmentSource.showing_frames` show frames where they can, those made by `watched`
        whichever of the two they can.
        """


@runtime_checkable
class Paced(Protocol):
    """An environment that knows how fast it should be watched."""

    @property
    def render_hz(self) -> float | None:
        """The steps of a second; None where it does not say."""
