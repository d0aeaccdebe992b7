"""Which of a game's agents the person plays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rl_tui.engine.config.diagnostics import must_be
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.session.games import Seat
from rl_tui.engine.specs import BehaviorSpec, DecisionSteps, Steps


@dataclass(frozen=True, slots=True)
class SeatRequest:
    """behavior: None for any that a person can play. team, number: the seat of every game, None for each in turn. A
    team's first agent is played. number: see Seat."""

    behavior: str | None = None
    team: int | None = None
    number: int | None = None


class Seats:
    """Used by one thread. The seats of the agents of some behaviors, one after the other unless one was requested.

    agent: behavior and id of the person's in this game; None before it has appeared. number: of the seat. count: how
    many there are.
    """

    def __init__(self, specs: Mapping[str, BehaviorSpec], num_agents: Mapping[str, int], request: SeatRequest) -> None:
        """specs: of what the person may play. Raises ConfigError for a seat that the game does not have."""
        self.agent: tuple[str, int] | None = None
        self.count = max(1, sum(num_agents[name] for name in specs))
        self._specs, self._request = specs, request
        self._team: int | None = None
        self._num_seen = 0
        self._seen: set[tuple[str, int]] = set()
        teams = sorted({team for spec in specs.values() for team in spec.teams})
        if request.team is not None and request.team not in teams:
            known = f"{must_be(' or '.join(map(str, teams)), request.team)}" if teams else "this game has no teams"
            raise ConfigError(f"--team: {known}. --seat says which agent is yours, in the order in which they act")
        if request.number is not None and not 1 <= request.number <= self.count:
            raise ConfigError(f"--seat: {must_be(f'from 1 to {self.count}', request.number)}")
        self.number = request.number or 1

    def begin(self) -> None:
        """A game begins, in which no agent has appeared."""
        self.agent, self._team, self._num_seen = None, None, 0
        self._seen.clear()

    def swap(self) -> None:
        """The next game has the next seat."""
        if not self._is_fixed:
            self.number = self.number % self.count + 1

    @property
    def _is_fixed(self) -> bool:
        return self.count == 1 or self._request.team is not None or self._request.number is not None

    @property
    def seat(self) -> Seat:
        """Of this game."""
        behavior = next(iter(self._specs)) if self.agent is None else self.agent[0]
        return Seat(self.number, self.count, self._is_fixed, behavior, self._team)

    def see(self, behaviors: Mapping[str, Steps]) -> None:
        """Agents that wait; new ones take the next seats, those that appear at once by behavior and row."""
        for name in self._specs:
            if self.agent is None and name in behaviors:
                self._see(name, behaviors[name].decisions)

    def _see(self, name: str, decisions: DecisionSteps) -> None:
        for row, agent in enumerate(decisions.agent_ids.tolist()):
            if (name, agent) in self._seen:
                continue
            self._seen.add((name, agent))
            self._num_seen += 1
            team = None if decisions.team_ids is None else int(decisions.team_ids[row])
            if self._request.team in (None, team) and (self._request.team is not None or self._num_seen == self.number):
                self.agent, self._team = (name, agent), team
                self.number = self._num_seen
                return
