"""Rewriting the plain mappings of a file into today's form, in place.

The origin of whatever moves is recorded, so that messages still name the keys and lines of the file. Values of a wrong
type are moved as they are, for the schema to refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rl_tui.engine.config.diagnostics import Diagnostic, KeyPath, in_file, must_be, path_text, visible
from rl_tui.engine.config.types import is_positive

_MOST_NAMES = 5  # of behaviors in one note


class Deprecation(NamedTuple):
    """Legacy keys that were read.

    path: of the first of them, as the file spells it. new: today's key, "" where there is none. text: its value, or why
    there is none. is_flat: they are in a flat behavior.
    """

    path: KeyPath
    old: tuple[str, ...]
    new: str
    text: str
    is_flat: bool

    def note(self) -> Diagnostic:
        """The note about it, unless it is in a flat behavior."""
        others = f" (together with {', '.join(self.old[1:])})" if self.old[1:] else ""
        said = f"; use {self.new}{self.text}" if self.new else f" and ignored: {self.text}"
        return Diagnostic(self.path, f"deprecated{others}{said}", of_key=True)


@dataclass
class Rewriting:
    """One file that is being rewritten.

    values: the mapping at its top. written: today's path -> the file's, of what moved. flat: the paths of the flat
    behaviors in the file. has_default: there is a `default` under them.
    """

    values: dict[str, object]
    written: dict[KeyPath, KeyPath] = field(default_factory=dict)
    deprecations: list[Deprecation] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    flat: list[KeyPath] = field(default_factory=list)
    has_default: bool = False

    @property
    def is_current(self) -> bool:
        """Whether nothing had to be rewritten."""
        return not (self.deprecations or self.flat)

    def origin(self, path: KeyPath) -> KeyPath:
        """The path in the file of what is now at this path."""
        return in_file(path, self.written)

    def notes(self, hint: str = "") -> Iterator[Diagnostic]:
        """One for all flat behaviors together, with a hint, and one for each other legacy spelling."""
        if self.flat:
            yield Diagnostic((), self._flat_note() + hint)
        yield from (one.note() for one in self.deprecations if not one.is_flat)

    def _flat_note(self) -> str:
        names = [visible(str(path[-1])) for path in self.flat]
        if len(names) > _MOST_NAMES:
            names[_MOST_NAMES:] = [f"{len(names) - _MOST_NAMES} more"]
        default = ", each over default" if self.has_default else ""
        deprecations = [one for one in self.deprecations if one.is_flat]
        today = dict.fromkeys(f"{one.new} instead of {', '.join(one.old)}" for one in deprecations if one.new)
        ignored = dict.fromkeys(key for one in deprecations if not one.new for key in one.old)
        said = [
            f"ML-Agents 0.16 format, converted: {', '.join(names)}{default}",
            f"Use {'; '.join(today)}",
            *([f"No effect: {', '.join(ignored)}"] if ignored else []),
        ]
        return ". ".join(said)


class Section:
    """A mapping in a file that is being rewritten. path: today's. is_flat: it belongs to a flat behavior."""

    def __init__(self, rewriting: Rewriting, path: KeyPath, keys: dict[str, object]):
        self.rewriting = rewriting
        self.path = path
        self.keys = keys
        self.is_flat = rewriting.origin(path[:2]) in rewriting.flat or rewriting.origin(path[:1]) in rewriting.flat

    def inner(self, key: str) -> Section | None:
        """The mapping at a key, None where there is none."""
        value = self.keys.get(key)
        return Section(self.rewriting, (*self.path, key), value) if isinstance(value, dict) else None

    def within(self, key: str) -> Section | None:
        """The mapping at a key, created where nothing is written."""
        self.keys.setdefault(key, {})
        return self.inner(key)

    def inners(self) -> Iterator[Section]:
        """Every mapping in this one."""
        yield from filter(None, map(self.inner, list(self.keys)))

    def present(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Those of the keys that are written, in the given order."""
        return tuple(key for key in keys if key in self.keys)

    def origin(self, key: str) -> KeyPath:
        """The path of a key in the file."""
        return self.rewriting.origin((*self.path, key))

    def number(self, key: str) -> float | None:
        """The positive number at a key, 1 where nothing is written, None where it was refused."""
        value = self.keys.get(key, 1)
        if is_positive(value):
            return float(value)
        self.refuse(key, must_be("greater than 0", value), of_key=False)
        return None

    def refuse(self, key: str, text: str, of_key: bool = True) -> None:
        """Report that a key, or its value, is wrong."""
        self.rewriting.diagnostics.append(Diagnostic(self.origin(key), text, of_key=of_key))

    def miss(self, key: str, reason: str) -> None:
        """Refuse the section because a key is not written. reason: continues `KEY is missing`."""
        place = self.rewriting.origin(self.path)
        self.rewriting.diagnostics.append(Diagnostic(place, f"{key} is missing{reason}", of_key=True))

    def deprecate(self, old: Sequence[str], new: str, text: str = "") -> None:
        """Note how written keys are spelled today."""
        self.rewriting.deprecations.append(Deprecation(self.origin(old[0]), tuple(old), new, text, self.is_flat))

    def deprecate_value(self, key: str, old: str, new: str) -> None:
        """Note how the value of a written key is spelled today."""
        words = Deprecation(self.origin(key), (f"{key}: {old}",), f"{key}: {new}", "", self.is_flat)
        self.rewriting.deprecations.append(words)

    def ignore(self, key: str, reason: str) -> None:
        """Remove a key that has no meaning, with a note."""
        self.deprecate([key], "", reason)
        del self.keys[key]

    def remove(self, keys: Sequence[str]) -> None:
        """Remove keys, written or not, without a note."""
        for key in keys:
            self.keys.pop(key, None)

    def move(self, keys: Sequence[str], into: Section | None) -> None:
        """Move written keys into another section; where that is no mapping they stay, for the schema."""
        if into is None:
            return
        for key in keys:
            origin, value = self.origin(key), self.keys.pop(key)
            if key in into.keys:
                text = f"{path_text(into.origin(key))} is written too. Remove one of the two"
                self.rewriting.diagnostics.append(Diagnostic(origin, text, of_key=True))
            else:
                into.keys[key] = value
                self.rewriting.written[*into.path, key] = origin

    def replace(self, old: Sequence[str], new: str, value: object) -> None:
        """Put a new key at the place of the first old one and remove the others. All of them are written."""
        origin = self.origin(old[0])
        if new in self.keys:
            self.refuse(old[0], f"{new} is written too. Remove {old[0]}")
            self.remove(old)
            return
        entries = list(self.keys.items())
        self.keys.clear()
        for key, kept in entries:
            if key == old[0]:
                self.keys[new] = value
            elif key not in old:
                self.keys[key] = kept
        self.rewriting.written[*self.path, new] = origin

    def rename(self, old: str, new: str) -> None:
        """Rename a key if it is written, with a note."""
        if old in self.keys:
            self.deprecate([old], new)
            self.replace([old], new, self.keys[old])
