"""What is wrong in a user's file, in words: where it is, what it must be, what was found."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]

LARGEST_WHOLE = 2**63 - 1  # a setting's, as in every file format it is written to
DEEPEST = 32  # levels of mappings and lists; a full configuration has nine
_LONGEST_WORD = 80
_PLAIN_WORD = re.compile(r"\w[\w.:/?+-]*")


class Mark(NamedTuple):
    """A place in a file; both numbers count from 1, columns in characters."""

    line: int
    column: int


class Diagnostic(NamedTuple):
    """What is wrong at a path. mark: its place, where the path does not give it. of_key: the key is wrong."""

    path: KeyPath
    text: str
    mark: Mark | None = None
    of_key: bool = False


@dataclass(frozen=True)
class SourceMap:
    """Where every key of a configuration was written; empty for one that was built in code.

    keys, values: the place of each key and of its value. flags: the command line flag that set a path. written: today's
    path -> the file's, for what a legacy file spells differently. notes: warnings from reading it. run_name: of runs
    without --run-id, where no file names them. origins: as in origins.py.
    """

    file: str = ""
    keys: Mapping[KeyPath, Mark] = field(default_factory=dict)
    values: Mapping[KeyPath, Mark] = field(default_factory=dict)
    flags: Mapping[KeyPath, str] = field(default_factory=dict)
    written: Mapping[KeyPath, KeyPath] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    run_name: str = ""
    origins: Mapping[tuple[str, ...], str] = field(default_factory=dict)

    def has(self, path: KeyPath) -> bool:
        """Whether the user's file holds this key."""
        return self.in_file(path) in self.keys

    def flags_within(self, path: KeyPath) -> list[KeyPath]:
        """The paths at and below this one that were set by a flag."""
        return [flagged for flagged in self.flags if flagged[: len(path)] == path]

    def in_file(self, path: KeyPath) -> KeyPath:
        """The path as the file spells it."""
        return in_file(path, self.written)

    def lines(self, diagnostics: Iterable[Diagnostic]) -> list[str]:
        """One line for each, those of the command line first, then in the file's order; none twice."""
        return list(dict.fromkeys(map(self._line, self.in_order(diagnostics))))

    def in_order(self, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Those of the command line first, then in the file's order."""
        return sorted(diagnostics, key=self._order)

    def _order(self, diagnostic: Diagnostic) -> Mark:
        return Mark(0, 0) if self._flag(diagnostic.path) or not self.file else self._mark(diagnostic)

    def place_in_file(self, path: KeyPath) -> str | None:
        """`file:line:column: path` of a key; None where the file does not have it, or a flag overrides it."""
        is_from_file = self.has(path) and self._flag(path) is None
        return self.place(Diagnostic(path, "", of_key=True)) if is_from_file else None

    def place(self, diagnostic: Diagnostic) -> str:
        """`file:line:column: path`, or `--flag` for what came from the command line."""
        if flag := self._flag(diagnostic.path):
            return flag
        if self.file and not self.has(diagnostic.path) and (inside := self.flags_within(diagnostic.path)):
            return f"{self.flags[inside[0]]}: {path_text(diagnostic.path)}"
        place = ":".join((visible(self.file, limit=4096), *map(str, self._mark(diagnostic)))) if self.file else ""
        return ": ".join(part for part in (place, path_text(self.in_file(diagnostic.path))) if part)

    def _line(self, diagnostic: Diagnostic) -> str:
        return ": ".join(part for part in (self.place(diagnostic), diagnostic.text) if part)

    def _flag(self, path: KeyPath) -> str | None:
        prefixes = (path[:length] for length in range(len(path), 0, -1))
        return next((self.flags[prefix] for prefix in prefixes if prefix in self.flags), None)

    def _mark(self, diagnostic: Diagnostic) -> Mark:
        """The value at the path; else the closest key around it, there or in the defaults it was inherited from."""
        if diagnostic.mark:
            return diagnostic.mark
        marks = self.keys if diagnostic.of_key else self.values
        for length in range(len(diagnostic.path), 0, -1):
            for path in own_and_inherited(diagnostic.path[:length]):
                if found := marks.get(self.in_file(path)):
                    return found
            marks = self.keys  # where a key is missing, its section's key is a better place than the first value in it
        return Mark(1, 1)


def in_file(path: KeyPath, written: Mapping[KeyPath, KeyPath]) -> KeyPath:
    """A path of today as the file spells it. written: as in SourceMap."""
    for length in range(len(path), 0, -1):
        if (origin := written.get(path[:length])) is not None:
            return origin + path[length:]
    return path


def own_and_inherited(path: KeyPath) -> tuple[KeyPath, ...]:
    """The path, and for one inside a behavior also the same path in default_settings."""
    is_inside_behavior = path[:1] == ("behaviors",) and len(path) > 2
    return (path, ("default_settings", *path[2:])) if is_inside_behavior else (path,)


def visible(text: str, limit: int = _LONGEST_WORD) -> str:
    """The text cut to `limit` characters, with everything that cannot be seen written as an escape.

    These are control characters, bidirectional marks and unusual spaces.
    """
    cut = text if len(text) <= limit else text[: limit - 3] + "..."
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)


def must_be(expected: str, found: object, known: Iterable[str] = ()) -> str:
    """The refusal of a value, with the most similar of the known words."""
    hint = suggest(found, known) if isinstance(found, str) else ""
    return f"must be {expected}, got {describe(found)}{'.' if hint else ''}{hint}"


def must_be_one_of(words: Iterable[str], found: object) -> str:
    """The refusal of a word, with the most similar one."""
    words = list(words)
    return must_be(one_of(word if _PLAIN_WORD.fullmatch(word) else describe(word) for word in words), found, words)


def describe(value: object) -> str:
    """What was found, in a few words and safe to print."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return f'"{visible(value)}"'
        case list():
            return "a list" if value else "an empty list"
        case _:
            return "a mapping" if value else "an empty mapping"


def path_text(path: KeyPath) -> str:
    """`behaviors.Walker.max_steps`, list positions as `[0]`."""
    return "".join(_step(part) for part in path).removeprefix(".")


def _step(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{visible(part)}" if part else '.""'


def suggest(word: str, known: Iterable[str]) -> str:
    """` Did you mean x?` when one of the known words is close, else nothing."""
    close = closest(word, known)
    return f" Did you mean {visible(close)}?" if close else ""


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most similar to another one, if any is; capitals count where they decide."""
    words, word = list(known), word[:_LONGEST_WORD]
    if near := difflib.get_close_matches(word, words, n=1):
        return near[0]
    lowered = {known.lower(): known for known in words}
    return next((lowered[near] for near in difflib.get_close_matches(word.lower(), lowered, n=1)), None)


def one_of(words: Iterable[str]) -> str:
    """The words as a list to choose from: `a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
