"""Normalized vector observations, to act and to learn (ML-Agents' formulas).  Shapes: N rows, D columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from rl_tui.engine.specs import Float32

LIMIT = 5.0  # normalized values are clipped to +-5


def normalize(rows: Float32, mean: Float32, scale: Float32) -> Float32:
    """f32[N, D], centered, scaled and clipped."""
    normalized: Float32 = ((rows - mean) * scale).clip(-LIMIT, LIMIT)  # np.clip takes twice as long
    return normalized


def normalization(arrays: Mapping[str, Float32]) -> Callable[[Float32], Float32] | None:
    """What normalizes vectors f32[N, D] with the numbers of these weights; None where they have none."""
    mean, scale = arrays.get("normalizer.mean"), arrays.get("normalizer.scale")
    return None if mean is None or scale is None else partial(normalize, mean=mean, scale=scale)
