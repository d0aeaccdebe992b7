"""Pictures in the cells of a terminal: which color each half has, and what is sent when one changes."""

from __future__ import annotations

import pyte
import pytest
from rich.color import Color

from rl_tui.engine.session.watching import Pixels
from rl_tui.tui.drawing.cells import GROUND, Cells, cells_of, changes, painted, text_of

BEHIND = Color.parse("#005f00")
BLACK, WHITE, RED, GRAY = (0, 0, 0), (255, 255, 255), (255, 0, 0), (128, 128, 128)


def pixels(*rows: tuple[tuple[int, int, int], ...]) -> Pixels:
    return Pixels(len(rows[0]), len(rows), bytes(value for row in rows for color in row for value in color))


FOUR = pixels((RED, WHITE), (BLACK, GRAY))


@pytest.mark.parametrize(
    ("colors", "upper", "lower"),
    [
        ("truecolor", [0xFF0000, 0xFFFFFF], [0x000000, 0x848484]),  # five bits of each channel
        ("256", [196, 231], [16, 244]),
        ("standard", [9, 15], [0, 8]),
    ],
)
def test_two_pixels_share_a_cell_in_the_colors_that_the_terminal_has(
    colors: str, upper: list[int], lower: list[int]
) -> None:
    cells = cells_of(FOUR, 2, 1, colors)  # type: ignore[arg-type]  # one of those
    assert cells.upper.tolist() == [upper]
    assert cells.lower.tolist() == [lower]


def test_picture_stands_in_the_middle_on_the_ground_of_the_screen() -> None:
    cells = cells_of(pixels((RED,), (RED,), (RED,)), 3, 4, "256")
    column = [cells.upper[:, 1].tolist(), cells.lower[:, 1].tolist()]
    assert column == [[GROUND, 196, 196, GROUND], [GROUND, 196, GROUND, GROUND]]
    assert set(cells.upper[:, 0].tolist()) == set(cells.upper[:, 2].tolist()) == {GROUND}


def test_what_has_no_room_is_cut_off() -> None:
    cells = cells_of(pixels(*[(RED, WHITE, BLACK)] * 6), 2, 2, "256")
    assert cells.upper.tolist() == [[196, 231]] * 2


def test_without_color_the_brighter_is_denser() -> None:
    assert text_of(pixels((BLACK, GRAY, WHITE), (BLACK, GRAY, WHITE)), 5, 3) == ["", "  +@"]


def shown(cells: Cells, colors: str) -> list[list[tuple[str, str, str]]]:
    """Character, front and ground of every cell on a terminal that the cells were painted on."""
    height, width = cells.upper.shape
    screen = pyte.Screen(width, height)
    stream = pyte.Stream(screen)
    for row, first, last in changes(None, cells):
        stream.feed(f"\x1b[{row + 1};{first + 1}H{painted(cells, row, first, last, colors, BEHIND)}")  # type: ignore[arg-type]
    return [
        [(cell.data, cell.fg, cell.bg) for cell in (screen.buffer[row][column] for column in range(width))]
        for row in range(height)
    ]


def test_terminal_shows_the_upper_pixel_in_front_of_the_lower() -> None:
    true = shown(cells_of(FOUR, 2, 1, "truecolor"), "truecolor")
    assert true == [[("▀", "ff0000", "000000"), ("▀", "ffffff", "848484")]]
    sixteen = shown(cells_of(FOUR, 2, 1, "standard"), "standard")
    assert sixteen == [[("▀", "brightred", "black"), ("▀", "brightwhite", "brightblack")]]
    one_color = shown(cells_of(pixels((RED,), (RED,)), 2, 1, "256"), "256")
    assert [(text, ground) for text, _, ground in one_color[0]] == [(" ", "ff0000"), (" ", "005f00")], (
        "what lies behind it"
    )


def test_only_what_changed_is_painted_with_small_gaps_bridged() -> None:
    before = cells_of(pixels(*[(BLACK,) * 40] * 2), 40, 1, "256")
    assert changes(before, before) == []
    row = [BLACK] * 40
    row[3] = row[6] = row[30] = WHITE
    after = cells_of(pixels(tuple(row), tuple(row)), 40, 1, "256")
    assert changes(before, after) == [(0, 3, 7), (0, 30, 31)]
    other_size = cells_of(pixels(*[(BLACK,) * 40] * 2), 38, 1, "256")
    assert changes(before, other_size) == [(0, 0, 38)]
