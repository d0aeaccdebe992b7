"""What shows agents which side to move to: the side itself, a set, a goal or an image.  Shapes: N agents."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rl_tui.engine.sampling.environments.toys.moves import draw_sides
from rl_tui.engine.specs import Float32, Observations, ObservationSpec


class Cue(Protocol):
    """Something that agents observe, and the side that it means."""

    @property
    def observations(self) -> tuple[ObservationSpec, ...]:
        """The specs of what is observed."""

    def draw(self, random: np.random.Generator, num_agents: int) -> tuple[Observations, Float32]:
        """What every agent observes, and its side, f32[N] of -1 and +1."""


class Side:
    """The side itself."""

    observations = (ObservationSpec("side", (1,)),)

    def draw(self, random: np.random.Generator, num_agents: int) -> tuple[Observations, Float32]:
        """The side, as it is."""
        sides = draw_sides(random, num_agents)
        return (sides[:, None],), sides


class Entities:
    """At most `num_entities` entities with a position and a weight: the side of the heaviest, relative to the agent.

    Entities are in [-1, 1], agents in [-0.5, 0.5], weights in (0, 1]. There are 1 to `num_entities` entities in random
    order, followed by rows of zeros. Guessing from the agent's position alone returns 0.25.
    """

    def __init__(self, num_entities: int = 6) -> None:
        self.observations = (ObservationSpec("entities", (num_entities, 2)), ObservationSpec("position", (1,)))
        self._num_entities = num_entities

    def draw(self, random: np.random.Generator, num_agents: int) -> tuple[Observations, Float32]:
        """Entities (position, weight) f32[N, num_entities, 2], agents' positions f32[N, 1]."""
        shape = num_agents, self._num_entities
        there = np.arange(self._num_entities) < random.integers(1, self._num_entities + 1, num_agents)[:, None]
        weights = np.where(there, 1.0 - random.random(shape), 0.0)
        places = np.where(there, random.uniform(-1.0, 1.0, shape), 0.0)
        positions = random.uniform(-0.5, 0.5, num_agents)
        heaviest = places[np.arange(num_agents), weights.argmax(axis=1)]
        sides = np.where(heaviest > positions, 1.0, -1.0)
        entities = np.stack([places, weights], axis=2).astype(np.float32)
        return (entities, positions[:, None].astype(np.float32)), sides.astype(np.float32)


class Goals:
    """Each of `num_targets` targets is on some side; the goal, 1 for one of them, says which of them is rewarded."""

    def __init__(self, num_targets: int = 4) -> None:
        shape = (num_targets,)
        self.observations = (ObservationSpec("targets", shape), ObservationSpec("goal", shape, is_goal=True))
        self._num_targets = num_targets

    def draw(self, random: np.random.Generator, num_agents: int) -> tuple[Observations, Float32]:
        """The side of every target and the goal, f32[N, num_targets] each."""
        targets = draw_sides(random, num_agents * self._num_targets).reshape(num_agents, self._num_targets)
        goals = random.integers(0, self._num_targets, num_agents)
        shown = np.eye(self._num_targets, dtype=np.float32)[goals]
        return (targets, shown), targets[np.arange(num_agents), goals]


class Pixels:
    """A bright square in the left or the right half of a noisy image: the side that it is on."""

    def __init__(self, size: int = 20) -> None:
        self.observations = (ObservationSpec("image", (size, size, 1), "uint8"),)
        self._size = size

    def draw(self, random: np.random.Generator, num_agents: int) -> tuple[Observations, Float32]:
        """u8[N, size, size, 1]: noise up to 63, the square from 192 on."""
        size, side = self._size, self._size // 4
        images = random.integers(0, 64, (num_agents, size, size, 1), np.uint8)
        sides = draw_sides(random, num_agents)
        tops = random.integers(0, size - side + 1, num_agents)
        lefts = random.integers(0, size // 2 - side + 1, num_agents) + np.where(sides > 0, (size + 1) // 2, 0)
        within = np.arange(side)
        rows, columns = tops[:, None, None] + within[:, None], lefts[:, None, None] + within
        images[np.arange(num_agents)[:, None, None], rows, columns] += 192
        return (images,), sides
