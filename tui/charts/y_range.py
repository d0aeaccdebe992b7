"""A range of the y axis chosen by hand: how it is typed, and how it is said."""

from __future__ import annotations

import math
from typing import TypeAlias

from rl_tui.tui.charts.reducing import LARGEST

YRange: TypeAlias = tuple[float | None, float | None]  # (low, high); None: as the values ask
AUTOMATIC: YRange = (None, None)
FORMS = '"low high", half-open as "0 .." or ".. 500", or "auto"'


def typed_range(text: str) -> YRange:
    """The range that was typed. Raises ValueError with words for the user."""
    words = text.replace("..", " .. ").split()
    if words in ([], ["auto"], [".."]):
        return AUTOMATIC
    lows, highs = words[:1], words[1:]
    if ".." in words:
        at = words.index("..")
        lows, highs = words[:at], words[at + 1 :]
    elif len(words) != 2:
        raise ValueError(f"must be {FORMS}, got {text.strip()!r}")
    if max(len(lows), len(highs)) > 1:
        raise ValueError(f"must be {FORMS}, got {text.strip()!r}")
    chosen = _end(lows), _end(highs)
    if not is_range(chosen):
        raise ValueError(f"the first number must be below the second, got {lows[0]} and {highs[0]}")
    return chosen


def is_range(chosen: YRange) -> bool:
    """Whether an axis can have it: both ends are distinguishable numbers, where given."""
    low, high = chosen
    if any(end is not None and not abs(end) < LARGEST / 10 for end in chosen):
        return False
    return low is None or high is None or high - low > 1e-9 * max(abs(low), abs(high))


def range_words(chosen: YRange) -> str:
    """The range as it stands in a title; "" for the automatic one."""
    low, high = chosen
    if low is not None and high is not None:
        return f"y {low:.6g} to {high:.6g}"
    return f"y from {low:.6g}" if low is not None else f"y up to {high:.6g}" if high is not None else ""


def range_text(chosen: YRange) -> str:
    """The range as it may be typed."""
    low, high = ("" if end is None else f"{end:.15g}" for end in chosen)
    return f"{low} .. {high}".strip() if low or high else "auto"


def _end(words: list[str]) -> float | None:
    if not words:
        return None
    try:
        value = float(words[0])
    except ValueError:
        value = math.nan
    if not abs(value) < LARGEST / 10:
        raise ValueError(f"must be {FORMS}, got {words[0]!r}")
    return value
