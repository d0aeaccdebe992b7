"""An evaluation against an opponent, as `evaluation.opponent` has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rl_tui.engine.config.behavior import EvaluationSettings
from rl_tui.engine.running.evaluation.named_opponents import OLDEST, RANDOM
from rl_tui.engine.running.evaluation.opponents import OldestOpponent, Opponent, RandomOpponent, SavedOpponent
from rl_tui.engine.running.games.rules import Rules
from rl_tui.engine.running.games.seats import seats_of, teams_of
from rl_tui.engine.specs import BehaviorSpec


@dataclass(frozen=True, slots=True)
class Match:
    """Against whom a policy is evaluated, and what decides the games."""

    opponent: Opponent
    rules: Rules


def make_match(
    settings: EvaluationSettings,
    rules: Rules,
    own: BehaviorSpec,
    specs: Mapping[str, BehaviorSpec],
    oldest: OldestOpponent,
    find: Callable[[str], Path],
    seed: int,
    log: Callable[[str], object],
) -> Match | None:
    """The match of the behavior `own` in an environment with these behaviors; None without an opponent.

    find: the path of a saved opponent. log: gets a line for each policy that is read. Raises ConfigError where the
    environment has a single team, or the opponent cannot be read or acts for other observations or actions.
    """
    if settings.opponent is None:
        return None
    seats_of(specs)
    if settings.opponent == RANDOM:
        return Match(RandomOpponent(seed), rules)
    if settings.opponent == OLDEST:
        return Match(oldest, rules)
    saved = SavedOpponent(find(settings.opponent), "greedy" if settings.deterministic else "sampled", seed)
    for spec in _opposing(own, specs.values()):
        log(f"the opponent in evaluations is {saved.read(spec).path}")
    return Match(saved, rules)


def _opposing(own: BehaviorSpec, specs: Iterable[BehaviorSpec]) -> list[BehaviorSpec]:
    """The behaviors that have agents in another team than some agent of this one."""
    teams = teams_of(own)
    return [spec for spec in specs if any(team != other for team in teams for other in teams_of(spec))]
