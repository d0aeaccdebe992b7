"""Tasks of one step: a cue is shown, and moving to the side that it means is rewarded.  Shapes: N agents."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rl_tui.engine.sampling.environments.rendering import Frame, enlarged
from rl_tui.engine.sampling.environments.toys.cues import Cue
from rl_tui.engine.sampling.environments.toys.moves import (
    ACTION_SPECS,
    ActionKind,
    choice_names_of,
    mask_away_from,
    moves,
)
from rl_tui.engine.specs import (
    Actions,
    BehaviorSpec,
    DecisionSteps,
    Float32,
    Int64,
    Observations,
    Steps,
    TerminalSteps,
)


class OneStep:
    """Every step is a whole episode: a cue is shown, the reward is side * move, terminated."""

    def __init__(
        self, behavior: str, num_agents: int, cue: Cue, actions: ActionKind = "discrete", masked: bool = False
    ) -> None:
        """masked: the choice that leads away from the side is forbidden."""
        self._cue = cue
        self._masked = masked and actions != "continuous"
        names = choice_names_of(actions)
        spec = BehaviorSpec(behavior, self._cue.observations, ACTION_SPECS[actions], choice_names=names)
        self.specs: Mapping[str, BehaviorSpec] = {behavior: spec}
        self.num_agents: Mapping[str, int] = {behavior: num_agents}
        self._behavior = behavior
        self._ids: Int64 = np.arange(num_agents, dtype=np.int64)
        self._random = np.random.default_rng()
        self._shown: Observations = ()
        self._sides: Float32 = np.zeros(num_agents, np.float32)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Show a cue to every agent."""
        self._random = np.random.default_rng(seed)
        return {self._behavior: Steps(self._begin())}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Reward every agent's move and show it another cue."""
        rewards = (self._sides * moves(actions[self._behavior])).astype(np.float32)
        never = np.zeros(len(self._ids), np.bool_)
        terminals = TerminalSteps(self._ids, self._shown, rewards, never)
        return {self._behavior: Steps(self._begin(), terminals)}

    def render(self) -> Frame | None:
        """The image that agent 0 observes, if there is one."""
        images = [shown for shown in self._shown if shown.dtype == np.uint8]
        return enlarged(images[0][0]) if images else None

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self) -> DecisionSteps:
        self._shown, self._sides = self._cue.draw(self._random, len(self._ids))
        mask = mask_away_from(self._sides) if self._masked else None
        return DecisionSteps(self._ids, self._shown, np.zeros(len(self._ids), np.float32), mask)
