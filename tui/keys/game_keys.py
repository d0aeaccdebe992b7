"""The keys of a person who plays against a policy: one or more for each choice, beside those of the screen."""

from __future__ import annotations

import string
from collections.abc import Sequence

from textual.binding import Binding, BindingType

from rl_tui.tui.keys import play_keys
from rl_tui.tui.keys.keymap import Key

GAME_KEYS: tuple[Key, ...] = tuple(
    Key(id, tuple(keys.split()), action, shown, label, explained, ("playing",), "Play", rank)
    for id, keys, action, shown, label, explained, rank in (
        ("finish", "q escape ctrl+c ctrl+q", "app.finish", "q", "leave", "leave the game", 0),
        ("begin", "n", "begin", "n", "new game", "begin another game; the one under way does not count", 1),
        ("hint", "h", "hint", "h", "hint", "what the policy would do in your place, and how likely", 2),
        ("view", "v", "view", "v", "view", "the board, or the environment's own picture", 3),
        ("theme", "T shift+t", "theme", "T", "theme", "show other colors", 4),
        ("repaint", "ctrl+l", "app.repaint", "ctrl+l", "repaint", "write the whole screen again", None),
        ("suspend", "ctrl+z", "app.suspend_process", "ctrl+z", "suspend", "to the shell, until fg", 5),
    )
)
TAKEN = {name for key in GAME_KEYS for name in key.keys}
NEXT = ("enter", "space")  # the next game, once one is over
DIGITS = "1234567890"  # people count from one
LETTERS = [letter for letter in string.ascii_letters if letter not in TAKEN]
MOST_CHOICES = len(LETTERS)  # see play_keys


def choice_keys(names: Sequence[str]) -> list[tuple[str, ...]]:
    """The keys of each choice, the first ten of which have 1 to 9 and 0. names: "" where a name is not known."""
    return play_keys.choice_keys(names, DIGITS, LETTERS)


def game_bindings() -> list[BindingType]:
    """Textual's bindings of the screen's keys, without those with ctrl, which every play has."""
    return [
        Binding(name, key.action, key.label, show=False, id=key.id)
        for key in GAME_KEYS
        for name in key.keys
        if not name.startswith("ctrl+")
    ]
