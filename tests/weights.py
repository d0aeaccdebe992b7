"""Weights of untrained policies, as a trainer hands them out."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from engine.specs import ActionSpec, BehaviorSpec, Float32, ObservationSpec, Weights

CARTPOLE = BehaviorSpec("CartPole", (ObservationSpec("observation", (4,)),), ActionSpec(branches=(2,)))
HOPPER = BehaviorSpec("Hopper", (ObservationSpec("observation", (11,)),), ActionSpec(continuous=3))
MIXED = BehaviorSpec(
    "Mixed",
    (ObservationSpec("position", (3,)), ObservationSpec("grid", (2, 4)), ObservationSpec("speed", (1,))),
    ActionSpec(continuous=2, branches=(3, 2)),
)
KINDS = [CARTPOLE, HOPPER, MIXED]


def random_weights(spec: BehaviorSpec, is_normalized: bool = False, hidden: int = 16, seed: int = 0) -> Weights:
    """Two hidden layers; means and logits large enough that actions differ from row to row."""
    random = np.random.default_rng(seed)
    columns = sum(math.prod(observation.shape) for observation in spec.observations)
    widths = [columns, hidden, hidden, spec.actions.continuous + spec.actions.mask_size]
    arrays: dict[str, Float32] = {}
    for index, (inputs, outputs) in enumerate(pairwise(widths)):
        arrays[f"layers.{index}.weight"] = random.normal(0, 2 / math.sqrt(inputs), (outputs, inputs)).astype(np.float32)
        arrays[f"layers.{index}.bias"] = random.normal(0, 0.1, outputs).astype(np.float32)
    if spec.actions.continuous:
        arrays["log_sigma"] = random.normal(-0.5, 0.3, spec.actions.continuous).astype(np.float32)
    if is_normalized:
        arrays["normalizer.mean"] = random.normal(0, 10, columns).astype(np.float32)
        arrays["normalizer.scale"] = np.exp(random.normal(0, 3, columns)).astype(np.float32)
    return Weights(1, arrays)
