"""An agent that is not trained: it acts at random."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.sampling.environments.action_space import ActionCodec
from rl_tui.engine.sampling.environments.pettingzoo.columns import mask_rows, observes_mask
from rl_tui.engine.sampling.environments.pettingzoo.episodes import Action, AgentName, Seen
from rl_tui.engine.sampling.environments.pettingzoo.roles import Spaces
from rl_tui.engine.specs import Actions


class RandomAgent:
    """Takes each allowed choice with equal probability, and continuous actions uniformly within their bounds."""

    def __init__(self, agent: AgentName, spaces: Spaces) -> None:
        observation_space, action_space = spaces
        self._codec = ActionCodec(action_space, str(agent))
        self._observes_mask = observes_mask(observation_space, self._codec.spec.mask_size)

    def act(self, seen: Seen, random: np.random.Generator) -> Action:
        """An element of its action space."""
        spec, mask = self._codec.spec, mask_rows(self._codec, [seen], self._observes_mask)
        continuous = random.uniform(-1, 1, (1, spec.continuous)).astype(np.float32)
        chances = random.random(spec.mask_size)
        if mask is not None:
            chances[~mask[0]] = -1.0
        ends = np.cumsum(spec.branches, dtype=np.int64)
        chosen = [int(chances[end - size : end].argmax()) for end, size in zip(ends, spec.branches, strict=True)]
        return self._codec.rows(Actions(continuous, np.array([chosen], np.int64)))[0]
