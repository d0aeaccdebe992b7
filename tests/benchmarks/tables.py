"""Plain text tables, and what is in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import stdev


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The rows under their heads: the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = []
    for row in (head, *rows):
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def standard_error(values: Sequence[float]) -> float:
    """Of the mean; there must be two or more."""
    return stdev(values) / math.sqrt(len(values))


def verdict(is_reached: bool) -> str:
    """A mark's outcome in one word."""
    return "reached" if is_reached else "MISSED"


def row(name: str, found: float, mark: float, unit: str, decimals: int = 0) -> tuple[str, str, str, str]:
    """A figure that should not exceed its mark, as cells of a table."""
    return name, f"{found:,.{decimals}f} {unit}", f"{mark:,.{decimals}f} {unit}", verdict(found <= mark)
