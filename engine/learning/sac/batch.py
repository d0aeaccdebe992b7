"""Mini-batches of soft actor-critic on the device of its networks.

Shapes: B rows, A continuous dimensions, M mask columns, S reward streams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rl_tui.engine.learning.distributions import one_hot
from rl_tui.engine.learning.feature_layout import Features
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.replay.buffer import Minibatch
from rl_tui.engine.learning.sac.networks import SoftNetworks
from rl_tui.engine.learning.sac.recurrent_state import RecurrentState, recurrent_state
from rl_tui.engine.specs import ActionSpec, Bool, Float32, Observations

Array: TypeAlias = Any  # torch tensor, or numpy array
Place: TypeAlias = Callable[[np.ndarray[Any, Any]], Array]


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
    to_features: Callable[[Observations], Features],
    place: Place,
) -> SoftBatch:
    """A mini-batch on the device of the networks.

    masks_terminal: bool[S], streams whose next value is zero after an end. noise: f32[2, B, A], for observations and
    for next observations. to_features: returns features on the device.
    """
    ends, weights = minibatch.terminated[:, None] & masks_terminal, minibatch.weights
    if networks.value is None:  # the next value needs the next mask
        weights = weights * minibatch.next_mask_is_known
    features, continuous = to_features(minibatch.observations), place(minibatch.continuous_actions)
    return SoftBatch(
        features=features,
        next_features=to_features(minibatch.next_observations),
        continuous=continuous,
        chosen=place(one_hot(minibatch.discrete_actions, actions.branches)),
        allowed=_placed_mask(minibatch.action_mask, place),
        next_allowed=_placed_mask(minibatch.next_action_mask, place),
        rewards=place(minibatch.rewards),
        discounts=place(np.where(ends, np.float32(0), minibatch.discounts)),
        weights=place(weights),
        noise=place(noise[0]),
        next_noise=place(noise[1]),
        recurrent_state=_recurrent_state(minibatch, networks, features, continuous, place),
    )


def _placed_mask(mask: Bool | None, place: Place) -> Array | None:
    return None if mask is None else place(mask.astype(np.float32))


def _recurrent_state(
    minibatch: Minibatch, networks: SoftNetworks, features: Features, continuous: Array, place: Place
) -> RecurrentState | None:
    lengths, memories, critics = minibatch.lengths, minibatch.memories, minibatch.value_memories
    if lengths is None or memories is None:
        return None
    values = None if critics is None else Sequences(lengths, place(critics))
    return recurrent_state(networks, features, continuous, Sequences(lengths, place(memories)), values)
