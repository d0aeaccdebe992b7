"""Lets two sides play games against each other in an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.experience import take_decisions
from rl_tui.engine.learning.player import Player
from rl_tui.engine.running.evaluation.episodes import AWAITED_STEPS, RECEIVE_SECONDS
from rl_tui.engine.running.games.rules import PlayedGame
from rl_tui.engine.running.games.seats import Seat
from rl_tui.engine.running.games.tally import GameTally
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.numbering import ids_of_instance
from rl_tui.engine.specs import Actions, BehaviorSpec, DecisionSteps, Int64, Policy, Steps

PolicyFor: TypeAlias = Callable[[BehaviorSpec], Policy]


def ignore_number(num_ended: int) -> None:
    """The default of `play_games` for `on_game`."""


def play_games(
    pool: EnvironmentPool,
    seat: Seat,
    own: PolicyFor,
    others: PolicyFor,
    num_games: int,
    seed: int,
    should_continue: Callable[[], bool],
    on_game: Callable[[int], None] = ignore_number,
) -> list[PlayedGame] | None:
    """Play so many games, from a reset of every instance with `seed`, in the order in which they began; None when
    interrupted.

    seat: of the side whose games these are. own, others: called once for every behavior of which that side, or any
    other one, has agents; they may raise. should_continue: called at every step. on_game: called with the number of
    games that have ended, where that has changed. Games of an instance that is lost do not count, and are replaced by
    others. Raises EnvironmentFailure, also if no agent takes the seat.
    """
    sides, tally = _Sides(seat, own, others), GameTally(seat, num_games)
    num_ended = 0
    pool.reset(seed)
    while should_continue():
        arrived = dict(pool.receive(RECEIVE_SECONDS))
        for instance in pool.pop_lost():
            tally.abandon(instance, pool.num_instances)
            sides.abandon(instance, pool.num_instances)
        for behaviors in arrived.values():
            tally.add(behaviors.get(seat.behavior))
        if tally.num_ended != num_ended:
            num_ended = tally.num_ended
            on_game(num_ended)
        if tally.is_complete:
            return tally.games
        if tally.num_awaited > AWAITED_STEPS:
            missing = f"team {seat.team} of behavior {seat.behavior}"
            raise EnvironmentFailure(f"{missing} has not appeared in {AWAITED_STEPS:,} steps")
        for instance, behaviors in arrived.items():
            pool.send(instance, sides.act(behaviors, pool.specs))
    return None


class _Sides:
    """Who acts for whom. Owns a player, with the memories of its agents, for each side and behavior."""

    def __init__(self, seat: Seat, own: PolicyFor, others: PolicyFor) -> None:
        self._seat, self._make = seat, {True: own, False: others}
        self._players: dict[tuple[str, bool], Player] = {}  # by behavior, and whether it is of the seat's side

    def act(self, behaviors: Mapping[str, Steps], specs: Mapping[str, BehaviorSpec]) -> dict[str, Actions]:
        """Actions of all agents of an instance that wait, by behavior."""
        chosen = {}
        for name, steps in behaviors.items():
            if steps.terminals is not None:
                self._forget(name, steps.terminals.agent_ids)
            if len(steps.decisions.agent_ids):
                chosen[name] = self._choose(specs[name], steps.decisions)
        return chosen

    def abandon(self, instance: int, num_instances: int) -> None:
        """An instance was lost, with its agents."""
        for player in self._players.values():
            player.forget(ids_of_instance(player.agents, instance, num_instances))

    def _forget(self, behavior: str, agents: Int64) -> None:
        for (name, _), player in self._players.items():
            if name == behavior:
                player.forget(agents)

    def _choose(self, spec: BehaviorSpec, decisions: DecisionSteps) -> Actions:
        """Each side acts once for all of its agents."""
        count, own = len(decisions.agent_ids), self._seat.rows(decisions)
        if len(own) in (0, count):
            return self._player(spec, is_own=len(own) > 0).act(decisions)
        continuous = np.zeros((count, spec.actions.continuous), np.float32)
        discrete = np.zeros((count, len(spec.actions.branches)), np.int64)
        others: Int64 = np.setdiff1d(np.arange(count), own, assume_unique=True)
        for is_own, rows in ((True, own), (False, others)):
            actions = self._player(spec, is_own=is_own).act(take_decisions(decisions, rows))
            continuous[rows], discrete[rows] = actions.continuous, actions.discrete
        return Actions(continuous, discrete)

    def _player(self, spec: BehaviorSpec, *, is_own: bool) -> Player:
        key = spec.name, is_own
        if key not in self._players:
            self._players[key] = Player(self._make[is_own](spec))
        return self._players[key]
