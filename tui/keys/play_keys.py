"""The keys of a person who plays an environment: one or more for each choice, beside those of the screen."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence

from textual.binding import Binding, BindingType

from rl_tui.tui.keys.keymap import Key, shown_keys

PLAY_KEYS: tuple[Key, ...] = tuple(
    Key(id, tuple(keys.split()), action, shown, label, explained, ("playing",), "Play", rank)
    for id, keys, action, shown, label, explained, rank in (
        ("finish", "q ctrl+c ctrl+q", "app.finish", "q", "finish", "write the complete episodes, and leave", 0),
        ("discard", "r", "discard", "r", "restart", "discard the episode under way, and begin another one", 1),
        ("drop", "d delete", "drop", "d", "drop last", "discard the newest complete episode", 2),
        ("theme", "T shift+t", "theme", "T", "theme", "show other colors", 3),
        ("repaint", "ctrl+l", "app.repaint", "ctrl+l", "repaint", "write the whole screen again", None),
        ("suspend", "ctrl+z", "app.suspend_process", "ctrl+z", "suspend", "to the shell, until fg", 4),
    )
)
BY_NAME: Mapping[str, str] = {  # what a choice is called, and the key that everyone expects for it
    "up": "up", "north": "up", "main engine": "up",
    "down": "down", "south": "down",
    "left": "left", "west": "left", "push left": "left", "left engine": "left", "torque -1": "left",
    "right": "right", "east": "right", "push right": "right", "right engine": "right", "torque +1": "right",
    "fire": "space", "stay": "space", "nothing": "space", "no push": "space", "no torque": "space",
}  # fmt: skip
ARROWS: Mapping[str, str] = {"left": "←", "right": "→", "up": "↑", "down": "↓"}
TAKEN = {name for key in PLAY_KEYS for name in key.keys}
LETTERS = [letter for letter in string.ascii_letters if letter not in TAKEN]
MOST_CHOICES = len(LETTERS)  # more might leave one without a key, where the first ten have letters, too


def choice_keys(
    names: Sequence[str], digits: str = string.digits, letters: Sequence[str] = LETTERS
) -> list[tuple[str, ...]]:
    """The keys of each choice, none where there are more choices than keys. names: "" where a name is not known.

    The first ten have digits, in this order. A choice whose name is known has the key that everyone expects, or one of
    `letters` that is in its name.
    """
    keys: list[list[str]] = [[] for _ in names]
    free = list(letters)
    used: set[str] = set()
    for index, name in enumerate(names):
        expected = BY_NAME.get(name, "")
        if expected and expected not in used:
            used.add(expected)
            keys[index].append(expected)
        elif letter := next((letter for letter in name.lower() if letter in free), ""):
            free.remove(letter)
            keys[index].append(letter)
    for index, own in enumerate(keys):
        if index < len(digits):
            own.append(digits[index])
        elif not own and free:
            own.append(free.pop(0))
    return [tuple(own) for own in keys]


def shown_choice_keys(keys: Iterable[str], *, is_ascii: bool) -> str:
    """How a reader sees the keys of one choice."""
    return " ".join(key if is_ascii else ARROWS.get(key, key) for key in map(_shown, keys))


def play_bindings(*, of_app: bool) -> list[BindingType]:
    """Textual's bindings of the screen's keys; of_app: those with ctrl, which act before Textual's own."""
    return [
        Binding(name, key.action, key.label, show=False, priority=of_app, id=key.id)
        for key in PLAY_KEYS
        for name in key.keys
        if name.startswith("ctrl+") == of_app
    ]


def _shown(key: str) -> str:
    return shown_keys((key,))
