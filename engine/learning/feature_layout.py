"""The inputs of networks: all vector observations of an agent side by side, then its images and sets one by one.

Shapes: N rows, D columns of all vector observations together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.specs import Bool, Float32, Json, Observation, Observations, ObservationSpec

Array: TypeAlias = Any  # numpy array on the CPU, torch tensor elsewhere
Features: TypeAlias = tuple[Array, ...]  # f32[N, D] unless D = 0, then every image and set as observed


@dataclass(frozen=True, slots=True)
class FeatureLayout:
    """The order of observations in the features. smallest_image: images with fewer rows or columns are vectors."""

    observations: tuple[ObservationSpec, ...]
    smallest_image: int = 1

    @staticmethod
    def of(observations: tuple[ObservationSpec, ...], network: NetworkSettings) -> FeatureLayout:
        """The layout for these networks, whose encoder needs images of a certain size."""
        return FeatureLayout(observations, network.encoder_settings.smallest)

    def to_json(self) -> Json:
        """What `from_json` reads."""
        return {
            "observations": [observation.to_json() for observation in self.observations],
            "smallest_image": self.smallest_image,
        }

    @staticmethod
    def from_json(written: Any) -> FeatureLayout:
        """The layout that was written."""
        observations = tuple(map(ObservationSpec.from_json, written["observations"]))
        return FeatureLayout(observations, written["smallest_image"])

    def is_vector(self, spec: ObservationSpec) -> bool:
        """Whether an observation is a vector, or an image that is read as one."""
        return spec.kind == "vector" or self.is_small_image(spec)

    def is_small_image(self, spec: ObservationSpec) -> bool:
        """Whether it is an image that is too small for the encoder: its numbers are read as a vector."""
        return spec.kind == "image" and min(spec.shape[:2]) < self.smallest_image

    @property
    def columns(self) -> int:
        """D."""
        return sum(math.prod(spec.shape) for spec in self.observations if self.is_vector(spec))

    @property
    def others(self) -> tuple[ObservationSpec, ...]:
        """Images and sets, in their order."""
        return tuple(spec for spec in self.observations if not self.is_vector(spec))

    @property
    def goal_columns(self) -> Bool:
        """bool[D]: those of goals."""
        vectors = [spec for spec in self.observations if self.is_vector(spec)]
        sizes = [math.prod(spec.shape) for spec in vectors]
        return np.repeat([spec.is_goal for spec in vectors], sizes).astype(np.bool_)

    @property
    def has_only_vectors(self) -> bool:
        """Whether there are vectors only."""
        return not self.others

    def is_plain(self, network: NetworkSettings) -> bool:
        """Whether a network is a stack of layers: there are only vectors, and no goal conditions its weights."""
        is_conditioned = network.goal_conditioning_type == "hyper" and bool(self.goal_columns.any())
        return self.has_only_vectors and not is_conditioned

    def split(
        self, observations: Observations, normalize: Callable[[Float32], Float32] | None = None
    ) -> tuple[NDArray[Any], ...]:
        """The features of observations. normalize: applied to the vectors, if there is one."""
        vectors = self.vectors(observations)
        if normalize is not None:
            vectors = normalize(vectors)
        others = [o for o, spec in zip(observations, self.observations, strict=True) if not self.is_vector(spec)]
        return (vectors, *others) if self.columns else tuple(others)

    def vectors(self, observations: Observations) -> Float32:
        """f32[N, D]: every vector of a row side by side."""
        pairs = zip(observations, self.observations, strict=True)
        found = [o if spec.kind == "vector" else _flat(o) for o, spec in pairs if self.is_vector(spec)]
        if len(found) == 1:
            return found[0]
        return np.concatenate([np.empty((len(observations[0]), 0), np.float32), *found], axis=1)


def _flat(images: Observation) -> Float32:
    """f32[N, H * W * C] of images; bytes keep their values."""
    return images.reshape(len(images), -1).astype(np.float32)
