"""The court of a pong: where the balls and the paddles are, and how they move.

Shapes: G games, P players of a side. Side 0 is the left one, 1 the right one; player 0 is at the back, 1 in front. The
court reaches from -1 to 1 in both directions, up is positive, and speeds are per step.
"""

from __future__ import annotations

import numpy as np

from rl_tui.engine.specs import Bool, Float32, Int64

LINES = np.array([1.0, 0.5], np.float32)  # distances of players from the middle
PADDLE, BALL = 0.2, 0.05  # halves of their lengths
PADDLE_SPEED = 0.05
SERVE_SPEED, MAX_SPEED = 0.08, 0.25
FASTER = 1.2  # with each hit
STEEPEST = np.pi / 3  # the angle of a ball that the end of a paddle has hit
STEEPEST_SERVE = np.pi / 4


class Court:
    """All games, each with a ball and two sides of paddles.

    balls, velocities: f32[G, 2], to the right and up. paddles: f32[G, 2, P], heights of their middles.
    balls_before, paddles_before: the same a step earlier; as now where a ball has just been served.
    """

    def __init__(self, num_games: int, num_players: int) -> None:
        self.balls: Float32 = np.zeros((num_games, 2), np.float32)
        self.velocities: Float32 = np.zeros((num_games, 2), np.float32)
        self.paddles: Float32 = np.zeros((num_games, 2, num_players), np.float32)
        self.balls_before = self.balls.copy()
        self.paddles_before = self.paddles.copy()
        self._lines = LINES[:num_players]

    def serve(self, games: Bool, random: np.random.Generator) -> None:
        """Begin a rally in these games, bool[G]: paddles in the middle, the ball flies to a random side."""
        served = np.flatnonzero(games)
        drawn = random.random((len(served), 3), np.float32)
        sides = np.where(drawn[:, 0] < 0.5, np.float32(-1), np.float32(1))
        self.balls[served, 0] = 0.0
        self.balls[served, 1] = drawn[:, 1] - 0.5
        self._fly(served, SERVE_SPEED, (2.0 * drawn[:, 2] - 1.0) * STEEPEST_SERVE, sides)
        self.paddles[served] = self.paddles_before[served] = 0.0
        self.balls_before[served] = self.balls[served]

    def move(self, moves: Float32) -> Float32:
        """Move every paddle, then every ball. moves: f32[G, 2, P] of -1, 0 and 1.

        Returns f32[G]: 1 where the left side has scored, -1 where the right one has, else 0.
        """
        self.balls_before, self.paddles_before = self.balls, self.paddles
        self.paddles = np.minimum(np.maximum(self.paddles + PADDLE_SPEED * moves, PADDLE - 1.0), 1.0 - PADDLE)
        self.balls = self.balls + self.velocities
        if (beyond := np.abs(self.balls[:, 1]) > 1.0).any():
            self._reflect(np.flatnonzero(beyond))
        directions = np.sign(self.velocities[:, 0])
        before, now = directions * self.balls_before[:, 0], directions * self.balls[:, 0]
        games, players = np.nonzero((before[:, None] < self._lines) & (now[:, None] >= self._lines))
        scored = np.zeros(len(directions), np.float32)
        if len(games):  # at most one line in a step, which is shorter than the way to the next
            lost = games[~self._hit(games, players) & (players == 0)]
            scored[lost] = directions[lost]
        return scored

    def _reflect(self, games: Int64) -> None:
        """The wall above or below returns these balls."""
        heights = self.balls[games, 1]
        self.balls[games, 1] = np.sign(heights) * 2.0 - heights
        self.velocities[games, 1] *= -1.0

    def _hit(self, games: Int64, players: Int64) -> Bool:
        """bool[H]: which of these players, each in its game, hits the ball that passes its line, and so returns it."""
        old, now = self.balls_before[games], self.balls[games]
        way = now[:, 0] - old[:, 0]
        directions = np.sign(way)
        lines = directions * self._lines[players]
        heights = old[:, 1] + (lines - old[:, 0]) / way * (now[:, 1] - old[:, 1])
        offsets = heights - self.paddles[games, (directions > 0).astype(np.int64), players]
        hit: Bool = np.abs(offsets) <= PADDLE + BALL
        at = games[hit]
        self.balls[at, 0], self.balls[at, 1] = lines[hit], heights[hit]
        faster = np.minimum(FASTER * np.hypot(self.velocities[at, 0], self.velocities[at, 1]), MAX_SPEED)
        angles = np.minimum(np.maximum(offsets[hit] / PADDLE, -1.0), 1.0) * STEEPEST
        self._fly(at, faster, angles, -directions[hit])
        return hit

    def _fly(self, games: Int64, speeds: Float32 | float, angles: Float32, directions: Float32) -> None:
        """These balls fly to the left (-1) or right (1), at angles to the level."""
        self.velocities[games, 0] = directions * speeds * np.cos(angles)
        self.velocities[games, 1] = speeds * np.sin(angles)
