"""The user's own keys: keys.yaml maps ids of commands in tui/keys/keymap.py to a key or a list of keys.

`keys: vi` in it is a style: keys of several commands at once, which the other lines may change again.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rl_tui.tui.keys.keymap import FORMER, STYLES, Key, Keymap, Place, shown_keys
from rl_tui.tui.textual_private import ANSI_SEQUENCES_KEYS, key_of

EVERYWHERE: tuple[Place, ...] = ("run",)
FILE_NAME = "keys.yaml"
LARGEST_BYTES = 64_000
STYLE = "keys"  # the entry that names one
FIXED = ("select",)  # its keys are the numbers of behaviors
TYPING: tuple[Place, ...] = ("anywhere", "asking", "filtering", "picking")
SHARED: tuple[Place, ...] = ("run", "replay", "list")  # work on several screens
SAME_CODE = {  # a terminal sends one code for both
    "ctrl+i": "tab", "ctrl+m": "enter", "ctrl+h": "backspace", "ctrl+left_square_bracket": "escape",
}  # fmt: skip
SENT = {  # keys with a code of their own in the legacy protocol of terminals, from Textual's table
    key.value
    for keys in ANSI_SEQUENCES_KEYS.values() if isinstance(keys, tuple)
    for key in keys if not key.value[-1].isdigit() and key.value[0] != "<"
} | {f"f{number}" for number in range(1, 13)}  # fmt: skip
NAMES = {name.split("+")[-1] for name in SENT}
SIGNS = {key_of(chr(code)) for code in range(33, 127) if not chr(code).isalnum()}
MODIFIERS = ["ctrl", "shift", "alt", "super", "hyper", "meta"]


@dataclass(frozen=True, slots=True)
class UserKeys:
    """The valid entries of keys.yaml. problems: why the others are not, one sentence each."""

    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the file."""

    line: int
    command: str
    keys: tuple[str, ...]


