"""Pong as an environment: two teams that see the same game from their own side, and how games end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.environments.base import Rendered
from rl_tui.engine.sampling.environments.toys.pong import Pong
from rl_tui.engine.sampling.environments.toys.pong_court import PADDLE_SPEED, Court
from rl_tui.engine.sampling.environments.toys.pong_picture import LEFT, RIGHT
from rl_tui.engine.sampling.environments.toys.pong_players import tracking
from rl_tui.engine.sampling.environments.toys.pong_views import (
    BRIGHT_BALL,
    OTHER_PADDLES,
    OWN_PADDLE,
    ImageView,
    VectorView,
    View,
)
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.sampling.random_policy import RandomPolicy
from rl_tui.engine.specs import ActionSpec, Json, ObservationSpec, Steps
from tests.sampling.environments.toys.playing import make
from tests.sampling.environments.toys.rallies import TEAMS, at_random, chosen, far_sighted, played, staying

UP = 1


def pong(num_games: int, **kwargs: Json) -> Pong:
    game = make("pong", num_games, **kwargs)
    assert isinstance(game, Pong)
    return game


def stay(game: Pong) -> dict[str, Steps]:
    """No paddle moves."""
    return dict(game.step({name: chosen(np.zeros(count)) for name, count in game.num_agents.items()}))


@pytest.mark.parametrize(
    ("kwargs", "seen"),
    [
        ({}, ObservationSpec("court", (6,))),
        ({"players": 2}, ObservationSpec("court", (9,))),
        ({"observations": "image", "size": 24}, ObservationSpec("court", (24, 24, 2), "uint8")),
    ],
)
@pytest.mark.parametrize("opponent", [None, "tracking", "random"])
def test_agents_are_of_two_teams_or_of_none_against_an_opponent(
    kwargs: dict[str, Json], seen: ObservationSpec, opponent: str | None
) -> None:
    game = pong(5, opponent=opponent, **kwargs)
    assert list(game.specs) == (["B"] if opponent else list(TEAMS))
    steps, count = game.reset(1), 5 * int(str(kwargs.get("players", 1)))
    for name, spec in game.specs.items():
        assert (spec.name, spec.observations, spec.actions) == (name, (seen,), ActionSpec(0, (3,)))
        assert spec.choice_names == ("stay", "up", "down")
        assert game.num_agents[name] == count
        assert steps[name].decisions.observations[0].shape == (count, *seen.shape)
        assert steps[name].decisions.observations[0].dtype == seen.dtype
        assert (steps[name].decisions.group_ids is None) == ("players" not in kwargs)


def mirrored(court: Court) -> Court:
    """The same games, with the sides exchanged."""
    other = Court(len(court.balls), court.paddles.shape[2])
    flip = np.float32([-1, 1])
    other.balls, other.balls_before = court.balls * flip, court.balls_before * flip
    other.velocities = court.velocities * flip
    other.paddles, other.paddles_before = court.paddles[:, ::-1], court.paddles_before[:, ::-1]
    return other


@pytest.mark.parametrize("num_players", [1, 2])
@pytest.mark.parametrize("view", [VectorView, lambda num_players: ImageView(num_players, 37)])
def test_both_sides_see_the_game_from_their_own_side(num_players: int, view: Callable[[int], View]) -> None:
    random, court = np.random.default_rng(1), Court(50, num_players)
    court.serve(np.ones(50, np.bool_), random)
    for _ in range(20):
        court.move(random.integers(-1, 2, (50, 2, num_players)).astype(np.float32))
        for side in (0, 1):
            seen = view(num_players).of(court, side)
            np.testing.assert_array_equal(seen, view(num_players).of(mirrored(court), 1 - side))
        assert (seen != view(num_players).of(court, 0)).any()


def test_vectors_say_where_everything_is() -> None:
    court = Court(1, 2)
    court.balls[0], court.velocities[0] = (0.3, -0.4), (0.1, 0.05)
    court.paddles[0] = (0.1, 0.2), (0.3, 0.4)
    left, right = VectorView(2).of(court, 0), VectorView(2).of(court, 1)
    assert left.tolist() == [
        pytest.approx([0.3, -0.4, 0.4, 0.2, 0.1, 0.2, 0.3, 0.4, 0]),
        pytest.approx([0.3, -0.4, 0.4, 0.2, 0.2, 0.1, 0.3, 0.4, 1]),
    ]
    assert right[1].tolist() == pytest.approx([-0.3, -0.4, -0.4, 0.2, 0.4, 0.3, 0.1, 0.2, 1])
    single = Court(1, 1)
    single.paddles[0, 1] = 0.7
    assert VectorView(1).of(single, 0).tolist() == [pytest.approx([0, 0, 0, 0, 0, 0.7])]


def test_images_show_the_ball_the_paddles_and_where_they_were() -> None:
    court = Court(1, 2)
    court.balls[0], court.velocities[0] = (0.0, 0.9), (0.2, 0.0)
    court.paddles[0, 0] = 0.0, -0.5
    court.move(np.ones((1, 2, 2), np.float32))
    for player in (0, 1):
        now, before = np.moveaxis(ImageView(2, 40).of(court, 0)[player], 2, 0)
        assert (now == BRIGHT_BALL).sum() == (before == BRIGHT_BALL).sum() == 4
        assert [(image == BRIGHT_BALL).any(axis=0).argmax() for image in (now, before)] == [23, 19]
        assert (now == BRIGHT_BALL).any(axis=1).argmax() == 1, "row 0 is the top"
        columns = {mark: (now == mark).any(axis=0).nonzero()[0].tolist() for mark in (OWN_PADDLE, OTHER_PADDLES)}
        assert columns == {OWN_PADDLE: [(0, 10)[player]], OTHER_PADDLES: [(10, 0)[player], 30, 39]}
        rows = [(image == OWN_PADDLE).any(axis=1).nonzero()[0] for image in (now, before)]
        middle = (20, 30)[player] - 0.5
        assert [np.mean(found) for found in rows] == pytest.approx([middle - PADDLE_SPEED * 20, middle], abs=0.51)
        assert len(rows[0]) == 8


@pytest.mark.parametrize("players", [1, 2])
def test_games_end_for_both_teams_at_once_and_the_winner_earns_what_the_other_side_loses(players: int) -> None:
    game = pong(20, players=players)
    steps, players_of = game.reset(1), {name: at_random(side) for side, name in enumerate(TEAMS)}
    firsts = [steps[name].decisions for name in TEAMS]
    assert not set(firsts[0].agent_ids.tolist()) & set(firsts[1].agent_ids.tolist())
    num_ended = 0
    while num_ended < 100:
        seen = {name: steps[name].decisions.observations[0] for name in TEAMS}
        np.testing.assert_array_equal(seen[TEAMS[0]][:, 0], -seen[TEAMS[1]][:, 0], "ball x: they play each other")
        np.testing.assert_array_equal(seen[TEAMS[0]][:, 1], seen[TEAMS[1]][:, 1])
        steps = game.step({name: chosen(player(seen[name])) for name, player in players_of.items()})
        left, right = (steps[name] for name in TEAMS)
        assert left.decisions.agent_ids is firsts[0].agent_ids
        assert not left.decisions.total_rewards.any()
        assert not right.decisions.total_rewards.any()
        assert (left.terminals is None) == (right.terminals is None)
        if left.terminals is None or right.terminals is None:
            continue
        np.testing.assert_array_equal(left.terminals.agent_ids + 20 * players, right.terminals.agent_ids)
        np.testing.assert_array_equal(left.terminals.total_rewards, -right.terminals.total_rewards)
        assert (np.abs(left.terminals.total_rewards) == 1).all()
        assert not left.terminals.truncated.any()
        ball = left.terminals.observations[0][:, 0]
        np.testing.assert_array_equal(np.sign(ball), left.terminals.total_rewards)
        assert (np.abs(ball) >= 1).all(), "what was seen last is the end of the game, not the next one's serve"
        num_ended += len(ball)


def test_two_players_are_a_group_which_earns_what_its_side_does() -> None:
    game = pong(6, players=2)
    steps, groups = game.reset(1), set()
    for name in TEAMS:
        ids, found = steps[name].decisions.agent_ids, steps[name].decisions.group_ids
        assert found is not None
        np.testing.assert_array_equal(found[::2], found[1::2])
        assert len(set(found.tolist())) == 6
        groups |= set(found.tolist())
        assert len(ids) == 12
    assert len(groups) == 12
    while steps[TEAMS[0]].terminals is None:
        steps = stay(game)
    over = steps[TEAMS[0]].terminals
    assert over is not None
    assert over.group_ids is not None
    assert over.group_rewards is not None
    assert not over.rewards.any()
    np.testing.assert_array_equal(over.group_ids, over.agent_ids // 2)
    np.testing.assert_array_equal(over.group_rewards[::2], over.group_rewards[1::2])


def test_game_of_several_points_is_won_by_the_first_side_that_has_them() -> None:
    game, points, num_games = pong(8, points=3), np.zeros((8, 2)), 0
    game.reset(1)
    while num_games < 40:
        left, right = stay(game).values()
        both = [left.decisions.rewards.copy(), right.decisions.rewards.copy()]
        for rewards, steps in zip(both, (left, right), strict=True):
            if steps.terminals is not None:
                assert not rewards[steps.terminals.agent_ids % 8].any()
                rewards[steps.terminals.agent_ids % 8] = steps.terminals.rewards
        np.testing.assert_array_equal(both[0], -both[1])
        points += np.stack([both[0] > 0, both[1] > 0], axis=1)
        ended = np.zeros(8, np.bool_)
        if left.terminals is not None:
            ended[left.terminals.agent_ids] = True
            assert not left.terminals.truncated.any()
            winners = np.where(left.terminals.rewards > 0, 0, 1)
            np.testing.assert_array_equal(points[left.terminals.agent_ids].argmax(axis=1), winners)
        np.testing.assert_array_equal((points == 3).any(axis=1), ended)
        np.testing.assert_array_equal(game._score.points, np.where(ended[:, None], 0, points))
        points[ended], num_games = 0, num_games + int(ended.sum())


def test_game_that_takes_too_long_is_truncated_for_both_sides() -> None:
    game = pong(3, points=21, max_episode_steps=40)
    game.reset(1)
    for number in range(1, 121):
        for steps in stay(game).values():
            assert (steps.terminals is not None) == (number % 40 == 0)
            if steps.terminals is not None:
                assert steps.terminals.truncated.tolist() == [True] * 3


def test_same_seed_is_the_same_game() -> None:
    played_by_seed = []
    for seed in (1, 1, 2):
        game, random = pong(4, opponent="random"), at_random(5)
        steps, seen = game.reset(seed)["B"], []
        for _ in range(200):
            seen.append(steps.decisions.observations[0].copy())
            steps = game.step({"B": chosen(random(seen[-1]))})["B"]
        played_by_seed.append(np.stack(seen))
    np.testing.assert_array_equal(played_by_seed[0], played_by_seed[1])
    assert (played_by_seed[0] != played_by_seed[2]).any()


@pytest.mark.parametrize("observations", ["vector", "image"])
def test_tracking_opponent_beats_who_moves_at_random_or_not_at_all(observations: str) -> None:
    game = pong(50, opponent="tracking", observations=observations)
    for player in (at_random(1), staying):
        results = played(game, {"B": player}, 200)
        assert results.lost >= 0.85 * results.num_games


def test_tracking_opponent_is_beaten_by_one_that_sees_where_the_ball_goes() -> None:
    results = played(pong(50, opponent="tracking"), {"B": far_sighted}, 400)
    assert results.won >= 0.95 * results.num_games
    assert results.truncated == 0
    assert 40 < np.mean(results.lengths) < 150


def test_teams_have_equal_chances() -> None:
    results = played(pong(100), dict.fromkeys(TEAMS, tracking), 1000)
    assert results.won == pytest.approx(results.num_games / 2, abs=0.05 * results.num_games)
    assert results.truncated == 0
    results = played(pong(50), {TEAMS[0]: tracking, TEAMS[1]: far_sighted}, 200)
    assert results.lost >= 0.95 * results.num_games


def test_opponents_of_two_players_are_beaten_by_a_pair_that_tracks() -> None:
    results = played(pong(50, players=2, opponent="random"), {"B": tracking}, 300)
    assert results.won >= 0.75 * results.num_games


def test_collector_joins_the_teams_of_one_behavior() -> None:
    pool = SerialPool("pong", lambda first, count: [pong(4, players=2)], 1)
    pool.start()
    try:
        collector = Collector(pool, {"B": RandomPolicy(pool.specs["B"], 1)}, {"B": 1000})
        pool.reset(1)
        while not collector.is_due("B", 2000):
            collector.receive(0.0)
            collector.act()
        block = collector.drain("B")
    finally:
        pool.close()
    assert pool.specs["B"].teams == (0, 1)
    assert block.team_ids is not None
    assert set(block.team_ids.tolist()) == {0, 1}
    assert sorted(set(block.agent_ids.tolist())) == list(range(16))
    assert abs(block.episode_returns.sum()) <= 4, "zero but for games of which not all agents have been drained"
    assert set(block.episode_returns.tolist()) == {-1.0, 1.0}


@pytest.mark.parametrize("players", [1, 2])
@pytest.mark.parametrize("points", [1, 12])
def test_the_game_can_be_watched(players: int, points: int) -> None:
    game = pong(2, players=players, points=points)
    assert isinstance(game, Rendered)
    game.reset(1)
    game.step({name: chosen(np.full(count, UP)) for name, count in game.num_agents.items()})
    frame = game.render()
    assert frame is not None
    assert frame.shape == (336, 336, 3)
    for color in (LEFT, RIGHT):
        rows, columns = (frame == color).all(axis=2).nonzero()
        assert len(set((columns // 4).tolist())) == players
        assert rows.mean() < 336 / 2, "up is up"
    assert (frame == 255).all(axis=2).sum() == 16 * 16


def test_score_is_shown_where_games_have_several_points() -> None:
    frames = {}
    for points in (1, 12):
        game = pong(1, points=points)
        game.reset(1)
        for score in ((0, 0), (1, 0), (1, 11)):
            game._score.points[0] = score
            frames[points, score] = game.render()
    assert not (frames[1, (0, 0)] != frames[1, (1, 11)]).any()
    changed = (frames[12, (0, 0)] != frames[12, (1, 0)]).any(axis=(0, 2)).nonzero()[0]
    assert changed.min() > 0
    assert changed.max() < 336 / 2, "the left side's points are on the left"
    changed = (frames[12, (1, 0)] != frames[12, (1, 11)]).any(axis=(0, 2)).nonzero()[0]
    assert changed.min() > 336 / 2
