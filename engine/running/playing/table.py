"""Who plays: the person's seat, the policies of the others, the one that advises, and how games have ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rl_tui.engine.running.games.entrants import RANDOM, Entrant
from rl_tui.engine.running.playing.advice import Adviser
from rl_tui.engine.running.playing.others import Others
from rl_tui.engine.running.playing.playable import playable_behaviors
from rl_tui.engine.running.playing.policies import EntrantPolicies
from rl_tui.engine.running.playing.seats import SeatRequest, Seats
from rl_tui.engine.running.run_setup import derived_seed
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.session.games import Result, Tally
from rl_tui.engine.session.text import counted
from rl_tui.engine.specs import BehaviorSpec


@dataclass(frozen=True, slots=True)
class GameRequest:
    """Who plays. run: whose policy advises. opponent: plays all other agents. is_greedy: it takes its likeliest
    actions. most_choices: for which the front end has keys."""

    run: Entrant
    opponent: Entrant
    seat: SeatRequest
    is_greedy: bool
    seed: int
    most_choices: int


class Table:
    """Used by one thread. Made for an environment that was started.

    has_opponents: others act in the same game, here or inside the environment. opponent, opponent_way: see GameTurn.
    warnings: what is probably wrong with the policies. tallies: by seat. returns, lengths: of all games.
    """

    def __init__(self, env: str, pool: EnvironmentPool, request: GameRequest, *, has_random_agents: bool) -> None:
        """has_random_agents: in the run, some acted at random. Raises RlTuiError for what no person can play, and where
        a policy is missing or does not fit."""
        specs, seed = pool.specs, derived_seed(request.seed)
        playable = playable_behaviors(env, specs, request.seat.behavior, request.most_choices)
        self.seats = Seats(playable, pool.num_agents, request.seat)
        self._is_alone = sum(pool.num_agents.values()) == 1
        self.has_opponents = has_random_agents or not self._is_alone
        self._opponent = EntrantPolicies(request.opponent, seed, others_are_random=has_random_agents)
        self.others = Others(self._opponent, is_greedy=request.is_greedy)
        self.others.require(specs)
        advising = EntrantPolicies(request.run, seed, others_are_random=has_random_agents)
        self._advisers = {name: Adviser(advising.make(spec, is_greedy=True), spec) for name, spec in playable.items()}
        self.warnings = tuple(dict.fromkeys((*self._opponent.warnings, *advising.warnings)))
        self.opponent = self._in_words(specs)
        way = "most likely" if request.is_greedy else "sampled"
        self.opponent_way = "" if self.opponent in ("", RANDOM) else way
        self.tallies = [Tally() for _ in range(self.seats.count)]
        self.returns: list[float] = []
        self.lengths: list[int] = []

    def begin(self) -> None:
        """A game begins."""
        self.seats.begin()
        self.others.begin()
        for adviser in self._advisers.values():
            adviser.begin()

    def end(self, result: Result | None, total: float, length: int) -> None:
        """A game is over. result: None without opponents."""
        if result is not None:
            self.tallies[self.seats.number - 1] += Tally.of(result)
        self.returns.append(total)
        self.lengths.append(length)

    @property
    def summary(self) -> str:
        """How all games have ended, in words."""
        tally, games = sum(self.tallies, Tally()), counted(len(self.returns), "game")
        if not self.has_opponents:
            return f"{games}, mean return {sum(self.returns) / len(self.returns):.6g}"
        return f"{games} against {self.opponent}: {tally.won} won, {tally.drawn} drawn, {tally.lost} lost"

    @property
    def adviser(self) -> Adviser:
        """For the person's agent of this game."""
        return self._advisers[self.seats.seat.behavior]

    def _in_words(self, specs: Mapping[str, BehaviorSpec]) -> str:
        if self._is_alone:
            return RANDOM if self.has_opponents else ""
        return " and ".join(dict.fromkeys(map(self._opponent.in_words, specs.values())))
