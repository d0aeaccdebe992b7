"""Sums of discounted terms over packed segments.  Shapes: N rows."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Float = TypeVar("Float", np.float32, np.float64)


def discounted_sums(terms: NDArray[Float], factors: NDArray[Float], longest: int) -> NDArray[Float]:
    """y with y[i] = terms[i] + factors[i] * y[i + 1], all rows at once.

    terms, factors: [N, ...]; a factor of zero ends a sum; that of the last row must be zero. longest: at least the
    number of rows in any sum. Takes log2(longest) passes over doubling windows (Hillis and Steele 1986).
    """
    sums, products = terms.copy(), factors.copy()
    window = 1
    while window < longest:
        sums[:-window] += products[:-window] * sums[window:]
        products[:-window] *= products[window:]
        window *= 2
    return sums
