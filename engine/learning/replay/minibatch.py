"""What one update learns from."""

from __future__ import annotations

from dataclasses import dataclass

from rl_tui.engine.specs import Bool, Float32, Int64, Observations


@dataclass(frozen=True, slots=True)
class Minibatch:
    """B steps drawn from a replay buffer: copies, which the buffer does not write again.

    Without memory each is drawn for itself. With memory they are S sequences of adjacent steps, packed, each sequence
    in time order.
    """

    rows: Int64  # i64[B], where they lie, for `ReplayBuffer.update_priorities`
    observations: Observations  # each [B, ...]
    next_observations: Observations  # each [B, ...]: what was seen after the n steps, or after the piece's last one
    continuous: Float32  # f32[B, A]
    discrete: Int64  # i64[B, K]
    action_mask: Bool | None  # bool[B, sum of branches], None while no mask was ever added
    next_action_mask: Bool | None  # likewise of what was seen next
    next_mask_is_known: Bool  # bool[B]: False after a truncation, of which only the observation is known
    rewards: Float32  # f32[B, S]: the discounted sum over the n steps, or over fewer up to the piece's end
    discounts: Float32  # f32[B, S]: gamma to the number of steps summed
    terminated: Bool  # bool[B]: the episode was over after the steps summed, nothing is earned any more
    weights: Float32  # f32[B]: importance weights, at most 1; 1 where all are drawn uniformly
    lengths: Int64 | None = None  # i64[S] of the sequences, None without memory
    memories: Float32 | None = None  # f32[S, M], what the policy remembered before the first row of each sequence
    value_memories: Float32 | None = None  # f32[S, V], what the critic remembered there; None without such a column
