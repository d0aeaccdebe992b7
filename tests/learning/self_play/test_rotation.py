"""Whose turn it is to learn."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.learning.self_play.rotation import TeamRotation
from rl_tui.engine.specs import State

TEAMS = st.lists(st.integers(0, 12), max_size=5)


def rotation(*teams: int) -> TeamRotation:
    """Of these teams."""
    made = TeamRotation()
    made.add(teams)
    return made


def turns(of: TeamRotation, count: int) -> list[int | None]:
    """Who learns now and after each of the next changes."""
    found = [of.learning]
    for _ in range(count):
        of.change()
        found.append(of.learning)
    return found


def saved(of: TeamRotation) -> State:
    """Its state as a checkpoint has it."""
    return State(values=json.loads(json.dumps(of.state().values)))


def test_teams_take_turns_in_the_order_in_which_they_were_added() -> None:
    assert turns(rotation(4, 0, 2), 4) == [4, 0, 2, 4, 0]
    assert turns(rotation(7), 2) == [7, 7, 7]
    assert rotation().learning is None
    assert rotation().teams == frozenset()


def test_a_team_is_added_once_and_waits_for_its_turn() -> None:
    made = rotation(0, 1)
    made.change()
    made.add([1, 0, 2, 2])
    assert made.teams == {0, 1, 2}
    assert turns(made, 3) == [1, 0, 2, 1]


def test_there_may_be_more_than_the_ten_teams_of_ml_agents() -> None:
    assert turns(rotation(*range(14)), 14) == [*range(14), 0]


def test_a_rotation_goes_on_where_it_was_with_the_teams_that_have_appeared_since_behind() -> None:
    made = rotation(0, 1, 2)
    made.change()
    again = rotation(0, 3)
    again.load(saved(made))
    assert (again.learning, again.num_changes, again.teams) == (1, 1, {0, 1, 2, 3})
    assert turns(again, 4) == [1, 2, 0, 3, 1]
    again.load(TeamRotation().state())
    assert again.learning == 0, "what was saved before there was a team forgets none"


@given(TEAMS, st.lists(st.one_of(st.none(), TEAMS), max_size=12), st.integers(0, 12))
def test_any_rotation_is_the_same_after_it_was_saved(begun: list[int], later: list[list[int] | None], cut: int) -> None:
    """None is a change."""
    made = rotation(*begun)
    again = made
    for place, teams in enumerate(later):
        if place == cut:
            again = TeamRotation()
            again.load(saved(made))
        for each in {id(made): made, id(again): again}.values():
            if teams is not None:
                each.add(teams)
            elif each.learning is not None:
                each.change()
        assert again.state() == made.state()
        assert again.teams == made.teams