def read_user_keys(folder: Path) -> UserKeys:
    """The keys in that folder's keys.yaml; a command whose entry is invalid keeps its default keys."""
    path = folder / FILE_NAME
    if not path.is_file():
        return UserKeys()
    try:
        if path.stat().st_size > LARGEST_BYTES:
            return UserKeys(problems=(f"{path}: must be at most {LARGEST_BYTES} bytes",))
        entries, problems = _entries(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        return UserKeys(problems=(f"{path}: cannot be read: {error}",))
    style, entries, wrong = _style(entries)
    problems += wrong
    keymap = Keymap().remapped(style)
    kept = dict[str, Entry]()
    for entry in entries:
        problem = _problem_of(entry, keymap)
        if problem or entry.command in kept:
            problems.append((entry.line, problem or f"{entry.command}: is given twice; the first one is used"))
        else:
            kept[entry.command] = entry
    problems += _without_conflicts(kept, keymap)
    where = [(f"{path}:{line}" if line else str(path), problem) for line, problem in sorted(problems)]
    chosen = {entry.command: _spellings(entry.keys) for entry in kept.values()}
    return UserKeys({**style, **chosen}, tuple(map(": ".join, where)))


def _style(entries: list[Entry]) -> tuple[Mapping[str, tuple[str, ...]], list[Entry], list[tuple[int, str]]]:
    """The keys of the style that the file names, its other entries, and problems with the name."""
    named = [entry for entry in entries if entry.command == STYLE]
    rest = [entry for entry in entries if entry.command != STYLE]
    if not named:
        return {}, rest, []
    first, *others = named
    wrong = [(entry.line, f"{STYLE}: is given twice; the first one is used") for entry in others]
    name = first.keys[0] if len(first.keys) == 1 else ""
    if name not in STYLES:
        wrong.append((first.line, f"{STYLE}: must be {' or '.join(STYLES)}, got {', '.join(first.keys) or 'nothing'}"))
    return STYLES.get(name, {}), rest, wrong


def _entries(text: str) -> tuple[list[Entry], list[tuple[int, str]]]:
    """The entries of the file, and problems with their lines."""
    import yaml  # here: most users have no such file

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        return [], [(mark.line + 1 if mark else 0, f"not YAML: {getattr(error, 'problem', None) or error}")]
    if root is None:
        return [], []
    if not isinstance(root, yaml.MappingNode):
        return [], [(1, "must be lines of the form `command: key` or `command: [key, key]`")]
    entries: list[Entry] = []
    problems: list[tuple[int, str]] = []
    for name, value in root.value:
        line = name.start_mark.line + 1
        nodes = value.value if isinstance(value, yaml.SequenceNode) else [value]
        if all(isinstance(node, yaml.ScalarNode) for node in (name, *nodes)):
            entries.append(Entry(line, name.value, tuple(_named(node.value) for node in nodes if node.value)))
        else:
            problems.append((line, f"{name.value}: must be a key or a list of keys"))
    return entries, problems


def _named(key: str) -> str:
    """Textual's name of a key that may be written as its character: "question_mark" for "?"."""
    *modifiers, last = key.replace("++", "+plus").split("+") if len(key) > 1 else [key]
    last = key_of(last if not modifiers else last.lower()) if len(last) == 1 else last.lower()
    name = "+".join([*(modifier.lower() for modifier in modifiers), last])
    return {"ctrl+space": "ctrl+@", "esc": "escape", "return": "enter", "del": "delete"}.get(name, name)


def _spellings(keys: Iterable[str]) -> tuple[str, ...]:
    """The keys, capital letters in both forms that terminals send."""
    spelled: list[str] = []
    for key in keys:
        letter = key.removeprefix("shift+")
        is_capital = len(letter) == 1 and letter.isalpha() and (letter.isupper() or letter != key)
        spelled += [letter.upper(), f"shift+{letter.lower()}"] if is_capital else [key]
    return tuple(dict.fromkeys(spelled))


def _problem_of(entry: Entry, keymap: Keymap) -> str:
    """Why the entry by itself is invalid; "" if it is valid."""
    command = next((key for key in keymap.keys if key.id == entry.command), None)
    if command is None:
        return f"{entry.command}: {_why_unknown(entry.command, keymap)}"
    if command.id in FIXED:
        return f"{entry.command}: its keys cannot be changed"
    if not entry.keys:
        return f"{entry.command}: needs a key"
    for key in entry.keys:
        if why := _why_unusable(key):
            return f"{entry.command}: {key}: {why}"
        if not set(command.places).isdisjoint(TYPING) and _is_character(key):
            return f"{entry.command}: {key}: must not be a character, since the command works while text is typed"
    return ""


def _why_unknown(command: str, keymap: Keymap) -> str:
    """That there is no such command, and which one may be meant."""
    if command in FORMER:
        return f"is now part of {FORMER[command]}; give that the key"
    return f"no such command{_suggestion(command, [key.id for key in keymap.keys if key.id not in FIXED])}"


def _why_unusable(key: str) -> str:
    """Why a terminal may not send that key; "" if every terminal does."""
    if key in SENT or _is_character(key):
        return ""
    if key in SAME_CODE:
        return f"terminals send the same code for it as for {SAME_CODE[key]}"
    *modifiers, last = key.split("+")
    if last not in NAMES and not _is_character(last):
        return f"unknown key{_suggestion(last, sorted(NAMES))}"
    if unknown := [modifier for modifier in modifiers if modifier not in MODIFIERS]:
        return f"unknown modifier {unknown[0]}{_suggestion(unknown[0], MODIFIERS)}"
    is_letter = len(last) == 1 and last.isalpha()
    may = (is_letter and modifiers == ["shift"]) or (_is_character(last) and modifiers == ["alt"])
    return "" if may else "most terminals cannot send it"


def _is_character(name: str) -> bool:
    """Whether the key types a character; names are Textual's."""
    return (len(name) == 1 and name.isprintable()) or name in SIGNS


def _suggestion(word: str, words: list[str]) -> str:
    close = difflib.get_close_matches(word, words, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _without_conflicts(kept: dict[str, Entry], keymap: Keymap) -> list[tuple[int, str]]:
    """Remove entries from `kept`, the last ones first, until no key has two commands; returns why."""
    problems: list[tuple[int, str]] = []
    while True:
        table = keymap.remapped({entry.command: _spellings(entry.keys) for entry in kept.values()})
        found = max(
            ((kept[mine.id], other, key) for mine, other, key in _conflicts(table, keymap) if mine.id in kept),
            key=lambda conflict: conflict[0].line,
            default=None,
        )
        if found is None:
            return problems
        entry, other, key = found
        del kept[entry.command]
        problems.append((entry.line, _conflict_words(keymap.of_id(entry.command), other, key)))


def _conflict_words(mine: Key, other: Key, key: str) -> str:
    """Whose key it is and where, which key the command keeps, and what to change."""
    both = [place for place in mine.places if place in other.places and place not in (*TYPING, *SHARED)]
    where = f" on the screen {' and '.join(both)}" if both else ""
    shown = shown_keys([key])
    return (
        f"{mine.id}: {shown} is already the key of {other.id}{where}; {mine.id} keeps {mine.shown}. "
        f"To use {shown}, give {other.id} another key"
    )


def _conflicts(table: Keymap, defaults: Keymap) -> Iterator[tuple[Key, Key, str]]:
    """Pairs of commands that share a key where both work, unless they share one by default, as a list's up does.

    A key that by default has another meaning at one place than everywhere may be given to any command that works
    everywhere: it keeps its other meaning there.
    """
    pairs = [
        (one, other, key)
        for one in defaults.keys for other in defaults.keys if one.id != other.id
        for key in set(one.keys) & set(other.keys)
    ]  # fmt: skip
    shared_by_default = {frozenset((one.id, other.id)) for one, other, _ in pairs}
    differs_there = {(one.id, key) for one, other, key in pairs if other.places == EVERYWHERE != one.places}
    dialogs = {place for key in table.keys if key.group == "Dialog" for place in key.places}
    for one in table.keys:
        for other in table.keys:
            keys = set(one.keys) & set(other.keys)
            for here, there in ((one, other), (other, one)):
                if there.places == EVERYWHERE:
                    keys -= {key for key in keys if (here.id, key) in differs_there}
            if one.id == other.id or not keys or frozenset((one.id, other.id)) in shared_by_default:
                continue
            if any(_work_together({mine, others}, dialogs) for mine in one.places for others in other.places):
                yield one, other, min(keys)


def _work_together(places: set[Place], dialogs: set[Place]) -> bool:
    """Whether keys of both places, or of the only one, ever work at the same time."""
    if len(places) == 1 or "anywhere" in places:
        return True
    return not places & dialogs and bool(places & set(SHARED))
