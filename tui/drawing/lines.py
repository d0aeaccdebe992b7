"""Lines of spans, each a text in a tone whose color is in app.tcss."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from rich.cells import set_cell_size

from rl_tui.engine.session.messages import LogLevel
from rl_tui.engine.session.states import BehaviorState, RunState
from rl_tui.tui.drawing.text import fit, left, num_cells, wrapped

Tone: TypeAlias = Literal[
    "text", "dim", "faint", "strong", "accent", "good", "wait", "warning", "bad", "flag", "alarm",
    "series-1", "series-2", "series-3", "series-4", "series-5", "series-6",
]  # fmt: skip
SERIES: tuple[Tone, ...] = ("series-1", "series-2", "series-3", "series-4", "series-5", "series-6")


class Span(NamedTuple):
    """Part of a line in one tone."""

    text: str
    tone: Tone = "text"


Line: TypeAlias = tuple[Span, ...]


def line(*spans: Span | str) -> Line:
    """The non-empty spans in order; a bare string has the tone of plain text."""
    made = [each if isinstance(each, Span) else Span(each) for each in spans]
    return tuple([span for span in made if span.text])


def cells(spans: Line) -> int:
    """How many terminal cells the line takes."""
    return num_cells("".join([span.text for span in spans]))


def clip(spans: Line, width: int, ellipsis: str = "…") -> Line:
    """The line in at most `width` cells."""
    if cells(spans) <= width:
        return spans
    kept: list[Span] = []
    room = width
    for span in spans:
        needed = num_cells(span.text)
        if needed > room:
            kept.append(Span(fit(span.text, room, ellipsis), span.tone))
            break
        kept.append(span)
        room -= needed
    return tuple(kept)


def flush(spans: Line, end: Line, width: int) -> Line:
    """`spans` at the left and `end` at the right edge; `end` is left out if both do not fit."""
    room = width - cells(spans) - cells(end)
    return (*spans, Span(" " * room), *end) if room >= 1 else spans


def pack(parts: list[Line], width: int, gap: int = 3) -> Line:
    """The parts side by side, as many as fit; the first is the most important."""
    packed: Line = ()
    for part in parts:
        spaced = (*packed, Span(" " * gap), *part) if packed else part
        if not part or cells(spaced) > width:
            continue
        packed = spaced
    return packed


def wrap(text: str, width: int, max_lines: int) -> list[str]:
    """`text` broken at spaces into at most `max_lines` lines of at most `width` cells, the last one cut."""
    words, rows = text.split(), [""]
    for at, word in enumerate(words):
        joined = f"{rows[-1]} {word}".strip()
        if num_cells(joined) <= width:
            rows[-1] = joined
        elif len(rows) == max_lines:
            rows[-1] = fit(" ".join([rows[-1], *words[at:]]).strip(), width)
            break
        elif rows[-1]:
            rows.append(fit(word, width))
        else:
            rows[-1] = fit(word, width)
    return rows


def merged(row: Iterable[Span]) -> Line:
    """The spans, with neighbors of one tone joined."""
    return tuple(Span("".join(s.text for s in group), tone) for tone, group in groupby(row, key=lambda s: s.tone))


def labeled(label: str, text: str, width: int, label_width: int = 11) -> list[Line]:
    """All of `text` next to its label, on as many lines as needed."""
    rows = wrapped(text, max(2, width - label_width - 1))
    first = line(Span(f" {left(label, label_width - 1)} ", "dim"), rows[0])
    return [first, *(line(" " * (label_width + 1), row) for row in rows[1:])]


def padded(spans: Line, width: int, fill: Tone = "text") -> Line:
    """The line in exactly `width` cells."""
    clipped = clip(spans, width)
    missing = width - cells(clipped)
    return (*clipped, Span(set_cell_size("", missing), fill)) if missing > 0 else clipped


def state_tone(state: RunState | BehaviorState) -> Tone:
    """The tone of a state."""
    match state:
        case "training" | "finished":
            return "good"
        case "paused" | "interrupted":
            return "warning"
        case "stopped":
            return "text"
        case "failed" | "unsaved":
            return "bad"
        case _:
            return "wait"


def level_tone(level: LogLevel) -> Tone:
    """The tone of a log level."""
    match level:
        case "error":
            return "bad"
        case "warning":
            return "warning"
        case "debug":
            return "faint"
        case _:
            return "dim"


def centered(spans: Sequence[Span], height: int, width: int) -> list[Line]:
    """The texts in the middle of so many cells, each in at most three rows."""
    rows = [Span(row, span.tone) for span in spans for row in wrap(span.text, width - 2, 3)]
    top = max(0, (height - len(rows)) // 2)
    return [line()] * top + [line(" " * max(0, (width - len(row.text)) // 2), row) for row in rows]
