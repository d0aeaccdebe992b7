"""A person who plays a game against a policy, as a front end sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from rl_tui.engine.session.playing import Playing
from rl_tui.engine.session.watching import Scene

Result: TypeAlias = Literal["won", "drawn", "lost"]
EMPTY, OWN, OTHER = 0, 1, 2  # of a field
Field: TypeAlias = tuple[int, int]  # row and column, from the top left


@dataclass(frozen=True, slots=True)
class Board:
    """The fields of a board, row by row from the top: EMPTY, OWN (the person's) or OTHER.

    by_column: a choice is a column, whose lowest empty field it takes; else a field, row by row. newest: fields that
    have changed since the person saw the board last.
    """

    fields: tuple[tuple[int, ...], ...]
    by_column: bool
    newest: frozenset[Field] = frozenset()


@dataclass(frozen=True, slots=True)
class Seat:
    """Which agent the person plays.

    number: from 1, in the order in which agents act; count: how many seats the person may take. is_fixed: the next game
    has the same. team: of the agent, None without teams.
    """

    number: int
    count: int
    is_fixed: bool
    behavior: str
    team: int | None


@dataclass(frozen=True, slots=True)
class Tally:
    """How games have ended for the person."""

    won: int = 0
    drawn: int = 0
    lost: int = 0

    def __add__(self, other: Tally) -> Tally:
        """Those of both."""
        return Tally(self.won + other.won, self.drawn + other.drawn, self.lost + other.lost)

    @staticmethod
    def of(result: Result) -> Tally:
        """One game."""
        return Tally(**{result: 1})


@dataclass(frozen=True, slots=True)
class Advice:
    """What the policy would do in the person's place. chances: of each choice; empty where they are not known."""

    choice: int
    chances: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class GameTurn:
    """What the person sees before the next action, and when a game is over.

    scene: `episode` is the number of the game, and its figures are those of the person's agent. choices, is_allowed:
    see Turn. opponent: who the others are, in words; "" where there are none. opponent_way: how their policy chooses;
    "" for one that is random. answers: what they have chosen since the person's last action, the oldest first; empty
    without a board, where it may be hidden from the person. result: of a game that is over; None without opponents.
    tallies: of games by seat, the first seat first. board: None where the game is not known to have one.
    """

    scene: Scene
    choices: tuple[str, ...]
    is_allowed: tuple[bool, ...]
    seat: Seat
    opponent: str
    opponent_way: str
    answers: tuple[int, ...]
    is_over: bool
    result: Result | None
    tallies: tuple[Tally, ...]
    board: Board | None
    advice: Advice | None

    @property
    def tally(self) -> Tally:
        """Of all games."""
        return sum(self.tallies, Tally())


class GamePlaying(Playing[GameTurn], Protocol):
    """A game, and another one after it."""

    def begin(self) -> None:
        """Another game begins; the one under way does not count. After a failure, in a new environment."""

    def advise(self) -> None:
        """The turn has advice."""
