"""Boards in characters, in every size."""

from __future__ import annotations

import pytest

from rl_tui.engine.session.games import EMPTY, OTHER, OWN, Board
from rl_tui.tui.drawing.glyphs import ASCII, UNICODE, Glyphs
from rl_tui.tui.drawing.lines import cells
from rl_tui.tui.panes.board import OTHER_TONE, OWN_TONE, BoardStyle, board_lines, field_width
from tests.tui.snapshots import check

FIELDS = Board(((OWN, OTHER, EMPTY), (EMPTY, OWN, EMPTY), (OTHER, EMPTY, EMPTY)), False, frozenset({(2, 0), (1, 1)}))
COLUMNS = Board(
    (
        *[(EMPTY,) * 7] * 4,
        (EMPTY, EMPTY, EMPTY, OTHER, EMPTY, EMPTY, EMPTY),
        (EMPTY, OWN, OTHER, OWN, EMPTY, EMPTY, OWN),
    ),
    True,
    frozenset({(4, 3), (5, 6)}),
)
BOARDS = {"fields": FIELDS, "columns": COLUMNS}


def style(board: Board, glyphs: Glyphs = UNICODE, *, is_first: bool = True, advised: int | None = None) -> BoardStyle:
    flat = board.fields[0] if board.by_column else [field for row in board.fields for field in row]
    keys = tuple(str(at + 1) for at in range(len(flat)))
    return BoardStyle(keys, tuple(field == EMPTY for field in flat), advised, is_first, glyphs)


def text_of(board: Board, width: int, height: int, glyphs: Glyphs = UNICODE, *, is_first: bool = True) -> str:
    lines = board_lines(board, style(board, glyphs, is_first=is_first), width, height)
    assert len(lines) <= height
    assert max(map(cells, lines)) <= width
    return "\n".join("".join(span.text for span in spans).rstrip() for spans in lines) + "\n"


@pytest.mark.parametrize("kind", BOARDS)
@pytest.mark.parametrize(("width", "height"), [(30, 9), (46, 20), (80, 36)])
def test_board_is_as_large_as_has_room(kind: str, width: int, height: int) -> None:
    check(f"board-{kind}-{width}x{height}", text_of(BOARDS[kind], width, height))


@pytest.mark.parametrize("kind", BOARDS)
def test_without_unicode_marks_are_letters(kind: str) -> None:
    text = text_of(BOARDS[kind], 46, 20, ASCII)
    assert text.isascii()
    check(f"board-{kind}-ascii", text)


@pytest.mark.parametrize("kind", BOARDS)
def test_there_is_no_board_where_it_has_no_room(kind: str) -> None:
    board = BOARDS[kind]
    least = 3 * 5 + 2 if kind == "fields" else 7 * 3 + 3, 3 + 2 if kind == "fields" else 6 + 2
    assert board_lines(board, style(board), *least)
    assert board_lines(board, style(board), least[0] - 1, 99) == []
    assert board_lines(board, style(board), 99, least[1] - 1) == []


def test_who_moves_first_has_the_crosses_and_colors_are_those_of_the_sides() -> None:
    for is_first in (True, False):
        lines = board_lines(FIELDS, style(FIELDS, is_first=is_first), 20, 5)
        tones = {span.text.strip(): span.tone for spans in lines for span in spans if span.text.strip() in ("X", "O")}
        own, other = ("X", "O") if is_first else ("O", "X")
        assert tones == {own: OWN_TONE, other: OTHER_TONE}


def test_only_what_the_other_has_just_done_is_marked_and_the_advice_stands_out() -> None:
    lines = board_lines(FIELDS, style(FIELDS, advised=5), 20, 5)
    assert ["".join(span.text for span in spans) for spans in lines] == [
        "  X  │  O  │  3  ",
        "─────┼─────┼─────",
        "  4  │  X  │  6  ",
        "─────┼─────┼─────",
        "[ O ]│  8  │  9  ",
    ]
    assert [span.text for spans in lines for span in spans if span.tone == "flag"] == [" 6 "]
    floor = board_lines(COLUMNS, style(COLUMNS), 40, 8)[-1]
    assert "".join(span.text for span in floor).index("▲") == 2 + 3 * field_width(1, by_column=True) + 1
