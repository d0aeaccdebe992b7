"""The games that learned players are judged by: the rules are PettingZoo's, the perfect player is perfect, and results
add up."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pettingzoo
import pytest

from rl_tui.engine.sampling.random_policy import RandomPolicy
from rl_tui.engine.specs import Actions, ActionSpec, BehaviorSpec, Choice, DecisionSteps, Float32, ObservationSpec
from tests.learning.games.boards import Boards
from tests.learning.games.matches import Results, play, play_both_seats
from tests.learning.games.players import PerfectPlayer, PolicyPlayer, RandomPlayer
from tests.learning.games.rows import CONNECT_FOUR, FIRST, SECOND, TIC_TAC_TOE, Board, RowGame, other
from tests.learning.written import Written

IDS = {"classic/tictactoe_v3": TIC_TAC_TOE, "classic/connect_four_v3": CONNECT_FOUR}


def random_policy(game: RowGame, seed: int = 1) -> RandomPolicy:
    seen = ObservationSpec("observation", (game.height, game.width, 2))
    return RandomPolicy(BehaviorSpec("B", (seen,), ActionSpec(0, (game.num_moves,))), seed)


def replayed(game: RowGame, line: tuple[int, ...]) -> tuple[Board, int | None]:
    """Where a game has ended, and who has won it."""
    board, player = game.start, FIRST
    for number, move in enumerate(line):
        assert move in game.allowed(board)
        board, has_won = game.after(board, move, player)
        if has_won:
            assert number == len(line) - 1
            return board, player
        player = other(player)
    return board, None


@pytest.mark.parametrize("name", IDS)
def test_rules_and_what_is_seen_are_those_of_pettingzoo(name: str) -> None:
    game, env, random, ends = IDS[name], pettingzoo.make("aec", name), np.random.default_rng(1), set[Any]()
    for _ in range(60):
        env.reset()
        board, player, is_over = game.start, FIRST, False
        while True:
            observation, _, terminated, _, _ = env.last()
            np.testing.assert_array_equal(observation["observation"], game.seen(board, player))
            assert terminated == is_over
            if is_over:
                break
            np.testing.assert_array_equal(observation["action_mask"], game.mask(board))
            move = int(random.choice(game.allowed(board)))
            env.step(move)
            board, has_won = game.after(board, move, player)
            is_over = has_won or not game.allowed(board)
            player = other(player)
        won = env.rewards[env.possible_agents[other(player) - FIRST]]
        assert won == (1 if has_won else 0)
        assert env.rewards[env.possible_agents[player - FIRST]] == -won
        ends.add((won, player))
    assert {(1, FIRST), (1, SECOND)} <= ends


@pytest.mark.parametrize(("name", "game"), [("tictactoe", TIC_TAC_TOE), ("connect_four", CONNECT_FOUR)])
def test_many_games_at_once_have_the_same_rules(name: Literal["tictactoe", "connect_four"], game: RowGame) -> None:
    env, random, rewards = Boards(name, games=8), np.random.default_rng(1), set[float]()
    steps, boards, player = env.reset(1), [game.start] * 8, [FIRST] * 8
    for _ in range(400):
        chosen = {}
        for team, (behavior, each) in enumerate(steps.items()):
            waiting, moves = each.decisions, []
            for row, number in enumerate((waiting.agent_ids - 8 * team).tolist()):
                assert player[number] == team + FIRST
                np.testing.assert_array_equal(waiting.observations[0][row], game.seen(boards[number], team + FIRST))
                np.testing.assert_array_equal(waiting.action_mask[row], game.mask(boards[number]))
                moves.append(int(random.choice(game.allowed(boards[number]))))
            chosen[behavior] = Actions(np.empty((len(moves), 0), np.float32), np.array(moves, np.int64).reshape(-1, 1))
        earned = dict[int, float]()
        for number in range(8):
            team, moves = player[number] - FIRST, chosen[f"Player?team={player[number] - FIRST}"].discrete[:, 0]
            at = steps[f"Player?team={team}"].decisions.agent_ids.tolist().index(number + 8 * team)
            boards[number], has_won = game.after(boards[number], int(moves[at]), player[number])
            player[number] = other(player[number])
            if has_won or not game.allowed(boards[number]):
                earned |= {number + 8 * team: float(has_won), number + 8 * (1 - team): -float(has_won)}
                boards[number], player[number] = game.start, FIRST
        steps = env.step(chosen)
        ended = [each.terminals for each in steps.values() if each.terminals is not None]
        found = {
            agent: float(reward) for each in ended for agent, reward in zip(each.agent_ids, each.rewards, strict=True)
        }
        assert found == earned
        rewards |= set(found.values())
    assert {1.0, -1.0} <= rewards


def test_perfect_player_knows_every_position_of_tic_tac_toe() -> None:
    """There are 5,478 that a game can reach, 942 of them won. The start is a draw."""
    perfect, won, reached = PerfectPlayer(TIC_TAC_TOE, 1), set[Board](), {TIC_TAC_TOE.start}
    assert perfect.best(TIC_TAC_TOE.start, FIRST) == list(range(9)), "every first move draws"
    queue = [(TIC_TAC_TOE.start, FIRST)]
    while queue:
        board, player = queue.pop()
        for move in TIC_TAC_TOE.allowed(board):
            after, has_won = TIC_TAC_TOE.after(board, move, player)
            if has_won:
                won.add(after)
            elif after not in reached:
                reached.add(after)
                queue.append((after, other(player)))
    assert (len(won), len(won) + len(reached)) == (942, 5478)
    assert perfect.values.keys() == reached - {TIC_TAC_TOE.start}


def test_perfect_player_takes_what_wins_and_prevents_what_loses() -> None:
    perfect = PerfectPlayer(TIC_TAC_TOE, 1)
    assert perfect.best((1, 1, 0, 2, 2, 0, 0, 0, 0), FIRST) == [2]
    assert perfect.best((1, 1, 0, 0, 2, 0, 0, 0, 0), SECOND) == [2]
    assert perfect.best((1, 0, 0, 0, 0, 0, 0, 0, 0), SECOND) == [4], "a corner is answered in the middle"
    assert perfect.best((1, 0, 0, 0, 2, 0, 0, 0, 1), SECOND) == [1, 3, 5, 7], "two corners by an edge"


@pytest.mark.parametrize("seat", [FIRST, SECOND])
def test_perfect_player_never_loses(seat: int) -> None:
    results = play(TIC_TAC_TOE, PerfectPlayer(TIC_TAC_TOE, 1), RandomPlayer(TIC_TAC_TOE, 2), 300, seat=seat)
    assert not results.lost
    assert results.won > 200
    against_itself = play(TIC_TAC_TOE, PerfectPlayer(TIC_TAC_TOE, 1), PerfectPlayer(TIC_TAC_TOE, 2), 100, seat=seat)
    assert against_itself == Results(drawn=100)


@pytest.mark.parametrize(
    ("game", "seat", "won", "lost"),
    [
        (TIC_TAC_TOE, FIRST, 0.585, 0.288),  # of all games at random, counted
        (TIC_TAC_TOE, SECOND, 0.288, 0.585),
        (CONNECT_FOUR, FIRST, 0.556, 0.442),
        (CONNECT_FOUR, SECOND, 0.442, 0.556),
    ],
)
def test_random_policy_wins_as_often_as_chance_does(game: RowGame, seat: int, won: float, lost: float) -> None:
    policy = PolicyPlayer(game, random_policy(game))
    results = play(game, policy, RandomPlayer(game, 2), 1000, seat=seat)
    assert results.num_games == 1000
    assert results.won / 1000 == pytest.approx(won, abs=0.05)
    assert len(results.lost) / 1000 == pytest.approx(lost, abs=0.05)


def test_random_policy_is_no_match_for_a_perfect_player() -> None:
    perfect = PerfectPlayer(TIC_TAC_TOE, 1)
    results = play_both_seats(TIC_TAC_TOE, PolicyPlayer(TIC_TAC_TOE, random_policy(TIC_TAC_TOE)), perfect, 400)
    assert (results.won, results.num_games) == (0, 400)
    assert results.drawn < 80
    for number, line in enumerate(results.lost):
        _, winner = replayed(TIC_TAC_TOE, line)
        assert winner is not None
        assert len(line) % 2 == (winner == FIRST)
        if number == 0:
            assert winner == SECOND, "the policy moved first in the first half of the games"
    assert results.score == results.drawn / 800


def test_a_policy_sees_each_game_from_its_own_side_and_keeps_its_memory() -> None:
    """A policy whose memory counts its moves, and which takes the first cell that is allowed."""
    seen: list[tuple[DecisionSteps, Float32]] = []

    class Counting(Written):
        memory_size = 1

        def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
            assert memories is not None
            assert decisions.action_mask is not None
            seen.append((decisions, memories))
            count = len(decisions.agent_ids)
            first = decisions.action_mask.argmax(axis=1)[:, None].astype(np.int64)
            none = np.zeros((count, 0), np.float32)
            return Choice(Actions(none, first), none, np.zeros((count, 1), np.float32), memories + 1)

    policy = Counting(lambda decisions: Actions(np.zeros((0, 0), np.float32), np.zeros((0, 1), np.int64)))
    play(TIC_TAC_TOE, PolicyPlayer(TIC_TAC_TOE, policy), RandomPlayer(TIC_TAC_TOE, 1), 50, seat=SECOND)
    for number, (decisions, memories) in enumerate(seen):
        own, others = np.moveaxis(decisions.observations[0], 3, 0).reshape(2, -1, 9)
        assert (own.sum(axis=1) == number).all()
        assert (others.sum(axis=1) == number + 1).all()
        assert (memories == number).all()
        assert decisions.team_ids is not None
        assert (decisions.team_ids == 1).all()
        assert decisions.action_mask is not None
        np.testing.assert_array_equal(decisions.action_mask, (own + others) == 0)
    assert len(seen) == 4
    assert len(seen[0][0].agent_ids) == 50
    assert len(set(seen[-1][0].agent_ids.tolist())) < 50, "games that are over are not asked about"


def test_openings_are_the_same_for_both_seats_and_of_the_seed() -> None:
    lines = {
        (seat, seed): play(
            TIC_TAC_TOE, _First(), PerfectPlayer(TIC_TAC_TOE, 1), 100, seat=seat, opening=2, seed=seed
        ).lost
        for seat in (FIRST, SECOND)
        for seed in (1, 2)
    }
    openings = {key: {line[:2] for line in found} for key, found in lines.items()}
    assert len(openings[FIRST, 1]) > 20
    assert lines[FIRST, 1] != lines[FIRST, 2]
    assert len(openings[FIRST, 1] & openings[SECOND, 1]) > 20
    assert (
        len({line[:1] for line in play(TIC_TAC_TOE, _First(), PerfectPlayer(TIC_TAC_TOE, 1), 50, seat=FIRST).lost}) == 1
    )


def test_lost_games_are_listed_the_most_frequent_first() -> None:
    results = Results(2, 1, [(0, 1, 2, 3)] + 2 * [(4, 5, 6, 7)])
    assert str(results) == "6 games: 2 won, 1 drawn, 3 lost\n  2 x 4 5 6 7\n  1 x 0 1 2 3"
    assert str(results + Results(0, 0, [(number,) for number in range(9)])).endswith("and 1 other lines")


class _First:
    """Always marks the first free cell."""

    def begin(self, num_games: int) -> None:
        """As `Player`."""

    def move(self, games: Any, boards: list[Board], player: int) -> list[int]:
        """As `Player`."""
        return [TIC_TAC_TOE.allowed(board)[0] for board in boards]
