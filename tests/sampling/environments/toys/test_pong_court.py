"""The court of pong: balls fly, bounce, come back faster, and pass those who are elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from rl_tui.engine.sampling.environments.toys.pong_court import (
    BALL,
    FASTER,
    MAX_SPEED,
    PADDLE,
    PADDLE_SPEED,
    SERVE_SPEED,
    STEEPEST,
    STEEPEST_SERVE,
    Court,
)
from rl_tui.engine.specs import Float32


def flying(ball: tuple[float, float], velocity: tuple[float, float], num_players: int = 1) -> Court:
    """A game with this ball, and all paddles in the middle."""
    court = Court(1, num_players)
    court.balls[0], court.velocities[0] = ball, velocity
    return court


def still(court: Court) -> Float32:
    """No paddle moves: who has scored."""
    return court.move(np.zeros(court.paddles.shape, np.float32))


def test_walls_reflect_a_ball_at_the_angle_at_which_it_comes() -> None:
    court = flying((-0.9, 0.3), (0.01, 0.13))
    for number in range(1, 150):
        assert still(court).tolist() == [0]
        way = (0.3 + 0.13 * number + 1) % 4
        assert court.balls[0].tolist() == pytest.approx(
            [-0.9 + 0.01 * number, way - 1 if way <= 2 else 3 - way], abs=1e-4
        )
    assert np.abs(court.velocities[0]).tolist() == pytest.approx([0.01, 0.13])


@pytest.mark.parametrize("direction", [-1, 1])
@pytest.mark.parametrize("offset", [-PADDLE, -PADDLE / 2, 0.0, PADDLE / 2, PADDLE])
def test_paddle_returns_the_ball_faster_and_the_more_steeply_the_farther_from_its_middle(
    direction: int, offset: float
) -> None:
    court = flying((0.95 * direction, offset + 0.1), (0.1 * direction, 0.0))
    court.paddles[0, int(direction > 0), 0] = 0.1
    assert still(court).tolist() == [0]
    assert court.balls[0].tolist() == pytest.approx([direction, offset + 0.1])
    speed, angle = 0.1 * FASTER, STEEPEST * offset / PADDLE
    assert court.velocities[0].tolist() == pytest.approx([-direction * speed * np.cos(angle), speed * np.sin(angle)])


@pytest.mark.parametrize("direction", [-1, 1])
def test_ball_beside_the_paddle_is_a_point_for_the_other_side(direction: int) -> None:
    reach = PADDLE + BALL
    for height, scored in ((reach - 0.01, 0), (reach + 0.01, direction), (-reach - 0.01, direction)):
        assert still(flying((0.95 * direction, height), (0.1 * direction, 0.0))).tolist() == [scored]
    court = flying((0.95 * direction, reach + PADDLE_SPEED + 0.01), (0.1 * direction, 0.0))
    moves = np.ones(court.paddles.shape, np.float32)
    assert court.move(moves).tolist() == [direction]
    court = flying((0.95 * direction, reach + PADDLE_SPEED - 0.01), (0.1 * direction, 0.0))
    assert court.move(moves).tolist() == [0], "paddles move before the ball does"


def test_ball_has_a_speed_limit() -> None:
    court = flying((0.0, 0.0), (0.1, 0.0))
    speeds = set()
    for _ in range(200):
        assert still(court).tolist() == [0]
        speeds.add(round(float(np.hypot(*court.velocities[0])), 5))
    assert sorted(speeds) == pytest.approx([min(0.1 * FASTER**hit, MAX_SPEED) for hit in range(len(speeds))], abs=1e-4)
    assert max(speeds) == MAX_SPEED


def test_paddles_move_at_one_speed_and_stay_in_the_court() -> None:
    court = flying((0.0, 0.0), (0.0, 0.0), 2)
    moves = np.array([[[1, -1], [0, 1]]], np.float32)
    court.move(moves)
    np.testing.assert_allclose(court.paddles, PADDLE_SPEED * moves)
    for _ in range(40):
        court.move(moves)
    np.testing.assert_allclose(court.paddles, (1 - PADDLE) * moves, rtol=1e-6)


def test_player_in_front_returns_what_comes_and_lets_its_mates_balls_pass() -> None:
    court = flying((-0.45, 0.0), (-0.1, 0.0), 2)
    assert still(court).tolist() == [0]
    assert court.balls[0].tolist() == [-0.5, 0.0]
    assert court.velocities[0, 0] == pytest.approx(0.1 * FASTER)
    court = flying((-0.55, 0.0), (0.1, 0.0), 2)
    still(court)
    assert court.velocities[0].tolist() == pytest.approx([0.1, 0.0])
    court = flying((-0.45, 0.5), (-0.1, 0.0), 2)
    court.paddles[0, 0, 0] = 0.5
    while court.velocities[0, 0] < 0:
        assert still(court).tolist() == [0]
    assert court.balls[0, 0] == -1.0, "its mate at the back has it"


def test_serves_begin_in_the_middle_and_fly_to_either_side() -> None:
    court = Court(1000, 1)
    court.paddles[:] = 0.5
    court.balls[:, 0] = court.balls_before[:, 0] = 0.7
    served = np.arange(1000) % 2 == 0
    court.serve(served, np.random.default_rng(1))
    assert not court.balls[served, 0].any()
    assert (np.abs(court.balls[served, 1]) <= 0.5).all()
    assert not court.paddles[served].any()
    np.testing.assert_array_equal(court.balls_before[served], court.balls[served])
    assert (court.balls[~served, 0] == np.float32(0.7)).all()
    assert (court.paddles[~served] == 0.5).all()
    assert not court.velocities[~served].any()
    np.testing.assert_allclose(np.hypot(*court.velocities[served].T), SERVE_SPEED, rtol=1e-5)
    angles = np.arctan2(court.velocities[served, 1], np.abs(court.velocities[served, 0]))
    assert np.abs(angles).max() <= STEEPEST_SERVE + 1e-6
    assert np.mean(court.velocities[served, 0] > 0) == pytest.approx(0.5, abs=0.05)
    assert np.mean(angles > 0) == pytest.approx(0.5, abs=0.05)
