"""A rollout as an update learns from it.  Shapes: N rows of a rollout, B rows of a mini-batch, R reward streams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch

from rl_tui.engine.learning.agent_state import AgentState
from rl_tui.engine.learning.feature_layout import Features
from rl_tui.engine.learning.joint_steps import JointExperience, JointInputs
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.on_policy.minibatches import Part
from rl_tui.engine.learning.on_policy.rollout import Rollout, RolloutMinibatch
from rl_tui.engine.learning.row_selection import RowSelection
from rl_tui.engine.specs import Float32, Int64

Array: TypeAlias = Any  # numpy array on the CPU, torch tensor elsewhere
Columns: TypeAlias = dict[str, Array]  # by name, all of the same rows


@dataclass(frozen=True, slots=True)
class Minibatch:
    """B rows of a rollout, as a loss sees them. rows: i64[B], in the rollout. features: the networks' inputs.

    columns: what the trainer has prepared, on the networks' device. Those of every trainer are

    continuous, chosen: f32[B, A] and f32[B, sum of branches], the actions, 1 for each branch's choice
    allowed: f32[B, sum of branches], 0 for a forbidden choice; missing where nothing was forbidden
    log_probs: f32[B, W], of the policy that acted
    advantage: f32[B]
    returns, values: f32[B, R], what the critic learns, and what it estimated before the update

    joint: the joint steps of these rows, for a critic that sees mates.
    """

    rollout: Rollout
    rows: Int64
    features: Features
    columns: Columns
    sequences: Sequences | None
    joint: JointInputs | None = None

    def __getitem__(self, name: str) -> Array:
        """A column."""
        return self.columns[name]

    @property
    def sample(self) -> RolloutMinibatch:
        """The same rows, as hooks and custom losses see them."""
        own = {name: self.columns[name] for name in ("log_probs", "returns", "values")}
        return self.rollout.minibatch(self.rows, advantages=self.columns["advantage"], **own)

    def as_tensors(self) -> Minibatch:
        """The same memory as tensors."""
        columns = {name: torch.as_tensor(column) for name, column in self.columns.items()}
        return replace(self, features=tuple(map(torch.as_tensor, self.features)), columns=columns)


@dataclass(frozen=True, slots=True)
class PreparedRollout:
    """A rollout on the networks' device, to be split into mini-batches. sequences: with which memories it is read,
    None without memory. mean_values: f32[R], of the estimates. agents: the critic's memories of unfinished episodes
    afterwards. joint: the joint steps of all rows, for a critic that sees mates."""

    rollout: Rollout
    features: Features
    columns: Columns
    sequences: Sequences | None
    mean_values: Float32
    agents: AgentState
    joint: JointExperience | None = None

    @property
    def num_rows(self) -> int:
        """N."""
        return self.rollout.experience.num_rows

    def minibatch(self, part: Part) -> Minibatch:
        """The rows of a part."""
        select = RowSelection(part.rows, part.placed_rows)
        features = tuple([select(column) for column in self.features])
        own = {name: select(column) for name, column in self.columns.items() if name not in part.columns}
        columns = {**own, **part.columns}
        joint = None if self.joint is None else self.joint.select(part.rows)
        return Minibatch(self.rollout, part.rows, features, columns, part.sequences, joint)
