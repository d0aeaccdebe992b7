"""Which key gives which choice of a game."""

from __future__ import annotations

import pytest

from rl_tui.engine.sampling.environments.choice_names import BY_ID, OF_PETTINGZOO
from rl_tui.tui.keys.game_keys import DIGITS, GAME_KEYS, MOST_CHOICES, NEXT, TAKEN, choice_keys, game_bindings
from rl_tui.tui.keys.play_keys import PLAY_KEYS, play_bindings


@pytest.mark.parametrize("names", [*BY_ID.values(), *OF_PETTINGZOO.values(), [""] * 9, [""] * MOST_CHOICES])
def test_every_choice_has_a_key_of_its_own_and_none_of_the_screen(names: list[str]) -> None:
    keys = choice_keys(names)
    every = [key for own in keys for key in own]
    assert all(keys)
    assert len(every) == len(set(every))
    assert TAKEN.isdisjoint(every)
    assert [own[-1] for own in keys[:10]] == list(DIGITS[: len(names)])


def test_fields_are_counted_from_one() -> None:
    assert choice_keys([""] * 9) == [(digit,) for digit in "123456789"]
    assert choice_keys(["rock", "paper", "scissors"]) == [("r", "1"), ("p", "2"), ("s", "3")]


def test_keys_of_the_screen_are_bound_once_and_those_with_ctrl_by_the_app() -> None:
    bound = [binding.key for binding in [*game_bindings(), *play_bindings(of_app=True)]]
    assert len(bound) == len(set(bound))
    assert set(bound) == TAKEN
    assert TAKEN.isdisjoint(NEXT)
    shared = {key.id: key.keys for key in PLAY_KEYS if any(name.startswith("ctrl+") for name in key.keys)}
    for key in GAME_KEYS:
        with_ctrl = {name for name in key.keys if name.startswith("ctrl+")}
        assert with_ctrl == {name for name in shared.get(key.id, ()) if name.startswith("ctrl+")}
