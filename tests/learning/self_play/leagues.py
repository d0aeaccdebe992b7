"""Leagues of policies that are no more than a number."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from rl_tui.engine.config.behavior import SelfPlaySettings
from rl_tui.engine.learning.self_play.league import League, Opponent
from rl_tui.engine.specs import State, Weights


def settings(**changes: Any) -> SelfPlaySettings:
    """A short schedule, unless changed."""
    return SelfPlaySettings.model_validate(
        {"save_steps": 10, "team_change": 50, "swap_steps": 5, "window": 3} | changes
    )


def weights(number: int) -> Weights:
    """Those of the policy with this number."""
    return Weights(0, {"number": np.array([number], np.float32)})


def number(of: Weights) -> int:
    """Which policy it is."""
    return int(of.arrays["number"][0])


def saved(league: League) -> State:
    """Its state as a checkpoint has it: values as text, arrays copied."""
    state = league.state()
    return State({name: array.copy() for name, array in state.tensors.items()}, json.loads(json.dumps(state.values)))


def loaded(state: State, seed: int = 99, **changes: Any) -> League:
    """Another league that goes on from there."""
    league = League(settings(**changes), seed)
    league.load(state)
    return league


def figures(league: League) -> Any:
    """All that can be seen of it."""
    snapshots = [(number(each.weights), each.step, *_figures(each.standing)) for each in league.snapshots]
    opponents = {team: (number(each.weights), _place(league, each)) for team, each in league.opponents.items()}
    return league.rating, league.num_games, league.opponent_steps, snapshots, opponents


def _figures(standing: Any) -> tuple[float, int, int, int]:
    return standing.rating, standing.won, standing.drawn, standing.lost


def _place(league: League, opponent: Opponent) -> Any:
    """Where its snapshot is in the window, or the figures of one that has left it; None for a copy of the newest."""
    if opponent.snapshot is None:
        assert opponent.standing is league.newest
        return None
    places = [place for place, each in enumerate(league.snapshots) if each is opponent.snapshot]
    return places or _figures(opponent.standing)
