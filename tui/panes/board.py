"""The board of a game in characters: fields with their marks, and on those that are free the keys that take them.

A mark is a square of half blocks, so that it looks the same in every size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rl_tui.engine.session.games import EMPTY, OTHER, OWN, Board
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, line, merged

OWN_TONE: Tone = "series-1"
OTHER_TONE: Tone = "series-2"
HIGHEST = 9  # rows of a field: larger ones are no easier to see
RULE: Tone = "faint"
BLOCKS = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}
STROKE, RING, HOLE = 0.3, 0.98, 0.6  # of a cross; outer and inner radius of a circle, both of half a square


@dataclass(frozen=True, slots=True)
class BoardStyle:
    """keys, is_allowed: of each choice. advised: the choice of the policy. is_first: the person moves first, and has
    the crosses. glyphs: without braille, there are letters alone."""

    keys: tuple[str, ...]
    is_allowed: tuple[bool, ...]
    advised: int | None
    is_first: bool
    glyphs: Glyphs


def board_lines(board: Board, style: BoardStyle, width: int, height: int) -> list[Line]:
    """The board as large as has room; empty where it has none."""
    rows, columns = len(board.fields), len(board.fields[0])
    around = (2, 3) if board.by_column else (rows - 1, columns - 1)  # lines and columns that are no fields
    for size in range(min(HIGHEST, (height - around[0]) // rows), 0, -1):
        if columns * field_width(size, by_column=board.by_column) + around[1] <= width:
            return _dropped(board, style, size) if board.by_column else _ruled(board, style, size)
    return []


def mark_span(*, is_own: bool, is_first: bool, by_column: bool, glyphs: Glyphs) -> Span:
    """The mark of one side, as it is drawn where it is one cell. is_first: the person moves first."""
    mark = _mark(is_own == is_first, is_disc=by_column, size=1, glyphs=glyphs)[0]
    return Span(mark, OWN_TONE if is_own else OTHER_TONE)


def field_width(rows: int, *, by_column: bool) -> int:
    """Columns of a field of so many rows: its mark, and beside it a blank, or what marks the newest on both sides."""
    if by_column:
        return max(3, _num_dots(rows, by_column=True) + 1)
    return max(5, _num_dots(rows, by_column=False) + 2)


def _num_dots(rows: int, *, by_column: bool) -> int:
    """The side of a mark, half blocks are two to a row. Those that stand on each other leave one free, where they are
    still round without it."""
    return 2 * rows - (by_column and rows > 2)


def _ruled(board: Board, style: BoardStyle, size: int) -> list[Line]:
    """Fields between rules, each with its key."""
    glyphs, width = style.glyphs, field_width(size, by_column=False)
    wall, floor, cross = (glyphs.wall, glyphs.floor, "┼") if glyphs.braille else ("|", "-", "+")
    rule = line(Span(cross.join([floor * width] * len(board.fields[0])), RULE))
    lines: list[Line] = []
    for row, contents in enumerate(board.fields):
        fields = [_field(board, style, size, row, column) for column in range(len(contents))]
        lines += [rule] * (row > 0) + _beside(fields, Span(wall, RULE))
    return lines


def _dropped(board: Board, style: BoardStyle, size: int) -> list[Line]:
    """Columns in a frame that is open above, where their keys stand; below it, where the others have just played."""
    glyphs, width = style.glyphs, field_width(size, by_column=True)
    left, right, here = ("╰", "╯", "▲") if glyphs.braille else ("+", "+", "^")
    wall, floor = Span(glyphs.wall, RULE), Span(glyphs.floor, RULE)
    columns = range(len(board.fields[0]))
    heads = [
        _label(style, column, width) if style.is_allowed[column] else (Span(_middle(style.keys[column], width), RULE),)
        for column in columns
    ]
    lines = [line("  ", *(span for head in heads for span in head))]
    for row, contents in enumerate(board.fields):
        fields = [_field(board, style, size, row, column) for column in range(len(contents))]
        lines += [line(wall, " ", *spans, wall) for spans in _beside(fields, Span(""))]
    played = {column for row, column in board.newest if board.fields[row][column] == OTHER}
    bottom = [Span(left, RULE), floor]
    for column in columns:
        sign = Span(here, "strong") if column in played else floor
        bottom += [*[floor] * ((width - 1) // 2), sign, *[floor] * (width - 1 - (width - 1) // 2)]
    return [*lines, merged([*bottom, Span(right, RULE)])]


def _beside(fields: Sequence[list[Line]], between: Span) -> list[Line]:
    """Fields of one row side by side."""
    lines: list[Line] = []
    for parts in zip(*fields, strict=True):
        spans = [span for part in parts for span in (between, *part)]
        lines.append(line(*spans[1:]))
    return lines


def _field(board: Board, style: BoardStyle, size: int, row: int, column: int) -> list[Line]:
    """The lines of one field."""
    width, content = field_width(size, by_column=board.by_column), board.fields[row][column]
    if content == EMPTY:
        choice = row * len(board.fields[0]) + column
        free = line(Span(_middle(_dot(style.glyphs), width), RULE))
        middle = free if board.by_column else line(*_label(style, choice, width))
        return [middle if at == (size - 1) // 2 else line(Span(" " * width)) for at in range(size)]
    tone = OWN_TONE if content == OWN else OTHER_TONE
    is_cross = (content == OWN) == style.is_first
    mark = _mark(is_cross, is_disc=board.by_column, size=size, glyphs=style.glyphs)
    if board.by_column:
        return [line(Span(_middle(drawn, width), tone)) for drawn in mark]
    is_new = content == OTHER and (row, column) in board.newest
    left, right = _sides(size, style.glyphs) if is_new else ([" "] * size, [" "] * size)
    return [
        line(Span(left[at], "strong"), Span(drawn.center(width - 2), tone), Span(right[at], "strong"))
        for at, drawn in enumerate(mark)
    ]


def _middle(words: str, width: int) -> str:
    """The words in the middle of so many columns, rather to the left: str.center sides now here, now there."""
    before = (width - len(words)) // 2
    return " " * before + words + " " * (width - before - len(words))


def _label(style: BoardStyle, choice: int, width: int) -> Sequence[Span]:
    """The key that takes a choice, in the middle; a dot where it cannot be taken."""
    key = style.keys[choice]
    if not style.is_allowed[choice]:
        return (Span(_middle(_dot(style.glyphs), width), RULE),)
    if choice != style.advised:
        return (Span(_middle(key, width), "accent"),)
    words = f" {key} "
    before = (width - len(words)) // 2
    return Span(" " * before), Span(words, "flag"), Span(" " * (width - before - len(words)))


def _dot(glyphs: Glyphs) -> str:
    return glyphs.dot if glyphs.braille else "."


def _sides(size: int, glyphs: Glyphs) -> tuple[list[str], list[str]]:
    """What stands at both sides of a mark that the others have just made."""
    if size == 1:
        return ["["], ["]"]
    top, bottom = (("┌", "┐"), ("└", "┘")) if glyphs.braille else (("+", "+"), ("+", "+"))
    blank = [" "] * (size - 2)
    return [top[0], *blank, bottom[0]], [top[1], *blank, bottom[1]]


def _mark(is_cross: bool, *, is_disc: bool, size: int, glyphs: Glyphs) -> list[str]:
    """The rows of one mark: a cross or a circle, and where pieces are dropped a disc or a circle."""
    letter = "X" if is_cross else "O"
    if size == 1:
        return [letter if not (is_disc and glyphs.braille) else glyphs.running if is_cross else "○"]
    side = _num_dots(size, by_column=is_disc)
    dots = [[y < side and _has(x, y, side, is_cross, is_disc) for x in range(side)] for y in range(2 * size)]
    pairs = [list(zip(dots[2 * at], dots[2 * at + 1], strict=True)) for at in range(size)]
    if glyphs.braille:
        return ["".join(BLOCKS[pair] for pair in row) for row in pairs]
    return ["".join(letter if any(pair) else " " for pair in row) for row in pairs]


def _has(x: int, y: int, side: int, is_cross: bool, is_disc: bool) -> bool:
    """Whether a square of so many dots has one there."""
    right, down = (2 * x + 1) / side - 1, (2 * y + 1) / side - 1  # from -1 to 1
    if is_cross and not is_disc:
        return abs(abs(right) - abs(down)) <= STROKE and max(abs(right), abs(down)) < 0.9
    radius = (right * right + down * down) ** 0.5
    return radius <= RING and (is_cross or radius >= HOLE)
