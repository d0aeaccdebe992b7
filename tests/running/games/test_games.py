"""Games between two sides: who acts for whom, which games count, and what has decided them."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.config.behavior import SelfPlaySettings
from rl_tui.engine.errors import ConfigError, EnvironmentFailure
from rl_tui.engine.running.games import playing
from rl_tui.engine.running.games.playing import PolicyFor, play_games
from rl_tui.engine.running.games.rules import PlayedGame, Record, Rules
from rl_tui.engine.running.games.seats import Seat, seats_of
from rl_tui.engine.running.games.tally import GameTally
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.quota import RestartQuota
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.specs import (
    Actions,
    BehaviorSpec,
    Choice,
    DecisionSteps,
    Float32,
    Policy,
    State,
    Steps,
    TerminalSteps,
    Weights,
)
from tests.deadline import DEADLINE_SECONDS
from tests.fakes import RandomPolicy
from tests.running.games.duel import CHOICES, SEEN, Duel

FIRST, SECOND = Seat("Fighter", 0), Seat("Fighter", 1)
DEFAULTS = Rules.of(None)


class Always:
    """Takes the same choice, and expects to remember of each agent how often that has acted in its game."""

    version = 0
    memory_size = 1

    def __init__(self, choice: int) -> None:
        self.num_steps: list[float] = []
        self._choice = choice

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        assert memories is not None
        has_begun = decisions.observations[0][:, 0] < 1
        np.testing.assert_array_equal(memories[:, 0] > 0, has_begun)
        self.num_steps += memories[:, 0].tolist()
        count = len(memories)
        actions = Actions(np.zeros((count, 0), np.float32), np.full((count, 1), self._choice, np.int64))
        return Choice(actions, actions.continuous, np.zeros((count, 1), np.float32), memories + 1)

    def load(self, weights: Weights) -> None:
        raise AssertionError("it has none")

    def state(self) -> State:
        return State()

    def load_state(self, state: State) -> None:
        pass


def always(choice: int) -> PolicyFor:
    return lambda spec: Always(choice)


BEST, WORST = always(2), always(0)


def at_random(seed: int) -> PolicyFor:
    return lambda spec: RandomPolicy(spec.actions, seed)


def played(
    *duels: Duel,
    seat: Seat = FIRST,
    own: PolicyFor = BEST,
    others: PolicyFor = WORST,
    num_games: int = 6,
) -> list[PlayedGame]:
    pool = SerialPool("test", lambda first, count: duels, len(duels))
    pool.start()
    games = play_games(pool, seat, own, others, num_games, 1, lambda: True)
    assert games is not None
    return games


@pytest.mark.parametrize("seat", [FIRST, SECOND])
def test_each_side_acts_by_its_own_policy_in_every_seat(seat: Seat) -> None:
    assert DEFAULTS.record(played(Duel(), seat=seat)) == Record(won=6)
    assert DEFAULTS.record(played(Duel(), seat=seat, own=always(1), others=BEST)) == Record(lost=6)
    assert DEFAULTS.record(played(Duel(), seat=seat, others=BEST)) == Record(drawn=6)


@pytest.mark.parametrize("is_reborn", [False, True])
def test_games_count_as_they_begin_and_long_ones_are_waited_for(is_reborn: bool) -> None:
    games = played(Duel(lengths=(2, 9), is_reborn=is_reborn))
    assert [game.length for game in games] == [2, 9, 2, 2, 2, 2]
    games = played(Duel(lengths=(2, 3)), Duel(lengths=(4,)), num_games=3)
    assert [game.length for game in games] == [2, 3, 4]


def test_group_plays_one_game_which_its_last_agents_decide() -> None:
    games = played(Duel(size=3, lengths=(3, 5)), num_games=4)
    assert [(game.length, game.reward) for game in games] == [(3, 1), (5, 1), (3, 1), (5, 1)]
    assert DEFAULTS.record(played(Duel(size=3, lengths=(3, 5)), seat=SECOND)) == Record(won=6)


def test_group_rewards_are_of_the_game_once() -> None:
    """Three agents that each earned 1 have not earned 3 together: a margin is of one agent, as it is without groups."""
    (game,) = played(Duel(size=4, lengths=(2,)), num_games=1)
    assert (game.reward, game.total) == (1, 1)


def test_opponent_takes_all_other_seats() -> None:
    teams = [f"Fighter?team={team}" for team in range(3)]
    for team in range(3):
        duel = Duel(teams)
        assert DEFAULTS.record(played(duel, seat=Seat("Fighter", team))) == Record(won=6)
        assert DEFAULTS.record(played(duel, seat=Seat("Fighter", team), own=WORST, others=always(1))).lost == 6


def test_sides_of_several_behaviors_each_have_a_policy() -> None:
    asked: list[tuple[str, int]] = []

    def noted(choice: int) -> Callable[[BehaviorSpec], Policy]:
        def policy_for(spec: BehaviorSpec) -> Policy:
            asked.append((spec.name, choice))
            return Always(choice)

        return policy_for

    duel = Duel(["Giant?team=0", "Dwarf?team=1"])
    assert DEFAULTS.record(played(duel, seat=Seat("Giant", 0), own=noted(2), others=noted(1))) == Record(won=6)
    assert DEFAULTS.record(played(duel, seat=Seat("Dwarf", 1), own=noted(1), others=noted(2))) == Record(lost=6)
    assert sorted(asked) == [("Dwarf", 1), ("Dwarf", 1), ("Giant", 2), ("Giant", 2)]


def test_same_seeds_give_the_same_games() -> None:
    first, again = (played(Duel(), own=at_random(1), others=at_random(2), num_games=40) for _ in range(2))
    assert first == again
    record = DEFAULTS.record(first)
    assert min(record.won, record.drawn, record.lost) > 0


def test_games_end_at_once_when_interrupted() -> None:
    pool = SerialPool("test", lambda first, count: [Duel(lengths=(50,))], 1)
    pool.start()
    answers = iter([True, True, False])
    assert play_games(pool, FIRST, BEST, WORST, 1, 1, lambda: next(answers)) is None


def test_games_of_a_lost_worker_are_played_again(tmp_path: Path) -> None:
    kwargs = {"folder": str(tmp_path), "lengths": [2, 4]}
    source = EnvironmentSource("tests.running.games.duel:MortalDuel", "Fighter", kwargs)
    pool = ProcessPool(source, 1, 1, make_quota=partial(RestartQuota, 1, 1, 60.0))
    pool.start()
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        games = play_games(pool, SECOND, BEST, WORST, 5, 1, lambda: time.monotonic() < deadline)
    finally:
        pool.close()
    assert len(list(tmp_path.glob("life-*"))) == 2
    assert games is not None
    assert [game.length for game in games] == [2, 2, 4, 2, 2], "the first one had ended"
    assert DEFAULTS.record(games) == Record(won=5)


def test_seat_that_is_never_taken_is_not_waited_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "AWAITED_STEPS", 50)
    with pytest.raises(EnvironmentFailure, match="team 7 of behavior Fighter has not appeared in 50 steps"):
        played(Duel(), seat=Seat("Fighter", 7))


def test_interrupted_games_are_ignored_or_draws() -> None:
    games = played(Duel(is_cut=True))
    assert DEFAULTS.record(games) == Record(ignored=6)
    assert Rules.of(SelfPlaySettings(interrupted_games="draw")).record(games) == Record(drawn=6)


def test_last_reward_or_the_return_decides_beyond_the_margin() -> None:
    game = PlayedGame(reward=0.4, total=-0.6, length=3)
    by = {"final_reward": Rules.of(None), "return": Rules.of(SelfPlaySettings(game_result="return"))}
    assert {name: rules.result(game) for name, rules in by.items()} == {"final_reward": "won", "return": "lost"}
    margins = [Rules.of(SelfPlaySettings(draw_margin=margin)).result(game) for margin in (0.3, 0.4, 0.5)]
    assert margins == ["won", "drawn", "drawn"]


def test_record_knows_both_sides_and_a_draw_counts_half() -> None:
    record = Record(3, 2, 1, ignored=4) + Record(1, 0, 1)
    assert (record.counted, record.win_rate) == (8, 5 / 8)
    assert record.reversed == Record(2, 2, 4, ignored=4)
    assert Record(ignored=3).win_rate is None


def spec(name: str, *teams: int) -> BehaviorSpec:
    return BehaviorSpec(name, SEEN, CHOICES, teams=teams)


def test_seats_are_the_teams_of_all_behaviors() -> None:
    assert seats_of({"A": spec("A", 0, 1, 4)}) == [Seat("A", 0), Seat("A", 1), Seat("A", 4)]
    both = {"A": spec("A", 0), "B": spec("B", 0, 1), "C": spec("C", 1)}
    assert seats_of(both) == [Seat("A", 0), Seat("B", 1)]
    assert seats_of(both, "C") == [Seat("A", 0), Seat("C", 1)]
    assert seats_of({"A": spec("A"), "B": spec("B", 3)}) == [Seat("A", 0), Seat("B", 3)]


def test_group_was_interrupted_where_an_agent_of_it_was() -> None:
    """As in training."""
    tally, agents, groups = GameTally(FIRST, 1), np.arange(2), np.zeros(2, np.int64)
    seen, zeros = (np.zeros((2, 1), np.float32),), np.zeros(2, np.float32)
    tally.add(Steps(DecisionSteps(agents, seen, zeros, group_ids=groups)))
    over = TerminalSteps(agents, seen, zeros, np.array([True, False]), groups)
    tally.add(Steps(DecisionSteps(agents[:0], (seen[0][:0],), zeros[:0]), over))
    assert tally.games == [PlayedGame(0.0, 0.0, 1, is_interrupted=True)]


def test_single_team_is_refused_with_what_is_missing() -> None:
    with pytest.raises(ConfigError, match=r"^the environment has only one team, of A and B: a game needs two, which"):
        seats_of({"A": spec("A"), "B": spec("B", 0)})
