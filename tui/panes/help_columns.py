"""The keys that have a use now, in columns: those of the screen first, then those of every screen."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.drawing.text import left
from rl_tui.tui.keys.keymap import Key, Place
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.keys_line import keys_with_use

LINES = 12  # of a page that is read at a glance
NARROWEST, MOST_COLUMNS = 23, 4
KEY_WIDTH = 8
OF_ALL: tuple[Place, ...] = ("run", "replay", "anywhere")  # the places that are on every screen
OF_COURSE = ("left", "right", "previous", "next", "pane-before", "help")  # keys that need no help
HERE, EVERYWHERE = "On this screen", "On every screen"

Row = tuple[str, str]  # a key and its word; a heading has no key


def help_columns(frame: Frame, here: Sequence[Place], width: int) -> list[Line]:
    """At most LINES lines; where all do not fit, keys of every screen are left out. here: places, the nearest first."""
    columns = laid_out(*keys_now(frame, here), max(1, min(MOST_COLUMNS, width // NARROWEST)))
    each = width // len(columns)
    rows = range(max(len(column) for column in columns))
    return [
        line(
            *(
                span
                for column in columns
                for span in _spans(column[row] if row < len(column) else ("", ""), each, frame)
            )
        )
        for row in rows
    ]


def keys_now(frame: Frame, here: Sequence[Place]) -> tuple[list[Row], list[Row]]:
    """The keys of the screen and its pane that do something now, and those of every screen, the most useful first."""
    keys = [key for key in keys_with_use(frame, here) if key.id not in OF_COURSE]
    near = [
        key for key in keys if set(key.places).isdisjoint((*OF_ALL, "list")) and not set(here).isdisjoint(key.places)
    ]
    far = [key for key in keys if not set(OF_ALL).isdisjoint(key.places)]
    far.sort(key=lambda key: 1000 if key.footer_rank is None else key.footer_rank)
    near.sort(key=lambda key: next(at for at, place in enumerate(here) if place in key.places))
    return [_row(key) for key in near], [_row(key) for key in far]


def laid_out(near: Sequence[Row], far: Sequence[Row], num_columns: int) -> list[list[Row]]:
    """Keys below headings, in columns of at most LINES; those of the screen have all columns but the last."""
    if num_columns == 1:
        rest = LINES - 1 - len(near)
        return [[("", HERE), *near[: LINES - 1], *([("", EVERYWHERE), *far[: rest - 1]] if rest > 1 else [])]]
    of_screen = _columns(HERE, near, num_columns - 1) if near else []
    return [*of_screen, *_columns(EVERYWHERE, far, num_columns - len(of_screen))]


def _columns(heading: str, rows: Sequence[Row], most: int) -> list[list[Row]]:
    """In as few columns as they need, equally long; what is too much is left out."""
    room = LINES - 1
    needed = max(1, min(most, -(-len(rows) // room)))
    length = min(room, -(-len(rows) // needed))
    starts = range(0, needed * length, length)
    return [[("", heading if start == 0 else ""), *rows[start : start + length]] for start in starts]


def _row(key: Key) -> Row:
    """Its shortest name."""
    return min(key.shown.split(", "), key=len), key.label


def _spans(row: Row, width: int, frame: Frame) -> Line:
    key, word = row
    ellipsis = frame.glyphs.ellipsis
    if not key:
        return line(Span(left(f" {word}", width, ellipsis), "strong"))
    shown = Span(left(f" {key}", KEY_WIDTH, ellipsis), "accent")
    return line(shown, left(word, max(0, width - KEY_WIDTH), ellipsis))
