"""The encoder of all observations of a row as one row of columns.

Shapes: B rows, E encoded columns, G goal columns, U hidden units.
A network with a `Core` of its own behind an encoder has to pass the encoder's goals to it; see `TwinCritic`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from rl_tui.engine import registry
from rl_tui.engine.config.encoders import KIND
from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.errors import NotSupportedError
from rl_tui.engine.learning.encoders.entities import EMBEDDING, EntityEncoder
from rl_tui.engine.learning.encoders.images import image_encoder
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.specs import Bool


class ObservationEncoder(nn.Module):
    """Vectors as they are (already normalized), then U columns of every image, then 128 of all sets together.

    Raises ConfigError for an image too small for its encoder, PluginError for an installed one that fails,
    NotSupportedError for a set of entities as a goal next to one that conditions weights.
    """

    def __init__(self, random: np.random.Generator, layout: FeatureLayout, network: NetworkSettings):
        super().__init__()
        self._num_vectors = 1 if layout.columns else 0  # features that are not an image or a set
        others = list(enumerate(layout.others, self._num_vectors))
        self._images = [i for i, spec in others if spec.kind == "image"]
        self._sets = [i for i, spec in others if spec.kind == "entities"]
        self.images = nn.ModuleList(image_encoder(random, spec, network) for _, spec in others if spec.kind == "image")
        self._image_encoder = network.vis_encode_type
        own = layout.columns + len(self._images) * network.hidden_units
        sets = [spec for _, spec in others if spec.kind == "entities"]
        self.entities = EntityEncoder(random, own, sets) if sets else None
        self.outputs = own + (EMBEDDING if sets else 0)  # E
        self._goals = _ranges(_goal_columns(layout, network)) if network.goal_conditioning_type == "hyper" else []
        self.goal_outputs = sum(end - start for start, end in self._goals)  # G; 0 where goals are ordinary

    def forward(self, features: Features) -> Tensor:
        """f32[B, E]. Raises PluginError where an installed encoder fails."""
        own = [*features[: self._num_vectors]]
        with registry.blaming(KIND, self._image_encoder, "forward"):
            own += [encode(features[i]) for encode, i in zip(self.images, self._images, strict=True)]
        encoded = _joined(own) if own else None
        if self.entities is None:
            assert encoded is not None, "an agent has observations"
            return encoded
        attended = self.entities(encoded, [features[i] for i in self._sets])
        return attended if encoded is None else torch.cat([encoded, attended], 1)

    def goals(self, encoded: Tensor) -> Tensor | None:
        """f32[B, G]: the goals in `encoded`, which may have more columns appended; None when G = 0."""
        return _joined([encoded[:, start:end] for start, end in self._goals]) if self._goals else None


def _goal_columns(layout: FeatureLayout, network: NetworkSettings) -> Bool:
    """bool: which encoded columns, without those of sets, are of goals."""
    images = [spec.is_goal for spec in layout.others if spec.kind == "image"]
    columns = np.concatenate([layout.goal_columns, np.repeat(images, network.hidden_units).astype(np.bool_)])
    sets = [spec.name for spec in layout.others if spec.kind == "entities" and spec.is_goal]
    if sets and columns.any():  # without another goal it is an ordinary observation, as in ML-Agents
        raise NotSupportedError(
            f"observation {sets[0]}: a set of entities cannot be a goal next to one that conditions weights. "
            "goal_conditioning_type: none treats all goals as ordinary observations"
        )
    return columns


def _ranges(columns: Bool) -> list[tuple[int, int]]:
    """Start and end of every run of True."""
    edges = np.flatnonzero(np.diff(columns, prepend=False, append=False)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)
