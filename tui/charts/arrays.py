"""numpy, imported when the first array is made: the first picture has none, and it would come a fifth later."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, TypeAlias

__all__ = ["Bools", "Codes", "Counts", "Floats", "Indices", "Points", "np"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Bools: TypeAlias = NDArray[np.bool_]
    Indices: TypeAlias = NDArray[np.int64]
    Counts: TypeAlias = NDArray[np.uint64]
    Codes: TypeAlias = NDArray[np.uint8]  # of braille characters
    Points: TypeAlias = NDArray[np.uint32]  # characters, as their code points
else:
    Floats = Bools = Indices = Counts = Codes = Points = object  # annotations are never evaluated

    class _Numpy:
        def __getattr__(self, name: str) -> object:
            found = getattr(importlib.import_module("numpy"), name)
            setattr(self, name, found)  # the next time it costs nothing
            return found

    np = _Numpy()
