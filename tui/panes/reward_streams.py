"""What each reward stream of a behavior pays, and what its critic expects of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import NamedTuple

from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.drawing.text import fit, left, number, right

_TAG = re.compile(r"Policy/(.+) (Reward|Value|Value Estimate)")  # ML-Agents'


class Stream(NamedTuple):
    """The newest figures of a stream, of episodes and of states; None where one is not known."""

    reward: float | None
    value: float | None


def streams_of(metrics: Mapping[str, float]) -> dict[str, Stream]:
    """Every stream by its name, where there are several: of a single one all is shown elsewhere."""
    found: dict[str, Stream] = {}
    for tag, figure in metrics.items():
        if match := _TAG.fullmatch(tag):
            name, what = match.groups()
            before = found.get(name, Stream(None, None))
            found[name] = before._replace(**{"reward" if what == "Reward" else "value": figure})
    streams = {name: stream for name, stream in found.items() if stream.reward is not None}
    return streams if len(streams) > 1 else {}


def tags_of(metrics: Mapping[str, float]) -> Set[str]:
    """The tags whose figures are in `stream_lines`."""
    streams = streams_of(metrics)
    matches = {tag: _TAG.fullmatch(tag) for tag in metrics}
    return {tag for tag, match in matches.items() if match and match.group(1) in streams}


def stream_lines(metrics: Mapping[str, float], glyphs: Glyphs, name_width: int, value_width: int) -> list[Line]:
    """A line for each stream, below one that says what the figures are."""
    streams = streams_of(metrics)
    if not streams:
        return []
    head = f" {left('stream', name_width)}{right('reward', value_width)}{right('value', value_width + 2)}"
    return [
        line(Span(head, "dim")),
        *(_row(name, one, glyphs, name_width, value_width) for name, one in streams.items()),
    ]


def _row(name: str, stream: Stream, glyphs: Glyphs, name_width: int, value_width: int) -> Line:
    title = left(fit(safe_text(name).lower(), name_width, glyphs.ellipsis), name_width)
    reward, value = right(number(stream.reward), value_width), right(number(stream.value), value_width + 2)
    return line(Span(f" {title}", "dim"), reward, value)
