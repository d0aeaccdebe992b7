"""Episodes to record, and files of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from rl_tui.engine.demonstrations.file_writer import DemonstrationWriter, Episode
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec

EVERY_KIND = BehaviorSpec(
    "Walker",
    (
        ObservationSpec("vector", (3,)),
        ObservationSpec("goal", (2,), is_goal=True),
        ObservationSpec("set", (4, 2)),
        ObservationSpec("gray", (5, 4, 1), "uint8"),
        ObservationSpec("color", (6, 7, 3), "uint8"),
        ObservationSpec("stacked", (4, 5, 5), "uint8"),
        ObservationSpec("depth", (3, 4, 2)),
    ),
    ActionSpec(2, (3, 200)),
)
VECTORS = BehaviorSpec("Ball", (ObservationSpec("position", (3,)), ObservationSpec("aim", (2,))), ActionSpec(2))
CHOICES = BehaviorSpec("Basic", (ObservationSpec("place", (4,)),), ActionSpec(0, (3, 2)))
IMAGES = BehaviorSpec("Eye", (ObservationSpec("camera", (6, 8, 3), "uint8"),), ActionSpec(0, (4,)))


def episode(spec: BehaviorSpec, length: int, ending: int, seed: int, *, has_mask: bool = False) -> Episode:
    """An episode of random numbers, with a mask that forbids no choice that was taken."""
    chance = np.random.default_rng(seed)
    discrete = np.stack([chance.integers(0, size, length) for size in spec.actions.branches] or [[]] * length, -1)
    mask = None
    if has_mask:
        mask = chance.random((length, spec.actions.mask_size)) < 0.5
        offsets = np.cumsum((0, *spec.actions.branches[:-1]))
        np.put_along_axis(mask, discrete + offsets, True, axis=1)
    return Episode(
        observations=tuple(
            chance.integers(0, 256, (length + 1, *one.shape)).astype(np.uint8)
            if one.dtype == "uint8"
            else chance.normal(size=(length + 1, *one.shape)).astype(np.float32)
            for one in spec.observations
        ),
        continuous=chance.uniform(-1, 1, (length, spec.actions.continuous)).astype(np.float32),
        discrete=discrete.reshape(length, -1).astype(np.int64),
        rewards=chance.normal(size=length).astype(np.float32),
        ending=ending,
        action_mask=mask,
    )


def episodes(spec: BehaviorSpec, lengths_and_endings: Iterable[tuple[int, int]], seed: int = 1) -> list[Episode]:
    """Episodes of random numbers."""
    return [episode(spec, length, ending, seed + number) for number, (length, ending) in enumerate(lengths_and_endings)]


def write(path: Path, spec: BehaviorSpec, recorded: Sequence[Episode]) -> Path:
    """A file of these episodes."""
    with DemonstrationWriter(path, spec, path.stem) as writer:
        for each in recorded:
            writer.write(each)
    return path
