"""How a frame is made to fit: the whole of it, its shape kept, each pixel the mean of what it covers."""

from __future__ import annotations

import numpy as np
import pytest

from rl_tui.engine.sampling.environments.rendering import fitted
from rl_tui.engine.sampling.pools.pictures import Picture, picture_from_json, picture_to_json

RED, BLUE = (255, 0, 0), (0, 0, 255)


def image(*rows: str) -> np.ndarray:
    """A frame of letters: red, blue, white, and a dot for black."""
    colors = {"r": RED, "b": BLUE, "w": (255, 255, 255), ".": (0, 0, 0)}
    return np.array([[colors[letter] for letter in row] for row in rows], np.uint8)


@pytest.mark.parametrize(
    ("shape", "room", "expected"),
    [((400, 600), (78, 70), (52, 78)), ((400, 600), (200, 20), (20, 30)), ((500, 500), (80, 44), (44, 44))],
)
def test_frame_fills_the_room_in_one_direction_and_keeps_its_shape(
    shape: tuple[int, int], room: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert fitted(np.zeros((*shape, 3), np.uint8), *room).shape == (*expected, 3)


def test_each_pixel_is_the_mean_of_its_area() -> None:
    small = fitted(image("rrbb", "rrbb", "ww..", "w..."), 2, 2)
    assert small[0].tolist() == [list(RED), list(BLUE)]
    assert small[1].tolist() == [[191, 191, 191], [0, 0, 0]]
    thirds = fitted(image("w..", "w..", "w.."), 2, 2)
    assert thirds[0].tolist() == [[170, 170, 170], [0, 0, 0]], "two thirds of what the left one covers are white"


def test_small_frame_is_enlarged_without_a_change_of_colors() -> None:
    large = fitted(image("rb"), 8, 8)
    assert large.shape == (4, 8, 3)
    assert np.array_equal(large, image(*["rrrrbbbb"] * 4))


def test_picture_is_the_same_behind_the_pipe() -> None:
    drawn = picture_from_json(picture_to_json(Picture(image("rb", "w."), hz=50.0)))
    assert drawn.pixels is not None
    assert np.array_equal(drawn.pixels, image("rb", "w."))
    assert drawn.hz == 50.0
    text = Picture(text="SFFF\n", reason="", detail="", hz=None)
    assert picture_from_json(picture_to_json(text)) == text
