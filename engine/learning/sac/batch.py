"""Mini-batches of soft actor-critic on the device of its networks.

Shapes: B rows, A continuous dimensions, M mask columns, S reward streams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.learning.distributions import one_hot
from rl_tui.engine.learning.feature_layout import Features
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.replay.buffer import Minibatch
from rl_tui.engine.learning.sac.networks import SoftNetworks
from rl_tui.engine.learning.sac.recurrent_state import RecurrentState, recurrent_state
from rl_tui.engine.specs import ActionSpec, Bool, Float32, Int64, Observations

Array: TypeAlias = Any  # torch tensor, or numpy array
PlaceAll: TypeAlias = Callable[[list[NDArray[Any]]], list[Array]]


@dataclass(frozen=True, slots=True)
class SoftBatch:
    """Steps from the replay buffer, on the device of the networks.

    continuous: f32[B, A], squashed. chosen: f32[B, M], 1 for each branch's choice. allowed, next_allowed: the same
    shape, 0 for a forbidden choice, or None. rewards: f32[B, S]. discounts: f32[B, S], factors of the next values, zero
    after the end of an episode. weights: f32[B], of the critics' errors. noise, next_noise: f32[B, A], standard normal.
    """

    features: Features
    next_features: Features
    continuous: Array
    chosen: Array
    allowed: Array | None
    next_allowed: Array | None
    rewards: Array
    discounts: Array
    weights: Array
    noise: Array
    next_noise: Array
    recurrent_state: RecurrentState | None


def soft_batch(
    minibatch: Minibatch,
    networks: SoftNetworks,
    actions: ActionSpec,
    masks_terminal: Bool,
    noise: Float32,
    split: Callable[[Observations], tuple[NDArray[Any], ...]],
    place_all: PlaceAll,
) -> SoftBatch:
    """A mini-batch on the device of the networks, to which all of it is copied together.

    masks_terminal: bool[S], streams whose next value is zero after an end. noise: f32[2, B, A], for observations and
    for next observations. split: returns features on the host.
    """
    ends, weights = minibatch.terminated[:, None] & masks_terminal, minibatch.weights
    if networks.value is None:  # the next value needs the next mask
        weights = weights * minibatch.next_mask_is_known
    features, following = split(minibatch.observations), split(minibatch.next_observations)
    columns = {
        "continuous": minibatch.continuous_actions,
        "chosen": one_hot(minibatch.discrete_actions, actions.branches),
        "rewards": minibatch.rewards,
        "discounts": np.where(ends, np.float32(0), minibatch.discounts),
        "weights": weights,
        "noise": noise[0],
        "next_noise": noise[1],
    }
    masks = {"allowed": minibatch.action_mask, "next_allowed": minibatch.next_action_mask}
    columns |= {name: mask.astype(np.float32) for name, mask in masks.items() if mask is not None}
    memories = {"memories": minibatch.memories, "value_memories": minibatch.value_memories}
    columns |= {name: memory for name, memory in memories.items() if memory is not None}
    arrived = place_all([*features, *following, *columns.values()])
    here, after = tuple(arrived[: len(features)]), tuple(arrived[len(features) : 2 * len(features)])
    placed = dict(zip(columns, arrived[2 * len(features) :], strict=True))
    state = _recurrent_state(
        minibatch.lengths,
        networks,
        here,
        placed["continuous"],
        placed.pop("memories", None),
        placed.pop("value_memories", None),
    )
    optional = {name: placed.pop(name, None) for name in masks}
    return SoftBatch(features=here, next_features=after, recurrent_state=state, **optional, **placed)


def _recurrent_state(
    lengths: Int64 | None,
    networks: SoftNetworks,
    features: Features,
    continuous: Array,
    memories: Array | None,
    value_memories: Array | None,
) -> RecurrentState | None:
    if lengths is None or memories is None:
        return None
    values = None if value_memories is None else Sequences(lengths, value_memories)
    return recurrent_state(networks, features, continuous, Sequences(lengths, memories), values)
