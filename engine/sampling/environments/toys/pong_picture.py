"""A pong as a picture for people."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.environments.rendering import Frame, enlarged
from rl_tui.engine.sampling.environments.toys.pong_court import Court
from rl_tui.engine.sampling.environments.toys.pong_views import BRIGHT_BALL, paint
from rl_tui.engine.specs import Int64

SIZE, LARGE = 84, 2  # rows and columns of the court, pixels of it that one of a digit is
LEFT, RIGHT, BALL, GROUND = (80, 160, 255), (255, 160, 60), (255, 255, 255), (70, 70, 70)
MARKS = np.array([[1, 1], [2, 2]], np.uint8)  # of both sides' paddles
DIGITS = ("75557", "26227", "71747", "71717", "55711", "74717", "74757", "71111", "75757", "75717")  # rows of 3 bits


def picture(court: Court, scores: Int64 | None) -> Frame:
    """The first game: the left side is blue, the right one orange. scores: i64[2], points of both sides; None: not
    shown."""
    pixels = np.zeros((1, SIZE, SIZE, 1), np.uint8)
    paint(pixels, court.balls[:1, None], court.paddles[:1, ..., None], MARKS[:, : court.paddles.shape[2]])
    image = np.zeros((SIZE, SIZE, 3), np.uint8)
    image[::4, SIZE // 2] = image[1::4, SIZE // 2] = GROUND
    for side, score in enumerate(() if scores is None else scores.tolist()):
        digits = _digits(score)
        height, width = digits.shape
        left = SIZE * (1 + 2 * side) // 4 - width // 2
        image[4 : 4 + height, left : left + width][digits] = GROUND
    for mark, color in ((1, LEFT), (2, RIGHT), (BRIGHT_BALL, BALL)):
        image[pixels[0, ..., 0] == mark] = color
    return enlarged(image)


def _digits(number: int) -> NDArray[np.bool_]:
    """bool[rows, columns] of a number in digits of 3 x 5."""
    rows = [[int(DIGITS[int(digit)][row]) for digit in str(number)] for row in range(5)]
    bits = [[bool(octal >> shift & 1) for octal in row for shift in (3, 2, 1, 0)] for row in rows]  # an empty column
    return np.array(bits, np.bool_)[:, 1:].repeat(LARGE, axis=0).repeat(LARGE, axis=1)
