"""Which sides that ended in one step of an environment have played against each other."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.engine.sampling.games import find_games
from rl_tui.engine.specs import LEARNING, Game, GameSide

PLAYER = "Player"


def side(team: int, policy: int, reward: float = 0, *, behavior: str = PLAYER, is_whole: bool = True) -> GameSide:
    """An agent's or a group's, whose return is twice its last reward."""
    return GameSide(behavior, team, policy, reward, 2 * reward, is_whole=is_whole)


def found(sides: list[GameSide], earlier: Sequence[GameSide] = ()) -> list[Game]:
    """All games. earlier: sides that ended in steps before."""
    return list(find_games(sides, {(each.behavior, each.team): each for each in earlier}))


def test_a_game_is_one_of_the_policy_that_learns_against_the_side_that_ended_with_it() -> None:
    own, other = side(0, LEARNING, 1), side(1, 4, -1)
    assert found([own, other]) == [Game(own, (other,))]
    assert found([other, own]) == [Game(own, (other,))]
    assert found([side(0, 5), side(1, 4)]) == [], "nothing learns"


def test_games_that_end_in_one_step_are_matched_by_the_order_of_their_sides() -> None:
    """Each opponent plays by the policy with which it began, which need not be the one that is assigned."""
    own = [side(0, LEARNING, reward) for reward in (1, -1, 0)]
    others = [side(1, policy, reward) for policy, reward in ((7, -1), (9, 1), (8, 0))]
    expected = [Game(*pair) for pair in zip(own, ((other,) for other in others), strict=True)]
    assert found([*own, *others]) == expected
    assert found([own[0], others[0], own[1], others[1], others[2], own[2]]) == expected


def test_only_games_whose_learning_side_learned_throughout_are_found_among_several() -> None:
    """After a change of team, games that have begun before are played to their ends by an earlier policy."""
    own = [side(0, LEARNING, 1), side(0, 6, 2), side(0, LEARNING, 3)]
    others = [side(1, 7, -1), side(1, LEARNING, -2), side(1, 8, -3)]
    games = found([*own, *others])
    assert games == [Game(own[0], (others[0],)), Game(own[2], (others[2],)), Game(others[1], (own[1],))]


def test_asymmetric_sides_are_of_several_behaviors() -> None:
    striker, goalie = side(0, LEARNING, 1, behavior="Striker"), side(1, 3, -1, behavior="Goalie")
    assert found([goalie, striker]) == [Game(striker, (goalie,))]
    assert found([striker]) == [], "there is no opponent"


def test_with_three_teams_there_is_an_opponent_of_each_other_one() -> None:
    own = [side(0, LEARNING, 1), side(0, LEARNING, -1)]
    second, third = [side(1, 5, 0), side(1, 6, 1)], [side(2, 7, -1), side(2, 7, 0)]
    games = found([*own, *second, *third])
    assert games == [Game(own[0], (second[0], third[0])), Game(own[1], (second[1], third[1]))]


def test_a_team_that_was_out_before_is_an_opponent_as_it_was_then() -> None:
    own, out = side(0, LEARNING, 1), side(1, 9, -1)
    assert found([own], [out]) == [Game(own, (out,))]
    assert found([own], [side(0, 3)]) == [], "no other team has ended yet"
    third = side(2, 7, -1)
    assert found([own, third], [out, side(2, 6)]) == [Game(own, (third, out))]


def test_sides_of_another_number_count_where_one_policy_has_played_them_all() -> None:
    """Two hunters, who are in no group, against one hare: its policy is the opponent of both."""
    hunters, hare = [side(0, LEARNING, 1), side(0, LEARNING, 1)], side(1, 9, -1)
    assert found([*hunters, hare]) == [Game(hunter, (hare,)) for hunter in hunters]
    assert found([hunters[0], hare, side(1, 9, -2)]) == [Game(hunters[0], (hare,))]
    assert found([hunters[0], hare, side(1, 8, -2)]) == [], "either may have been its opponent"


def test_games_in_which_a_side_changed_its_policy_do_not_count() -> None:
    own, other = side(0, LEARNING, 1), side(1, 4, -1)
    assert found([side(0, LEARNING, 1, is_whole=False), other]) == []
    assert found([own, side(1, 4, -1, is_whole=False)]) == []
    assert found([own, side(0, LEARNING, 2), side(1, 4, -1, is_whole=False), other]) == [
        Game(side(0, LEARNING, 2), (other,))
    ]
