"""Scenes that need more than a vector to be understood: a set, a goal, an image.  Shapes: N agents."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.sampling.environments.toys.moves import draw_sides
from rl_tui.engine.specs import Float32, Observations, ObservationSpec


class Entities:
    """At most `num_entities` things with a place and a weight: the side of the heaviest, seen from where one stands.

    Places are in [-1, 1], agents stand between -0.5 and 0.5, weights are in (0, 1]. Each scene has 1 to `num_entities`
    things in random order, followed by rows of zeros. To guess from where one stands alone returns 0.25.
    """

    def __init__(self, num_entities: int = 6) -> None:
        self.observations = (ObservationSpec("entities", (num_entities, 2)), ObservationSpec("position", (1,)))
        self._num_entities = num_entities

    def draw(self, random: np.random.Generator, num_agents: int) -> tuple[Observations, Float32]:
        """Places and weights f32[N, num_entities, 2], positions f32[N, 1]."""
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
    """Each of `num_targets` targets lies on some side; the goal, 1 for one of them, says which of them pays."""

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
    """A bright square in the left or the right half of a noisy image: the side where it is."""

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
