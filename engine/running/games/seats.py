"""The seats of a game: the teams of an environment, each with the behavior whose episodes are its games."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.specs import BehaviorSpec, DecisionSteps, Int64, TerminalSteps

FIRST_TEAM = 0  # of agents without a team


@dataclass(frozen=True, slots=True)
class Seat:
    """A team, and the behavior whose episodes are its games."""

    behavior: str
    team: int

    def rows(self, steps: DecisionSteps | TerminalSteps) -> Int64:
        """i64[n], where the agents of this team are among those of a behavior."""
        if steps.team_ids is None:
            count = len(steps.agent_ids) if self.team == FIRST_TEAM else 0
            return np.arange(count, dtype=np.int64)
        return np.flatnonzero(steps.team_ids == self.team)


def teams_of(spec: BehaviorSpec) -> tuple[int, ...]:
    """Those that a behavior's agents play for."""
    return spec.teams or (FIRST_TEAM,)


def teams_in_words(teams: Sequence[int]) -> str:
    """ "teams 0, 1"."""
    return f"team{'s' if teams[1:] else ''} {', '.join(map(str, teams))}"


def seats_of(specs: Mapping[str, BehaviorSpec], preferred: str | None = None) -> Sequence[Seat]:
    """One for each team. Where a team has several behaviors, the preferred one counts, or else the first.

    Raises ConfigError where there is a single team.
    """
    behaviors = [name for name in specs if name == preferred] + [name for name in specs if name != preferred]
    seats: dict[int, Seat] = {}
    for name in behaviors:
        for team in teams_of(specs[name]):
            seats.setdefault(team, Seat(name, team))
    if len(seats) < 2:
        raise ConfigError(f"the environment has {only_one_team(specs)}")
    return [seats[team] for team in sorted(seats)]


def only_one_team(names: Iterable[str]) -> str:
    """What an environment of these behaviors has, and what it would need."""
    of = " and ".join(names) or "no behavior"
    needs = "a game needs two, which a Unity scene or env_settings.behaviors names NAME?team=0 and NAME?team=1"
    return f"only one team, of {of}: {needs}"
