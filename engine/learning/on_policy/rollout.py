"""Rollouts of on-policy algorithms.  Shapes: N rows, R reward streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeAlias

from rl_tui.engine.experience import join_trajectories, joined
from rl_tui.engine.learning.joint_steps import JointSteps, find_joint_steps
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import Float32, Int64, Trajectories

Array: TypeAlias = Any  # numpy array or torch tensor
Columns: TypeAlias = dict[str, Array]  # by name, all of the same rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutMinibatch(Transitions):
    """B steps of a rollout. Besides the columns of Transitions there are these, S = reward signals, W = A + K, or 1
    where ratios are joint. Those after `rewards` are numpy arrays, or tensors on the learner's device.

    rows: i64[B], in the rollout
    rewards: f32[B, S], what each signal paid, times its strength
    log_probs: f32[B, W], of the policy that acted
    advantages: f32[B], as the loss has them, normalized where it normalizes them
    returns: f32[B, S], which the critic learns
    values: f32[B, S], which the critic estimated when the update began
    """

    rows: Int64
    rewards: Float32
    log_probs: Array
    advantages: Array
    returns: Array
    values: Array


@dataclass(frozen=True)  # a cached property needs a dictionary
class Rollout:
    """The experience of one on-policy update, and its rewards f32[N, R], one column per stream."""

    experience: Trajectories
    rewards: Float32

    @cached_property
    def joint_steps(self) -> JointSteps:
        """Those of all rows."""
        return find_joint_steps(self.experience)

    @staticmethod
    def of(blocks: Sequence[tuple[Trajectories, Float32]]) -> Rollout:
        """Blocks joined in order, each with its rewards f32[N, R]."""
        return Rollout(join_trajectories([block for block, _ in blocks]), joined([rewards for _, rewards in blocks]))

    def minibatch(self, rows: Int64, **columns: Array) -> RolloutMinibatch:
        """These rows i64[B]. columns: those of `RolloutMinibatch` that a rollout does not have."""
        steps = Transitions.of(self.experience, rows)
        shared: dict[str, Any] = {name: getattr(steps, name) for name in _OF_TRANSITIONS}
        return RolloutMinibatch(rows=rows, rewards=self.rewards.take(rows, 0), **shared, **columns)


_OF_TRANSITIONS = [field.name for field in fields(Transitions)]


class RolloutBuffer:
    """Collects blocks until the next update; each row is used in one update only."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Trajectories, Float32]] = []
        self.num_rows = 0

    def add(self, block: Trajectories, rewards: Float32) -> None:
        """Keep a block with its rewards f32[N, R] of every stream."""
        self._blocks.append((block, rewards))
        self.num_rows += block.num_rows

    def drain(self) -> Rollout:
        """All rows in the order they came; the buffer is empty afterwards."""
        blocks, self._blocks, self.num_rows = self._blocks, [], 0
        return Rollout.of(blocks)
