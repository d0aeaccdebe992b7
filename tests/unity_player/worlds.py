"""The worlds that a player can have inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tests.unity_player.arguments import Options
from tests.unity_player.ball import NUM_AGENTS, BallWorld
from tests.unity_player.messages import Acts, Brain, Said, Speech


class World(Protocol):
    """What happens in a player, one message after another."""

    brains: Mapping[str, Brain]

    def reset(self) -> Said:
        """New episodes; nothing is said of those that were running."""

    def step(self, acts: Mapping[str, Acts]) -> Said:
        """What follows the actions of the agents that waited. acts: of every behavior that had any."""


def make_world(options: Options, seed: int, num_areas: int, speech: Speech) -> World:
    """The world of a task."""
    if options.task == "ball":
        num = (options.agents or NUM_AGENTS) * num_areas
        return BallWorld(options.behavior or "3DBall?team=0", seed, num, options.max_steps, options.ids == "stay")
    raise NotImplementedError(options.task)
