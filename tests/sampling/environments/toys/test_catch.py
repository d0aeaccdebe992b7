"""The game in pixels: what is seen is what is, and catching pays."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from rl_tui.engine.sampling.environments.base import Rendered
from rl_tui.engine.sampling.environments.toys.catch import BALL, CELLS, PADDLE
from rl_tui.engine.sampling.environments.toys.moves import ActionKind
from rl_tui.engine.specs import Float32, ObservationSpec
from tests.sampling.environments.toys.playing import make, step


def towards_the_ball(board: np.ndarray) -> Float32:
    """Left, right or nowhere, read off the board."""
    balls = (board == BALL).any(axis=1).argmax(axis=1)
    middles = (board[:, -1] == PADDLE).argmax(axis=1) + 1
    return np.sign(balls - middles).astype(np.float32)


@pytest.mark.parametrize("kind", get_args(ActionKind))
@pytest.mark.parametrize("pixels", [1, 3])
def test_following_the_ball_catches_it(kind: ActionKind, pixels: int) -> None:
    game = make("catch", 32, actions=kind, cell_pixels=pixels)
    size = CELLS * pixels
    assert game.specs["B"].observations == (ObservationSpec("image", (size, size, 1), "uint8"),)
    steps = game.reset(1)["B"]
    for _ in range(3):
        for row in range(CELLS - 1):
            assert steps.terminals is None or row == 0
            image = steps.decisions.observations[0]
            assert image.dtype == np.uint8
            board = image[:, ::pixels, ::pixels, 0]
            np.testing.assert_array_equal(image[..., 0], board.repeat(pixels, axis=1).repeat(pixels, axis=2))
            assert ((board == BALL).sum(axis=(1, 2)) == 1).all()
            assert (board[:, row] == BALL).any(axis=1).all()
            assert ((board[:, -1] == PADDLE).sum(axis=1) == 3).all()
            steps = step(game, towards_the_ball(board), kind)
        assert steps.terminals is not None
        assert steps.terminals.rewards.tolist() == [1] * 32
        assert (steps.terminals.observations[0][:, -1] == BALL).any(axis=1).all()
        assert not steps.terminals.truncated.any()


def test_a_paddle_that_never_moves_mostly_misses() -> None:
    game = make("catch", 100)
    game.reset(1)
    earned = []
    while len(earned) < 20:
        steps = step(game, np.zeros(100, np.float32))
        if steps.terminals is not None:
            earned.append(steps.terminals.rewards)
    assert np.mean(earned) == pytest.approx(-0.5, abs=0.05)


def test_paddle_stays_on_the_board() -> None:
    for direction in (-1, 1):
        game = make("catch", 2, cell_pixels=1)
        game.reset(1)
        for _ in range(CELLS - 2):
            steps = step(game, np.full(2, direction, np.float32))
        paddle = (steps.decisions.observations[0][:, -1, :, 0] == PADDLE).nonzero()[1]
        assert paddle.tolist() == ([0, 1, 2] if direction < 0 else [9, 10, 11]) * 2


def test_the_game_can_be_watched() -> None:
    game = make("catch", 2)
    assert isinstance(game, Rendered)
    image = game.reset(1)["B"].decisions.observations[0][0]
    frame = game.render()
    assert frame is not None
    assert frame.shape == (336, 336, 3)
    np.testing.assert_array_equal(frame[7::14, 7::14], image.repeat(3, axis=2))
