"""Tasks of one step: a scene is shown, and going to the side it means pays.  Shapes: N agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from rl_tui.engine.sampling.environments.rendering import Frame, enlarged
from rl_tui.engine.sampling.environments.toys.moves import ACTION_SPECS, ActionKind, draw_sides, mask_away_from, moves
from rl_tui.engine.specs import (
    Actions,
    BehaviorSpec,
    DecisionSteps,
    Float32,
    Int64,
    Observations,
    ObservationSpec,
    Steps,
    TerminalSteps,
)


class Scene(Protocol):
    """What agents are shown, and what it means."""

    @property
    def observations(self) -> tuple[ObservationSpec, ...]:
        """The specs of what is shown."""

    def draw(self, random: np.random.Generator, num_agents: int) -> tuple[Observations, Float32]:
        """What every agent sees, and the side of each, f32[N] of -1 and +1."""


class Sides:
    """The side itself."""

    observations = (ObservationSpec("side", (1,)),)

    def draw(self, random: np.random.Generator, num_agents: int) -> tuple[Observations, Float32]:
        """The side, as it is."""
        sides = draw_sides(random, num_agents)
        return (sides[:, None],), sides


class OneStep:
    """Every step is a whole episode: a scene is shown, the reward is side * move, terminated."""

    def __init__(
        self,
        behavior: str,
        num_agents: int,
        actions: ActionKind = "discrete",
        masked: bool = False,
        scene: Scene | None = None,
    ) -> None:
        """masked: the choice that leads away from the side is forbidden. scene: Sides unless told otherwise."""
        self._scene = scene or Sides()
        self._masked = masked and actions != "continuous"
        self.specs: Mapping[str, BehaviorSpec] = {
            behavior: BehaviorSpec(behavior, self._scene.observations, ACTION_SPECS[actions])
        }
        self.num_agents: Mapping[str, int] = {behavior: num_agents}
        self._behavior = behavior
        self._ids: Int64 = np.arange(num_agents, dtype=np.int64)
        self._random = np.random.default_rng()
        self._shown: Observations = ()
        self._sides: Float32 = np.zeros(num_agents, np.float32)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """A scene for every agent."""
        self._random = np.random.default_rng(seed)
        return {self._behavior: Steps(self._begin())}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Reward every agent's move and show it another scene."""
        rewards = (self._sides * moves(actions[self._behavior])).astype(np.float32)
        never = np.zeros(len(self._ids), np.bool_)
        terminals = TerminalSteps(self._ids, self._shown, rewards, never)
        return {self._behavior: Steps(self._begin(), terminals)}

    def render(self) -> Frame | None:
        """The image that agent 0 sees, if it sees one."""
        images = [shown for shown in self._shown if shown.dtype == np.uint8]
        return enlarged(images[0][0]) if images else None

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self) -> DecisionSteps:
        self._shown, self._sides = self._scene.draw(self._random, len(self._ids))
        mask = mask_away_from(self._sides) if self._masked else None
        return DecisionSteps(self._ids, self._shown, np.zeros(len(self._ids), np.float32), mask)
