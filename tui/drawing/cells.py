"""From pixels to cells of a terminal: each shows two pixels, one above the other, as the two colors of a half block.

Shapes: H rows and W columns of cells. A color is a number whose meaning is that of the terminal's colors: 0xRRGGBB, an
entry of xterm's 256, or one of the first sixteen of these; GROUND is the background of the picture.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from rich.color import Color, ColorSystem

from rl_tui.engine.session.watching import Pixels
from rl_tui.tui.drawing.glyphs import Colors

Numbers: TypeAlias = NDArray[np.int32]

HALF = "▀"
GROUND = -1
LADDER = " .:-=+*#%@"  # from dark to bright
CUBE = np.array((0, 95, 135, 175, 215, 255))  # levels of a channel among the 216 colors from number 16 on
SIXTEEN = np.array([
    (0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229),
    (127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255),
    (255, 255, 255),
])  # fmt: skip  # xterm's; terminals differ


class Cells(NamedTuple):
    """Colors of the upper and the lower half of each cell: i32[H, W] both."""

    upper: Numbers
    lower: Numbers


def cells_of(pixels: Pixels, width: int, height: int, colors: Colors) -> Cells:
    """The image in the middle of so many cells; the rest is cut off."""
    numbers = _NUMBERS[colors](_array(pixels)[: 2 * height, :width])
    padded = np.full((2 * height, width), GROUND, np.int32)
    top, left = 2 * ((height - -(-len(numbers) // 2)) // 2), (width - numbers.shape[1]) // 2
    padded[top : top + len(numbers), left : left + numbers.shape[1]] = numbers
    return Cells(padded[0::2], padded[1::2])


def text_of(pixels: Pixels, width: int, height: int) -> list[str]:
    """The image without color: lines of characters, denser where it is brighter."""
    image = _array(pixels)[: 2 * height, :width].astype(np.float32)
    brightness = image @ np.array((0.299, 0.587, 0.114), np.float32)  # ITU-R BT.601
    if len(brightness) % 2:
        brightness = np.vstack([brightness, brightness[-1:]])
    rows = (brightness[0::2] + brightness[1::2]) / 2
    steps = np.minimum((rows / 256 * len(LADDER)).astype(int), len(LADDER) - 1)
    left = " " * ((width - image.shape[1]) // 2)
    return [""] * ((height - len(steps)) // 2) + [
        left + "".join(LADDER[step] for step in row) for row in steps.tolist()
    ]


def runs(cells: Cells, row: int, first: int, last: int) -> list[tuple[int, int, int]]:
    """Neighbors of the same colors from `first` up to `last`: upper, lower, how many."""
    upper, lower = cells.upper[row, first:last], cells.lower[row, first:last]
    starts = np.flatnonzero((np.diff(upper) != 0) | (np.diff(lower) != 0)) + 1
    edges = [0, *starts.tolist(), last - first]
    at = edges[:-1]
    lengths = [end - start for start, end in zip(at, edges[1:], strict=True)]
    return list(zip(upper[at].tolist(), lower[at].tolist(), lengths, strict=True))


def changes(before: Cells | None, after: Cells) -> list[tuple[int, int, int]]:
    """Row, first column and one past the last of every stretch that differs; small gaps are bridged."""
    if before is None or before.upper.shape != after.upper.shape:
        return [(row, 0, after.upper.shape[1]) for row in range(len(after.upper))]
    differs = (before.upper != after.upper) | (before.lower != after.lower)
    found: list[tuple[int, int, int]] = []
    for row in np.flatnonzero(differs.any(axis=1)).tolist():
        columns = np.flatnonzero(differs[row])
        breaks = np.flatnonzero(np.diff(columns) > GAP)
        firsts = columns[np.concatenate(([0], breaks + 1))].tolist()
        lasts = columns[np.concatenate((breaks, [len(columns) - 1]))].tolist()
        found += [(row, first, last + 1) for first, last in zip(firsts, lasts, strict=True)]
    return found


GAP = 8  # cells: moving the cursor costs as much as painting that many


def painted(cells: Cells, row: int, first: int, last: int, colors: Colors, ground: Color) -> str:
    """A stretch with its escape sequences, which end with the default colors. ground: the color of GROUND."""
    parts: list[str] = []
    front: int | None = None
    back: int | None = None
    for upper, lower, length in runs(cells, row, first, last):
        codes = []
        if upper not in (lower, front):
            codes.append(_code(upper, colors, ground, is_front=True))
            front = upper
        if lower != back:
            codes.append(_code(lower, colors, ground, is_front=False))
            back = lower
        if codes:
            parts.append(f"\x1b[{';'.join(codes)}m")
        parts.append((" " if upper == lower else HALF) * length)
    return "".join(parts) + "\x1b[0m"


@cache  # of true colors there are 32 768
def _code(number: int, colors: Colors, ground: Color, *, is_front: bool) -> str:
    shown = color(number, colors, ground).downgrade(_SYSTEMS[colors])
    return ";".join(shown.get_ansi_codes(foreground=is_front))


def color(number: int, colors: Colors, ground: Color) -> Color:
    """Rich's color of that number."""
    if number == GROUND:
        return ground
    if colors == "truecolor":
        return Color.from_rgb(number >> 16, number >> 8 & 255, number & 255)
    return Color.from_ansi(number)


def _array(pixels: Pixels) -> NDArray[np.uint8]:
    return np.frombuffer(pixels.rgb, np.uint8).reshape(pixels.height, pixels.width, 3)


def _true(image: NDArray[np.uint8]) -> Numbers:
    """With five bits per channel: neighbors that look the same are merged."""
    coarse = (image & 0xF8 | image >> 5).astype(np.int32)
    return coarse[..., 0] << 16 | coarse[..., 1] << 8 | coarse[..., 2]


def _of_256(image: NDArray[np.uint8]) -> Numbers:
    """The nearest of the cube's 216 colors and the 24 grays."""
    wide = image.astype(np.int32)
    levels = np.where(wide < 48, 0, np.where(wide < 115, 1, (wide - 35) // 40))
    mean = wide.mean(axis=2)
    grays = np.clip(np.rint((mean - 8) / 10), 0, 23).astype(np.int32)
    cube_error = ((CUBE[levels] - wide) ** 2).sum(axis=2)
    gray_error = (((8 + 10 * grays)[..., None] - wide) ** 2).sum(axis=2)
    of_cube = 16 + 36 * levels[..., 0] + 6 * levels[..., 1] + levels[..., 2]
    nearest: Numbers = np.where(gray_error < cube_error, 232 + grays, of_cube).astype(np.int32)
    return nearest


def _of_16(image: NDArray[np.uint8]) -> Numbers:
    errors = ((image.astype(np.int32)[..., None, :] - SIXTEEN) ** 2).sum(axis=-1)
    nearest: Numbers = errors.argmin(axis=-1).astype(np.int32)
    return nearest


_SYSTEMS = {
    "truecolor": ColorSystem.TRUECOLOR, "256": ColorSystem.EIGHT_BIT, "standard": ColorSystem.STANDARD,
}  # fmt: skip
_NUMBERS = {"truecolor": _true, "256": _of_256, "standard": _of_16}
