"""Blocks of numbered rows: every step has a number, and every row that closes a segment."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.learning.replay.layout import ReplayLayout
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Bool, Ending, Float32, Int64, ObservationSpec, Trajectories

SPEC = BehaviorSpec(
    "Walker", (ObservationSpec("speed", (2,)), ObservationSpec("camera", (2, 2, 3), "uint8")), ActionSpec(2, (3, 2))
)
MEMORY = 4  # columns that a policy remembers in these blocks


def layout(
    capacity: int = 20,
    time_horizon: int = 5,
    memory_size: int = 0,
    value_memory_size: int = 0,
    sequence_length: int = 1,
    alpha: float | None = None,
) -> ReplayLayout:
    """For these blocks, with two reward streams."""
    return ReplayLayout(SPEC, capacity, time_horizon, 2, memory_size, value_memory_size, sequence_length, alpha)


def block(
    first: int, lengths: list[int], endings: list[Ending] | None = None, masked: bool = False, memory: bool = False
) -> Trajectories:
    """Segments of these lengths, CUT by default, their rows numbered from `first` on in the order of the ring."""
    numbers = first + np.arange(sum(lengths) + len(lengths))
    closing = np.cumsum(np.array(lengths) + 1) - 1
    steps, closings = np.delete(numbers, closing), numbers[closing]
    return Trajectories(
        observations=(speed(steps), camera(steps)),
        continuous_actions=speed(steps) * 2,
        discrete_actions=np.stack([steps % 3, steps % 2], 1),
        log_probs=np.zeros((len(steps), 4), np.float32),
        action_mask=mask(steps) if masked else None,
        rewards=np.zeros(len(steps), np.float32),
        lengths=np.array(lengths),
        begins=np.ones(len(lengths), np.bool_),
        endings=np.array([Ending.CUT] * len(lengths) if endings is None else endings, np.int8),
        next_observations=(speed(closings), camera(closings)),
        agent_ids=np.arange(len(lengths)),
        episode_returns=np.empty(0, np.float32),
        episode_lengths=np.empty(0, np.int64),
        policy_version=0,
        next_action_mask=mask(closings) if masked else None,
        memories=np.repeat(steps[:, None], MEMORY, 1).astype(np.float32) if memory else None,
    )


def speed(numbers: Int64) -> Float32:
    """The vector that is seen in these rows."""
    return np.stack([numbers, -numbers], 1).astype(np.float32)


def camera(numbers: Int64) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """The image that is seen in these rows."""
    return np.broadcast_to((numbers % 251)[:, None, None, None], (len(numbers), 2, 2, 3)).astype(np.uint8)


def mask(numbers: Int64) -> Bool:
    """What is allowed in these rows: always two choices."""
    return np.stack([numbers % 2 == 0, numbers % 3 == 0, numbers >= 0, numbers % 5 == 0, numbers >= 0], 1)


def rewards(made: Trajectories) -> Float32:
    """f32[N, 2] by the number of the row."""
    numbers = made.observations[0][:, 0]
    return np.stack([np.sin(numbers), np.cos(numbers)], 1).astype(np.float32)
