"""A share as a bar of text."""

from __future__ import annotations

import math

from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, line


def bar(share: float, width: int, glyphs: Glyphs, tone: Tone) -> Line:
    """`width` cells, filled by `share` (0 to 1; anything else is taken to the nearer end, NaN to 0)."""
    filled = round((0.0 if math.isnan(share) else min(1.0, max(0.0, share))) * width)
    return line(Span(glyphs.bar * filled, tone), Span(glyphs.bar_rest * (width - filled), "faint"))
