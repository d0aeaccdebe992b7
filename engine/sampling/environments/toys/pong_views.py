"""What the players of a pong observe: numbers or images, each from its own side, as if that was the left one.

Shapes: G games, P players of a side, S rows and columns of an image, D numbers. Rows of G * P are by game, then by
player, as are agents.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.environments.toys.pong_court import BALL, LINES, MAX_SPEED, PADDLE, Court
from rl_tui.engine.specs import Float32, Observation, ObservationSpec

BALL_X, BALL_Y, VELOCITY_X, VELOCITY_Y, OWN_Y = range(5)  # columns of every vector
OTHER_PADDLES, OWN_PADDLE, BRIGHT_BALL = 96, 176, 255
_DOWN = np.array([1, -1], np.float32)  # rows are counted from the top


class View(Protocol):
    """One way to observe a court."""

    @property
    def spec(self) -> ObservationSpec:
        """Of what one player observes."""

    def of(self, court: Court, side: int) -> Observation:
        """[G * P, ...]: what every player of a side observes."""


class VectorView:
    """The ball's place and velocity and the heights of paddles, between -1 and 1; the own goal is at x = -1.

    Without mates: ball x, ball y, velocity x, velocity y, own paddle, the opponent's. With a mate: its paddle after the
    own one, the opponents' at the back and in front, and 1 for the player in front, 0 for the one at the back.
    """

    def __init__(self, num_players: int) -> None:
        self.spec = ObservationSpec("court", (6 if num_players == 1 else 9,))

    def of(self, court: Court, side: int) -> Float32:
        """f32[G * P, D]."""
        num_games, _, num_players = court.paddles.shape
        own, others = court.paddles[:, side], court.paddles[:, 1 - side]
        seen = np.empty((num_games, num_players, *self.spec.shape), np.float32)
        seen[:, :, BALL_X : BALL_Y + 1] = court.balls[:, None]
        seen[:, :, VELOCITY_X : VELOCITY_Y + 1] = court.velocities[:, None] / np.float32(MAX_SPEED)
        if side == 1:
            seen[:, :, BALL_X] *= -1.0
            seen[:, :, VELOCITY_X] *= -1.0
        seen[:, :, OWN_Y] = own
        first = OWN_Y + num_players
        seen[:, :, first : first + num_players] = others[:, None]
        if num_players == 2:
            seen[:, :, OWN_Y + 1] = own[:, ::-1]
            seen[:, :, -1] = 0.0, 1.0
        return seen.reshape(-1, *self.spec.shape)


class ImageView:
    """The court as an image of two channels, now and a step earlier: ball, own paddle and, darker, the others."""

    def __init__(self, num_players: int, size: int) -> None:
        self.spec = ObservationSpec("court", (size, size, 2), "uint8")
        self._marks = np.full((num_players, 2, num_players), OTHER_PADDLES, np.uint8)
        self._marks[range(num_players), 0, range(num_players)] = OWN_PADDLE

    def of(self, court: Court, side: int) -> NDArray[np.uint8]:
        """u8[G * P, S, S, 2]."""
        balls = np.stack([court.balls, court.balls_before], axis=1)
        paddles = np.stack([court.paddles, court.paddles_before], axis=-1)
        if side == 1:
            balls[:, :, 0] *= -1.0
            paddles = paddles[:, ::-1]
        images = np.zeros((len(balls), len(self._marks), *self.spec.shape), np.uint8)
        for player, marks in enumerate(self._marks):
            paint(images[:, player], balls, paddles, marks)
        return images.reshape(-1, *self.spec.shape)


def paint(images: NDArray[np.uint8], balls: Float32, paddles: Float32, marks: NDArray[np.uint8]) -> None:
    """Paint courts from above onto images u8[G, S, S, M] of zeros, with M moments as channels.

    balls f32[G, M, 2] and paddles f32[G, 2, P, M] as in `Court`; marks u8[2, P]: the pixels of each paddle. Those of
    balls are 255.
    """
    num_games, size, _, num_moments = images.shape
    heights = 1.0 - (2.0 * np.arange(size, dtype=np.float32)[:, None] + 1.0) / size
    for side, direction in enumerate((-1, 1)):
        for player, line in enumerate(LINES[: paddles.shape[2]].tolist()):
            column = min(int((1.0 + direction * line) / 2.0 * size), size - 1)
            covered = np.abs(heights - paddles[:, side, player, None]) <= PADDLE
            images[:, :, column] = covered * marks[side, player]
    width = max(2, round(BALL * size))
    corners = (1.0 + balls * _DOWN) * (size / 2.0) - width / 2.0
    corners = np.minimum(np.maximum(np.rint(corners), 0), size - width).astype(np.int64)[..., None, None]
    within, moments = np.arange(width), np.arange(num_moments)[:, None, None]
    rows, columns = corners[:, :, 1] + within[:, None], corners[:, :, 0] + within
    images[np.arange(num_games)[:, None, None, None], rows, columns, moments] = BRIGHT_BALL
