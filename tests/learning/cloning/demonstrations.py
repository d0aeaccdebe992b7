"""Demonstrations in memory, as a file of them would be read."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.learning.acting.distributions import ACTION_LIMIT
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import (
    CUT,
    ActionSpec,
    BehaviorSpec,
    Float32,
    Int64,
    Observations,
    ObservationSpec,
    Trajectories,
)
from tests.learning.rollouts import observed

SEEN = (ObservationSpec("speed", (3,)), ObservationSpec("angle", (2,)))
SPECS = {
    "continuous": BehaviorSpec("Walker", SEEN, ActionSpec(2)),
    "discrete": BehaviorSpec("Walker", SEEN, ActionSpec(0, (3, 2))),
    "hybrid": BehaviorSpec("Walker", SEEN, ActionSpec(2, (3, 2))),
}


class Recorded:
    """Demonstrations of whole episodes, which counts what is read of it."""

    def __init__(self, observations: Observations, continuous: Float32, discrete: Int64, lengths: list[int]):
        """continuous: as the environment got them."""
        self.observations, self.continuous, self.discrete = observations, continuous, discrete
        ends = np.cumsum(lengths)
        self.episodes: Int64 = np.stack([ends - lengths, ends], 1)
        self.num_steps = int(ends[-1])
        self.reads: list[Int64] = []

    def transitions(self, rows: Int64) -> Transitions:
        """The steps in these rows."""
        self.reads.append(rows)
        seen = tuple(column[rows] for column in self.observations)
        return Transitions(
            observations=seen,
            next_observations=seen,
            endings=np.zeros(len(rows), np.int8),
            continuous_actions=self.continuous[rows],
            discrete_actions=self.discrete[rows],
        )


def random_demonstrations(spec: BehaviorSpec, lengths: list[int], seed: int = 3) -> Recorded:
    """Episodes of these lengths, of random observations and actions."""
    random, count = np.random.default_rng(seed), sum(lengths)
    return Recorded(
        observed(random, count, spec),
        random.uniform(-1, 1, (count, spec.actions.continuous)).astype(np.float32),
        np.stack([random.integers(0, size, count) for size in spec.actions.branches], 1)
        if spec.actions.branches
        else np.zeros((count, 0), np.int64),
        lengths,
    )


def recorded(block: Trajectories, is_squashed: bool) -> Recorded:
    """What a policy did, as the environment saw it: segments that an agent goes on with are left out."""
    ended = np.repeat(block.endings != CUT, block.lengths)
    bounded = block.continuous_actions if is_squashed else block.continuous_actions.clip(-3, 3) / ACTION_LIMIT
    return Recorded(
        tuple(column[ended] for column in block.observations),
        bounded[ended].astype(np.float32),
        block.discrete_actions[ended],
        block.lengths[block.endings != CUT].tolist(),
    )
