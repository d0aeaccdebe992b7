"""What demonstrations hold, in numbers.

Shapes: A continuous dimensions, K branches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.demonstrations.opened import OpenedDemonstrations
from rl_tui.engine.specs import ObservationSpec

_BATCH = 1024  # steps that are decoded at once


@dataclass(frozen=True, slots=True)
class Spread:
    """Of several numbers: their mean, the lowest and the highest."""

    mean: float
    min: float
    max: float


@dataclass(frozen=True, slots=True)
class DemonstrationSummary:
    """path: as it was given. names: of the recordings, each once. bytes: of all files.

    num_records: also those at the ends of episodes, which are no steps. num_agents: different ids; current packages of
    Unity give each episode one of its own. num_unfinished: episodes of which the recording does not show the end.
    continuous: of each dimension. branches: how often each choice of each branch was taken.
    """

    path: str
    behavior: str
    names: tuple[str, ...]
    num_files: int
    bytes: int
    num_records: int
    num_agents: int
    num_steps: int
    num_episodes: int
    num_unfinished: int
    returns: Spread
    lengths: Spread
    observations: tuple[ObservationSpec, ...]
    continuous: tuple[Spread, ...]
    branches: tuple[tuple[int, ...], ...]


def summarize(demonstrations: OpenedDemonstrations, path: str) -> DemonstrationSummary:
    """The numbers of opened demonstrations; no observation is decoded."""
    spec, steps, origin = demonstrations.spec, demonstrations.steps, demonstrations.origin
    return DemonstrationSummary(
        path=path,
        behavior=spec.name,
        names=origin.names,
        num_files=len(origin.paths),
        bytes=sum(file.stat().st_size for file in origin.paths),
        num_records=origin.num_records,
        num_agents=len(np.unique(steps.agent_ids)),
        num_steps=steps.num_steps,
        num_episodes=len(steps.episodes),
        num_unfinished=steps.num_unfinished,
        returns=_spread(steps.episode_returns),
        lengths=_spread(steps.episode_lengths),
        observations=spec.observations,
        continuous=tuple(_spread(column) for column in steps.continuous.T),
        branches=tuple(
            tuple(np.bincount(choices, minlength=size).tolist())
            for choices, size in zip(steps.discrete.T, spec.actions.branches, strict=True)
        ),
    )


def require_decodable(demonstrations: OpenedDemonstrations) -> None:
    """Return if every observation can be decoded; keeps none. Raises DemonstrationError."""
    for first in range(0, demonstrations.num_steps, _BATCH):
        demonstrations.transitions(np.arange(first, min(first + _BATCH, demonstrations.num_steps)))


def _spread(values: NDArray[Any]) -> Spread:
    return Spread(float(values.mean(dtype=np.float64)), float(values.min()), float(values.max()))
