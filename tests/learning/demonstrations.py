"""Demonstrations in memory, as a file of them would be read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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

    def __init__(
        self,
        observations: Observations,
        continuous: Float32,
        discrete: Int64,
        lengths: list[int],
        endings: NDArray[np.int8] | None = None,
    ):
        """continuous: as the environment got them. endings: i8[N], None where no episode is recorded to its end."""
        self.observations, self.continuous, self.discrete = observations, continuous, discrete
        self.endings = np.zeros(len(discrete), np.int8) if endings is None else endings
        ends = np.cumsum(lengths)
        self.episodes: Int64 = np.stack([ends - lengths, ends], 1)
        self.num_steps = int(ends[-1])
        self.reads: list[Int64] = []

    def transitions(self, rows: Int64, *, with_next: bool = True) -> Transitions:
        """The steps in these rows, without what follows them, of which no part of the engine learns."""
        assert not with_next
        self.reads.append(rows)
        return Transitions(
            observations=tuple(column[rows] for column in self.observations),
            next_observations=(),
            endings=self.endings[rows],
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


def recorded(block: Trajectories, is_squashed: bool = False, is_whole: bool = False) -> Recorded:
    """What a policy did, as the environment saw it. is_whole: without segments that an agent goes on with."""
    is_kept = block.endings != CUT if is_whole else np.ones(len(block.lengths), np.bool_)
    rows = np.repeat(is_kept, block.lengths)
    bounded = block.continuous_actions
    if not is_squashed:
        bounded = bounded.clip(-ACTION_LIMIT, ACTION_LIMIT) / np.float32(ACTION_LIMIT)
    return Recorded(
        tuple(column[rows] for column in block.observations),
        bounded[rows],
        block.discrete_actions[rows],
        block.lengths[is_kept].tolist(),
        Transitions.of(block).endings[rows],
    )
