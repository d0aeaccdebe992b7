"""The weights of policies in a file that the training process shares with all workers of a pool."""

from __future__ import annotations

import math
import mmap
import os
import time
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import numpy as np

from rl_tui.engine.sampling.pools.shared_memory import anonymous_file, whole_pages
from rl_tui.engine.specs import Float32, Int64, Json, Weights

Shapes: TypeAlias = list[tuple[str, list[int]]]  # of the arrays by name, in their order
_WORD = np.dtype(np.int64).itemsize
WRITING_SECONDS = 1e-4  # after which a reader looks again whether they are whole


class _Region:
    """The weights of one policy: their version, all arrays, and the version again. One process writes, from front to
    back, and others read, from back to front: a copy between two equal versions is whole."""

    def __init__(self, file: int, offset: int, shapes: Shapes) -> None:
        sizes = [math.prod(shape) for _, shape in shapes]
        num_bytes = 2 * _WORD + 4 * (sum(sizes) + sum(sizes) % 2)
        self.end = offset + whole_pages(num_bytes)
        if os.fstat(file).st_size < self.end:
            os.truncate(file, self.end)
        memory = mmap.mmap(file, self.end - offset, offset=offset)
        words: Int64 = np.ndarray((num_bytes // _WORD,), np.int64, memory)
        self._versions = words[:1], words[-1:]
        self.arrays: dict[str, Float32] = {}
        start = _WORD
        for (name, shape), size in zip(shapes, sizes, strict=True):
            self.arrays[name] = np.ndarray(shape, np.float32, memory, start)
            start += 4 * size

    def write(self, weights: Weights) -> None:
        """Replace them."""
        self._versions[0][0] = weights.version
        for name, array in self.arrays.items():
            array[...] = weights.arrays[name]
        self._versions[1][0] = weights.version

    @property
    def version(self) -> int:
        """The newest that was whole."""
        return int(self._versions[1][0])

    def read(self) -> Weights:
        """A copy of the newest, once they are not being written."""
        while True:
            weights = Weights(self.version, {name: array.copy() for name, array in self.arrays.items()})
            if int(self._versions[0][0]) == weights.version:
                return weights
            time.sleep(WRITING_SECONDS)


class SharedWeights:
    """The side of the training process. One thread writes, while workers read."""

    def __init__(self) -> None:
        self.descriptor = anonymous_file("rl-tui-weights")
        self._regions: dict[str, tuple[_Region, int, Shapes]] = {}
        self._end = 0

    def write(self, behavior: str, weights: Weights) -> None:
        """Replace the weights of a behavior; the first time, make room for them."""
        shapes: Shapes = [(name, list(array.shape)) for name, array in weights.arrays.items()]
        if behavior not in self._regions:
            region = _Region(self.descriptor, self._end, shapes)
            self._regions[behavior] = region, self._end, shapes
            self._end = region.end
        region, _, known = self._regions[behavior]
        assert dict(shapes) == dict(known), "a policy's weights keep their names and shapes"  # a file sorts them
        region.write(weights)

    def place(self, behavior: str) -> Json:
        """Where a worker finds the weights of a behavior."""
        _, offset, shapes = self._regions[behavior]
        return {"offset": offset, "shapes": cast(Json, [list(shape) for shape in shapes])}

    def close(self) -> None:
        """Free the file; workers keep their own descriptors."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
        self._regions.clear()


class WeightsReader:
    """The side of a worker, for one behavior."""

    def __init__(self, file: int, place: Json) -> None:
        described = cast(Mapping[str, Any], place)
        shapes: Shapes = [(str(name), list(shape)) for name, shape in described["shapes"]]
        self._region = _Region(file, int(described["offset"]), shapes)

    @property
    def version(self) -> int:
        """The newest."""
        return self._region.version

    def read(self) -> Weights:
        """A copy of the newest."""
        return self._region.read()
