"""Games of soccer between two sides, with as little physics as a game can have.

Shapes: G pitches, P players of a side. Every player sees a number from 0 to 1 and should make the choice that lies
there. The ball moves towards the other side's goal by the share of a side's players that do, less that of the other
side's, and a little at random: the side that chooses better wins, in the long run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

KICK, WIND = 0.25, 0.1
NUM_PITCHES, MOST_STEPS = 4, 40
SEEN = 3  # the number, the place of the ball as seen towards the other goal, the share of the time that is over


@dataclass(frozen=True)
class Side:
    """The agents of one side: `size` on every pitch, each with a branch of so many choices. They are a group if there
    are several. padding: zeros that they see, too."""

    name: str
    size: int = 2
    num_choices: int = 3
    padding: int = 0

    @property
    def num_seen(self) -> int:
        """Numbers that each player sees."""
        return SEEN + self.padding


SIDES: Mapping[str, tuple[Side, Side]] = {  # by task
    "soccer": (Side("Striker?team=0"), Side("Striker?team=1")),
    "goalie": (Side("Striker?team=0"), Side("Goalie?team=1", size=1, num_choices=5, padding=2)),
}


class Whistle(NamedTuple):
    """What a step has led to. scored: f32[G], 1 by the first side and -1 by the second. over, interrupted: bool[G]."""

    scored: NDArray[np.float32]
    over: NDArray[np.bool_]
    interrupted: NDArray[np.bool_]


class Pitches:
    """All games. A goal ends one, and `most_steps` interrupt it."""

    def __init__(self, sides: Sequence[Side], num: int, seed: int, most_steps: int = MOST_STEPS) -> None:
        self.sides = sides
        self._rng = np.random.default_rng(seed)
        self._most_steps = most_steps
        self._balls = np.zeros(num)
        self._steps = np.zeros(num, np.int64)
        self._numbers = [np.zeros((num, side.size)) for side in sides]

    def reset(self, which: NDArray[np.int64] | slice = slice(None)) -> None:
        """Begin new games on these pitches, with the ball in the middle."""
        self._balls[which], self._steps[which] = 0.0, 0
        self._draw()

    def step(self, choices: Sequence[NDArray[np.int32]]) -> Whistle:
        """Every player chooses, [G, P] for each side."""
        wanted = self.wanted()
        shares = [(chosen == right).mean(axis=1) for chosen, right in zip(choices, wanted, strict=True)]
        wind = self._rng.uniform(-WIND, WIND, len(self._balls))
        self._balls += KICK * (shares[0] - shares[1]) + wind
        self._steps += 1
        self._draw()
        scored = np.where(np.abs(self._balls) >= 1.0, np.sign(self._balls), 0.0).astype(np.float32)
        interrupted = (scored == 0) & (self._steps >= self._most_steps)
        return Whistle(scored, (scored != 0) | interrupted, interrupted)

    def wanted(self) -> list[NDArray[np.int64]]:
        """The better choice of every player, i64[G, P] for each side."""
        return [
            (numbers * side.num_choices).astype(np.int64)
            for side, numbers in zip(self.sides, self._numbers, strict=True)
        ]

    def seen(self, side: int) -> NDArray[np.float32]:
        """f32[G, P, numbers] of what the players of a side see."""
        numbers = self._numbers[side]
        seen = np.zeros((*numbers.shape, self.sides[side].num_seen), np.float32)
        seen[..., 0] = numbers
        seen[..., 1] = (self._balls if side == 0 else -self._balls)[:, None]
        seen[..., 2] = (self._steps / self._most_steps)[:, None]
        return seen

    def _draw(self) -> None:
        self._numbers = [self._rng.random(numbers.shape) for numbers in self._numbers]
