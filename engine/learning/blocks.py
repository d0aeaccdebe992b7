"""What every trainer does with a block of experience.  Shapes: N rows, K branches."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.errors import NonFiniteError
from rl_tui.engine.specs import Float32, Int64, Trajectories


def require_finite(block: Trajectories) -> None:
    """Return if every reward is a finite number, else raise NonFiniteError naming the agent."""
    if not np.isfinite(block.rewards).all():
        row = int(np.flatnonzero(~np.isfinite(block.rewards))[0])
        agent = int(np.repeat(block.agent_ids, block.lengths)[row])
        raise NonFiniteError(f"agent {agent} got the reward {block.rewards[row]}; the policy as it stands was kept")


def one_hot(chosen: Int64, branches: tuple[int, ...]) -> Float32:
    """f32[N, sum of branches] of i64[N, K]: 1 in the column of each branch's choice."""
    columns = np.zeros((len(chosen), sum(branches)), np.float32)
    starts = np.cumsum([0, *branches[:-1]]) if branches else np.empty(0, np.int64)
    np.put_along_axis(columns, chosen + starts, 1.0, axis=1)
    return columns
