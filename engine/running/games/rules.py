"""What has decided a game, and the results of many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rl_tui.engine.config.behavior import SelfPlaySettings
from rl_tui.engine.learning.self_play.elo import DRAW, LOSS, WIN, score_of
from rl_tui.engine.session.games import Result

_RESULTS: dict[float, Result] = {WIN: "won", DRAW: "drawn", LOSS: "lost"}


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """A game that has ended, as one side has played it: an agent, or a group.

    reward: the last one; total: of the episode, undiscounted; of a group each is the mean of its agents that were there
    at the end. length: actions of one agent. is_interrupted: an episode was truncated.
    """

    reward: float
    total: float
    length: int
    is_interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """How results are read from rewards: settings of `self_play`, or their defaults where a behavior has none."""

    settings: SelfPlaySettings

    @staticmethod
    def of(settings: SelfPlaySettings | None) -> Rules:
        """Those of a behavior's `self_play`."""
        return Rules(settings or SelfPlaySettings())

    def result(self, game: PlayedGame) -> Result | None:
        """The sign of what the side has earned decides; None for a game that does not count."""
        if game.is_interrupted:
            return None if self.settings.interrupted_games == "ignore" else "drawn"
        return self.decide(game.reward, game.total)

    def decide(self, reward: float, total: float) -> Result:
        """That of a game which has come to its end, by what the side has earned: the last reward, or all."""
        earned = total if self.settings.game_result == "return" else reward
        return _RESULTS[score_of(earned, self.settings.draw_margin)]

    def record(self, games: Iterable[PlayedGame]) -> Record:
        """Their results."""
        results = [self.result(game) for game in games]
        return Record(*(results.count(result) for result in ("won", "drawn", "lost", None)))


@dataclass(frozen=True, slots=True)
class Record:
    """Numbers of games, as one side has played them. ignored: that were interrupted, and do not count."""

    won: int = 0
    drawn: int = 0
    lost: int = 0
    ignored: int = 0

    @property
    def counted(self) -> int:
        """Those with a result."""
        return self.won + self.drawn + self.lost

    @property
    def win_rate(self) -> float | None:
        """From 0 to 1, a draw counting half; None without a game that counts."""
        return (self.won + self.drawn / 2) / self.counted if self.counted else None

    @property
    def reversed(self) -> Record:
        """The same games, as the other side has played them."""
        return Record(self.lost, self.drawn, self.won, self.ignored)

    def __add__(self, other: Record) -> Record:
        return Record(
            self.won + other.won, self.drawn + other.drawn, self.lost + other.lost, self.ignored + other.ignored
        )
