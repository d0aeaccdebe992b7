"""Which key gives which choice."""

from __future__ import annotations

import string

import pytest

from rl_tui.engine.sampling.environments.choice_names import BY_ID
from rl_tui.tui.keys.play_keys import ARROWS, BY_NAME, MOST_CHOICES, TAKEN, choice_keys, play_bindings

ATARI = [
    *("noop", "fire", "up", "right", "left", "down", "upright", "upleft", "downright", "downleft"),
    *("upfire", "rightfire", "leftfire", "downfire", "uprightfire", "upleftfire", "downrightfire", "downleftfire"),
]


@pytest.mark.parametrize("names", [*BY_ID.values(), ATARI, [""] * MOST_CHOICES, ["up"] * MOST_CHOICES])
def test_every_choice_has_a_key_of_its_own_and_none_of_the_screen(names: list[str]) -> None:
    keys = choice_keys(names)
    every = [key for own in keys for key in own]
    assert all(keys)
    assert len(every) == len(set(every))
    assert TAKEN.isdisjoint(every)
    assert [own[-1] for own in keys[:10]] == list(string.digits[: len(names)])


def test_moves_have_arrows_and_other_names_a_letter_of_theirs() -> None:
    assert choice_keys(BY_ID["Taxi"]) == [
        ("down", "0"), ("up", "1"), ("right", "2"), ("left", "3"), ("p", "4"), ("o", "5"),
    ]  # fmt: skip
    assert choice_keys(BY_ID["Blackjack"]) == [("s", "0"), ("h", "1")]
    assert choice_keys(["noop", "fire", "up"]) == [("n", "0"), ("space", "1"), ("up", "2")]
    assert choice_keys(["", ""]) == [("0",), ("1",)]
    assert choice_keys([""] * 12)[10:] == [("a",), ("b",)]


def test_only_more_choices_than_keys_leave_one_without() -> None:
    assert () in choice_keys([""] * (MOST_CHOICES + 11))


def test_keys_of_the_screen_are_bound_once() -> None:
    bound = [binding.key for of_app in (True, False) for binding in play_bindings(of_app=of_app)]
    assert len(bound) == len(set(bound))
    assert set(BY_NAME.values()) <= {*ARROWS, "space"}
