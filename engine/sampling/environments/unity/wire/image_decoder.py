"""Decodes the images of all agents of a message, in several threads: Pillow decodes without Python's lock."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import ObservationProto
from rl_tui.engine.sampling.environments.unity.wire.errors import WireError
from rl_tui.engine.sampling.environments.unity.wire.images import decode
from rl_tui.engine.sampling.environments.unity.wire.sensors import Sensor
from rl_tui.engine.specs import Observation

_FEW = 4  # are decoded without another thread
_THREADS = min(4, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class CompressedImage:
    """One agent's observation, and the row [H, W, C] to decode it into."""

    sensor: Sensor
    observation: ObservationProto
    row: Observation


class ImageDecoder:
    """Owns threads, which end with it. They are started by the first message with more than a few images."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    def decode(self, images: Sequence[CompressedImage]) -> None:
        """Fill the row of every image. Raises WireError for one that is damaged, naming behavior and observation."""
        if len(images) <= _FEW or _THREADS == 1:
            _decode_each(images)
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS - 1, "rl-tui-images")
        left = iter(images)  # each thread takes the next one, so that none waits for another that has no processor
        others = [self._threads.submit(_decode_each, left) for _ in range(_THREADS - 1)]
        _decode_each(left)
        for other in others:
            if not other.cancel():  # it had begun
                other.result()


def _decode_each(images: Iterable[CompressedImage]) -> None:
    for image in images:
        observation = image.observation
        try:
            decode(observation.compressed_data, tuple(observation.compressed_channel_mapping), image.row)
        except WireError as error:
            raise WireError(f"{image.sensor.where}: {error}") from error
