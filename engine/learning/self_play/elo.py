"""Ratings of players by the results of their games (Elo 1978), on the scale where 400 points are odds of ten to one."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.engine.config.behavior import SelfPlaySettings
from rl_tui.engine.specs import Game

WIN, DRAW, LOSS = 1.0, 0.5, 0.0
LARGEST_EXPONENT = 300  # 10 to the power of 309 is no float; a large elo_k can move ratings so far apart


def expected_score(rating: float, opponent: float) -> float:
    """The score to expect in a game, a draw counting half: 1 / (1 + 10^((opponent - rating) / 400))."""
    return 1 / (1 + 10 ** min((opponent - rating) / 400, LARGEST_EXPONENT))


def scores_of(game: Game, settings: SelfPlaySettings) -> Sequence[float] | None:
    """The score against each opponent; None for a game that does not count.

    Against one opponent the sign of what the learning side has earned decides, as in ML-Agents. Where there are more,
    it has won against those that have earned less: the loser among four has not lost to each.
    """
    if game.own.is_interrupted:
        return None if settings.interrupted_games == "ignore" else [DRAW] * len(game.opponents)
    is_return = settings.game_result == "return"
    own, *others = [side.total if is_return else side.reward for side in (game.own, *game.opponents)]
    if len(others) == 1:
        others = [0.0]
    return [score_of(own - other, settings.draw_margin) for other in others]


def score_of(margin: float, draw_margin: float) -> float:
    """The score of a side that is ahead by so much."""
    if abs(margin) <= draw_margin:
        return DRAW
    return WIN if margin > 0 else LOSS
