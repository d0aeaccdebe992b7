"""A rollout that PPO splits into mini-batches.  Shapes: R reward streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from rl_tui.engine.learning.agent_state import AgentState
from rl_tui.engine.learning.feature_layout import Features
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.on_policy.rollout import Columns, Rollout, RolloutMinibatch
from rl_tui.engine.specs import Float32, Int64

Array: TypeAlias = Any  # numpy array on the CPU, torch tensor elsewhere
FEATURES = "features."  # prefix of their columns


@dataclass(frozen=True, slots=True)
class PreparedRollout:
    """A rollout on the network's device: columns and sequences to split into mini-batches, mean value estimates f32[R],
    and the critic's memories of unfinished episodes afterwards. rollout: what the rows are of."""

    columns: Columns
    sequences: Sequences | None
    mean_values: Float32
    agents: AgentState
    rollout: Rollout

    def sample(self, rows: Int64, columns: Columns, advantages: Array) -> RolloutMinibatch:
        """These rows i64[B], as hooks and custom losses see them. columns: of these rows."""
        own = {name: columns[name] for name in ("log_probs", "returns", "values")}
        return self.rollout.minibatch(rows, advantages=advantages, **own)


def features_of(columns: Columns) -> Features:
    """The networks' inputs among the columns."""
    return tuple(column for name, column in columns.items() if name.startswith(FEATURES))
