"""When earlier policies are taken, when they play, and what a checkpoint keeps of that."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.learning.self_play.league import League, Result, Standing
from tests.learning.self_play.leagues import figures, loaded, number, saved, settings, weights


def league(**changes: Any) -> League:
    """One whose first snapshot is taken."""
    made = League(settings(**changes), seed=1)
    made.begin(weights(0), 0)
    return made


def take(of: League, *steps: int) -> None:
    """Snapshots at these steps, of policies whose numbers are the steps."""
    for step in steps:
        assert of.save_if_due(step, lambda step=step: weights(step))


def window(of: League) -> list[int]:
    """The steps of its snapshots, which are the numbers of their policies."""
    assert [number(each.weights) for each in of.snapshots] == [each.step for each in of.snapshots]
    return [each.step for each in of.snapshots]


def swap(of: League, learning: int = 0, newest: int = -1, teams: tuple[int, ...] = (0, 1)) -> bool:
    """Draw opponents where it is due."""
    return of.swap_if_due(teams, learning, lambda: weights(newest))


def test_a_snapshot_is_taken_once_more_than_save_steps_were_learned() -> None:
    made = league(save_steps=10)
    assert not made.save_if_due(10, lambda: pytest.fail("not due"))
    take(made, 11)
    assert not made.save_if_due(21, lambda: pytest.fail("not due"))
    take(made, 22, 100, 111)
    assert window(made) == [22, 100, 111]
    made.begin(weights(5), 500)
    assert window(made) == [22, 100, 111], "it has begun"


def test_a_league_that_begins_late_counts_from_there() -> None:
    made = League(settings(save_steps=10, team_change=20), 1)
    made.begin(weights(70), 70)
    assert not made.save_if_due(80, lambda: pytest.fail("not due"))
    assert not made.is_change_due(90)
    take(made, 81)
    assert made.is_change_due(91)


def test_the_turn_is_over_once_more_than_team_change_steps_were_learned() -> None:
    made = league(team_change=50)
    due = [step for step in range(0, 200, 10) if made.is_change_due(step)]
    assert due == [60, 120, 180]


def test_opponents_are_drawn_after_swap_steps_of_theirs_or_when_the_team_changes() -> None:
    made = league(swap_steps=5, play_against_latest_model_ratio=1.0)
    assert made.meet((0, 1), 0, weights(0))
    assert not made.meet((0, 1), 0, weights(0))
    swaps = []
    for steps in range(1, 20):
        made.opponent_steps = steps
        if swap(made, newest=steps):
            swaps.append((steps, number(made.opponents[1].weights)))
    assert swaps == [(6, 6), (12, 12), (18, 18)]
    assert swap(made, learning=1, newest=50)
    assert {team: number(each.weights) for team, each in made.opponents.items()} == {0: 50}
    assert not swap(made, learning=1), "both begin to count again"


def test_the_first_opponents_are_the_first_snapshot_and_later_ones_copies_of_the_newest() -> None:
    made = league()
    made.meet((0, 1), 0, weights(0))
    assert made.opponents[1].snapshot is made.snapshots[0]
    take(made, 11)
    assert made.meet((0, 1, 2), 0, weights(77))
    assert made.opponents[2].snapshot is None
    assert number(made.opponents[2].weights) == 77


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
def test_the_newest_policy_plays_as_often_as_its_ratio_and_all_others_alike(ratio: float) -> None:
    made = league(play_against_latest_model_ratio=ratio)
    take(made, 11, 22, 33)
    drawn = Counter[int]()
    for steps in range(6, 6 * 2001, 6):
        made.opponent_steps = steps
        assert swap(made, teams=(0, 1, 2))
        drawn.update(number(each.weights) for each in made.opponents.values())
    assert sum(drawn.values()) == 4000
    expected = {-1: ratio, **dict.fromkeys((11, 22, 33), (1 - ratio) / 3)}
    found = [drawn[each] / 4000 for each in expected]
    np.testing.assert_allclose(found, [*expected.values()], atol=0.035)  # 4.8 standard errors
    assert ratio in (0.3,) or drawn[-1] == 4000 * ratio


def test_a_game_moves_both_ratings_by_k_times_the_surprise() -> None:
    made = league(elo_k=16)
    first = made.snapshots[0].standing
    made.rate([Result(first, 1.0)])
    assert (made.rating, first.rating) == (1208, 1192)
    made.rate([Result(first, 0.5)])
    expected = 1 / (1 + 10 ** (-16 / 400))
    assert made.rating == pytest.approx(1208 + 16 * (0.5 - expected))
    assert made.rating + first.rating == pytest.approx(2400)
    made.rate([Result(first, 0.0)])
    assert (first.won, first.drawn, first.lost, made.num_games) == (1, 1, 1, 3)


def test_several_opponents_move_the_ratings_by_their_parts_in_any_order() -> None:
    def ratings(order: list[int], is_same: bool) -> list[float]:
        made = league(elo_k=30)
        standings = [Standing(1100), Standing(1300), Standing(1250)]
        if is_same:  # two teams play by one snapshot
            standings[2] = standings[0]
        made.rate([Result(standings[place], (1.0, 0.0, 0.5)[place]) for place in order])
        return [made.rating, *(each.rating for each in standings)]

    for is_same in (False, True):
        forward, backward = ratings([0, 1, 2], is_same), ratings([2, 1, 0], is_same)
        assert forward == pytest.approx(backward, abs=1e-9)
    own = 1200 + 10 * sum(
        score - 1 / (1 + 10 ** ((other - 1200) / 400)) for score, other in ((1, 1100), (0, 1300), (0.5, 1250))
    )
    assert ratings([0, 1, 2], is_same=False)[0] == pytest.approx(own)


def test_a_copy_of_the_policy_that_learns_moves_nothing_and_that_of_another_behavior_moves_both() -> None:
    changes = {"elo_k": 10, "play_against_latest_model_ratio": 1.0}
    strikers, goalies = league(**changes), league(**changes, initial_elo=1600)
    swap(strikers, teams=(0, 1))
    swap(goalies, teams=(2,))
    own = strikers.opponents[1].standing
    strikers.rate([Result(own, 1.0)])
    strikers.rate([Result(None, 1.0)])
    assert (strikers.rating, strikers.num_games) == (1200, 2)
    assert (own.won, own.drawn, own.lost) == (0, 0, 0)
    strikers.rate([Result(goalies.opponents[2].standing, 1.0)])
    assert strikers.rating == pytest.approx(1200 + 10 * 10 / 11)
    assert goalies.rating == pytest.approx(1600 - 10 * 10 / 11)
    assert figures(loaded(saved(goalies)))[0] == goalies.rating


def test_a_snapshot_begins_with_the_rating_of_its_policy_and_keeps_its_own_when_it_leaves() -> None:
    made = league(window=1, play_against_latest_model_ratio=0.0)
    swap(made, learning=1)
    left = made.opponents[0]
    made.rate([Result(left.standing, 1.0)])
    take(made, 11)
    assert made.snapshots[0].standing.rating == made.rating == 1200.5
    made.rate([Result(left.standing, 1.0)])
    assert (left.standing.won, left.standing.lost) == (0, 2)
    assert made.snapshots[0].standing.rating == 1200.5, "the new one has not played"
    again = loaded(saved(made), window=1)
    assert figures(again) == figures(made)
    again.rate([Result(again.opponents[0].standing, 1.0)])
    assert (again.opponents[0].standing.lost, again.snapshots[0].standing.lost) == (3, 0)


def test_two_teams_that_play_by_one_snapshot_still_do_after_a_resume() -> None:
    made = league(window=1, play_against_latest_model_ratio=0.0)
    swap(made, teams=(0, 1, 2))
    for step in (0, 11):  # once in the window, and once after it has left
        if step:
            take(made, step)
        again = loaded(saved(made), window=1)
        assert again.opponents[1].snapshot is again.opponents[2].snapshot
        assert (again.opponents[1].snapshot is again.snapshots[0]) == (step == 0)


@pytest.mark.parametrize("before", range(1, 6))
@pytest.mark.parametrize("after", range(1, 6))
@pytest.mark.parametrize("num_taken", range(8))
def test_a_window_of_another_size_keeps_the_newest_and_goes_on(before: int, after: int, num_taken: int) -> None:
    made = league(window=before)
    take(made, *range(11, 11 * (num_taken + 1), 11))
    again = loaded(saved(made), window=after)
    expected = [*range(0, 11 * (num_taken + 1), 11)][-before:][-after:]
    assert window(again) == expected
    for step in range(100, 180, 11):
        take(again, step)
        expected = [*expected, step][-after:]
        assert window(again) == expected


OPERATIONS = st.one_of(
    st.tuples(st.just("learn"), st.integers(1, 25)),
    st.tuples(st.just("opponents"), st.integers(1, 12)),
    st.tuples(st.just("game"), st.sampled_from([0.0, 0.5, 1.0])),
    st.tuples(st.just("turn"), st.integers(0, 2)),
)


@given(
    st.lists(OPERATIONS, min_size=1, max_size=60),
    st.sets(st.integers(0, 60), min_size=1, max_size=3),
    st.sampled_from([1, 2, 3, 5]),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_a_league_that_was_saved_and_loaded_goes_on_as_if_nothing_had_happened(
    operations: list[tuple[str, float]], cuts: set[int], size: int, ratio: float
) -> None:
    """Bit for bit: ratings, window, opponents, those that are drawn next, and what is saved next."""
    changes = {"window": size, "play_against_latest_model_ratio": ratio, "elo_k": 7.3}
    made, again = league(**changes), league(**changes)
    step, learning = 0, 0
    for place, (kind, value) in enumerate(operations):
        if place in cuts:
            again = loaded(saved(again), seed=place, **changes)
        step += int(value) * (kind == "learn")
        learning = int(value) if kind == "turn" else learning
        found = [_operate(each, kind, value, step, learning) for each in (made, again)]
        assert found[0] == found[1]
        assert figures(made) == figures(again)
        assert saved(made).values == saved(again).values
    first, second = made.state().tensors, again.state().tensors
    assert first.keys() == second.keys()
    assert all(np.array_equal(array, second[name]) for name, array in first.items())


def _operate(of: League, kind: str, value: float, step: int, learning: int) -> tuple[bool, ...]:
    """What a run does between two actions; what has happened."""
    if kind == "opponents":
        of.opponent_steps += int(value)
    has_met = of.meet((0, 1, 2), learning, weights(step))
    if kind == "game":
        of.rate([Result(each.standing, value) for team, each in of.opponents.items() if team != learning])
    due = of.is_change_due(step)
    has_saved = of.save_if_due(step, lambda: weights(step))
    return has_met, due, has_saved, swap(of, learning, step, (0, 1, 2))
