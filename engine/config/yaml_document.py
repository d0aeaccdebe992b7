"""YAML text -> plain Python values, with the line and column of every key and value, and back.

Read from libyaml's events, which still have anchors, tags and quotes; nothing is constructed, and the depth is limited.
Refused, because they hide what a settings file says: duplicate keys (except in legacy files), merge keys, anchors,
aliases, tags, several documents, numbers that are not finite.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import yaml
from yaml.emitter import ScalarAnalysis

from rl_tui.engine.config.diagnostics import DEEPEST, LARGEST_WHOLE, Diagnostic, KeyPath, Mark, must_be, visible

# YAML 1.1 (which ML-Agents reads) requires a dot and a signed exponent; people write 1e5 and 3e-4, so the dot and the
# sign may be left out here.
NUMBER = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"[-+]?(?:0x[0-9a-fA-F][0-9a-fA-F_]*|0b[01][01_]*|[0-9][0-9_]*)")
_OCTAL = re.compile(r"[-+]?0[0-9_]*[0-9]")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\ufeff")
_LINE_END = re.compile("\r\n|[\r\n\x85\u2028\u2029]")  # as YAML 1.1 counts lines
_WORDS: dict[str, bool | None] = (
    dict.fromkeys(("", "~", "null", "Null", "NULL"))
    | dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True)
    | dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False)
)


class _NotAValueError(ValueError):
    """A plain scalar that looks like a number and is not a valid one."""


class _TooDeepError(ValueError):
    """Nested deeper than any configuration."""

    def __init__(self, mark: Mark) -> None:
        super().__init__(mark)
        self.mark = mark


@dataclass
class Document:
    """The content of a YAML text.

    values: the mapping at the top, empty when there is none. keys, key_values: the place of each key and each value.
    unusable: paths whose value could not be read. repeated: a note for each key that was written before in its mapping.
    complete: the whole text could be read.
    """

    values: dict[str, object] = field(default_factory=dict)
    keys: dict[KeyPath, Mark] = field(default_factory=dict)
    key_values: dict[KeyPath, Mark] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    unusable: set[KeyPath] = field(default_factory=set)
    repeated: list[Diagnostic] = field(default_factory=list)
    complete: bool = True


def read_yaml(content: bytes, last_counts: bool = False) -> Document:
    """The document in a UTF-8 file, with everything that is wrong in its `diagnostics`; nothing is raised.

    last_counts: a key may be written more than once, and its last value is used.
    """
    document = Document()
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8")
        found = f"must be saved as UTF-8, got byte 0x{content[error.start]:02x}"
        return _give_up(document, found, _mark_at(before, len(before)))
    if unprintable := _UNPRINTABLE.search(text):
        found = f"must be printable text, got the control character U+{ord(unprintable[0]):04X}"
        return _give_up(document, found, _mark_at(text, unprintable.start()))
    try:
        _Reader(text, document, last_counts).read()
    except _TooDeepError as error:
        return _give_up(document, f"must be at most {DEEPEST} levels deep", error.mark)
    except yaml.MarkedYAMLError as error:
        mark = _syntax_mark(error, text)
        return _give_up(document, _syntax_error(error, text, mark), mark)
    return document


def _give_up(document: Document, text: str, mark: Mark) -> Document:
    document.diagnostics.append(Diagnostic((), text, mark))
    document.complete = False
    return document


def _mark_at(text: str, offset: int) -> Mark:
    lines = _LINE_END.split(text[:offset])
    return Mark(len(lines), len(lines[-1]) + 1)


class _Place(Protocol):
    """libyaml's own mark: both numbers count from 0."""

    line: int
    column: int


def _mark(place: _Place | None) -> Mark:
    return Mark(place.line + 1, place.column + 1) if place else Mark(1, 1)


def _syntax_mark(error: yaml.MarkedYAMLError, text: str) -> Mark:
    """Where the unfinished token begins, if the scanner failed; else where the parser stopped, within the text."""
    scanner_context = error.context_mark if isinstance(error, yaml.scanner.ScannerError) else None
    mark = _mark(scanner_context or error.problem_mark or error.context_mark)
    return min(mark, _mark_at(text, len(text.rstrip())))


def _syntax_error(error: yaml.MarkedYAMLError, text: str, mark: Mark) -> str:
    context = f" ({error.context})" if error.context else ""
    problem = re.sub("^(did|could) not find (?=expected)", "", error.problem or "")
    hint = "Check the indentation, the colons and the quotes"
    if "\t" in _LINE_END.split(text)[mark.line - 1]:
        hint = "Indent with spaces: YAML allows no tab there"
    return visible(f"invalid YAML{context}: {problem}. {hint}", limit=300)


_Decorated: TypeAlias = yaml.ScalarEvent | yaml.CollectionStartEvent


class _Reader:
    """Walks the events of one text into its Document."""

    def __init__(self, text: str, document: Document, last_counts: bool) -> None:
        self._document = document
        self._last_counts = last_counts
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.CSafeLoader)

    def read(self) -> None:
        self._next()  # the start of the stream
        if isinstance(self._next(), yaml.StreamEndEvent):
            self._refuse((), "must be a mapping with keys such as `behaviors:`, got an empty file", Mark(1, 1))
            return
        first = self._next()
        values = self._node(first, ())
        self._next()  # the end of the document
        self._read_ending()
        if isinstance(values, dict):
            self._document.values = values
        elif not self._document.diagnostics:
            found = must_be("a mapping with keys such as `behaviors:`", values)
            self._refuse((), found, _mark(first.start_mark))

    def _next(self) -> yaml.Event:
        return next(self._events)

    def _read_ending(self) -> None:
        event = self._next()
        if isinstance(event, yaml.DocumentStartEvent):
            self._refuse((), "must be one document, got a second one", _mark(event.start_mark))

    def _refuse(self, path: KeyPath, text: str, mark: Mark) -> None:
        self._document.diagnostics.append(Diagnostic(path, text, mark))

    def _node(self, event: yaml.Event, path: KeyPath) -> object:
        mark = _mark(event.start_mark)
        self._document.key_values.setdefault(path, mark)
        if isinstance(event, _Decorated):
            self._refuse_decoration(event, path, mark)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path, mark)
        if isinstance(event, yaml.AliasEvent):
            self._unusable(path, f"must be written out, got the alias *{visible(event.anchor or '')}", mark)
            return None
        if len(path) >= DEEPEST:
            raise _TooDeepError(mark)
        return self._sequence(path) if isinstance(event, yaml.SequenceStartEvent) else self._mapping(path)

    def _refuse_decoration(self, event: _Decorated, path: KeyPath, mark: Mark) -> None:
        if event.anchor is not None:
            self._refuse(path, f"must have no anchor, got &{visible(event.anchor)}", mark)
        if event.tag is not None:
            tag = visible(event.tag.replace("tag:yaml.org,2002:", "!!"))
            self._unusable(path, f"must be a plain value, got the tag {tag}", mark)

    def _unusable(self, path: KeyPath, text: str, mark: Mark) -> None:
        self._refuse(path, text, mark)
        self._document.unusable.add(path)

    def _scalar(self, event: yaml.ScalarEvent, path: KeyPath, mark: Mark) -> object:
        if event.style:
            return event.value
        try:
            return plain_value(event.value)
        except _NotAValueError as error:
            self._unusable(path, str(error), mark)
            return None

    def _sequence(self, path: KeyPath) -> list[object]:
        entries: list[object] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            entries.append(self._node(event, (*path, len(entries))))
        return entries

    def _mapping(self, path: KeyPath) -> dict[str, object]:
        entries: dict[str, object] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event, path, entries)
            value_path = (*path, key)
            if key in entries and self._last_counts:
                self._forget(value_path)
                del entries[key]
            self._document.keys.setdefault(value_path, _mark(event.start_mark))
            value = self._node(self._next(), value_path)
            entries.setdefault(key, value)
        return entries

    def _forget(self, path: KeyPath) -> None:
        """Drop the places of this value and of all in it."""
        for known in (self._document.keys, self._document.key_values):
            for place in [place for place in known if place[: len(path)] == path]:
                del known[place]
        self._document.unusable = {place for place in self._document.unusable if place[: len(path)] != path}

    def _key(self, event: yaml.Event, path: KeyPath, entries: dict[str, object]) -> str:
        """The key's text; one that is not text is refused, and its value unusable."""
        mark = _mark(event.start_mark)
        if not isinstance(event, yaml.ScalarEvent):
            if not isinstance(event, yaml.AliasEvent):
                self._node(event, (*path, "?"))
            return self._no_key(path, "?", "must be a key of plain text, got a list, a mapping or an alias", mark)
        key: str = event.value
        if event.anchor is not None or event.tag is not None:
            return self._no_key(path, key, "must be a plain key, got one with an anchor or a tag", mark)
        if not event.style and key in ("<<", "", "~"):
            found = "the merge key <<" if key == "<<" else "an empty key"
            return self._no_key(path, key, f"must be a key written out, got {found}", mark)
        if key in entries:
            first = self._document.keys[*path, key]
            text = f"written twice, first at line {first.line}. The last one counts"
            self._document.repeated.append(Diagnostic((*path, key), text, mark))
            if not self._last_counts:
                self._refuse((*path, key), f"duplicate key, first at line {first.line}. Remove one of the two", mark)
        return key

    def _no_key(self, path: KeyPath, key: str, text: str, mark: Mark) -> str:
        self._unusable((*path, key), text, mark)
        return key


def plain_value(text: str) -> bool | int | float | str | None:
    """What an unquoted scalar means: null, a boolean (YAML 1.1's words), a number, or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _NOT_FINITE.fullmatch(text):
        raise _NotAValueError(f"must be a finite number, got {visible(text)}")
    if _OCTAL.fullmatch(text):
        raise _NotAValueError(f"must have no leading zero (octal in YAML 1.1) or be quoted, got {visible(text)}")
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if NUMBER.fullmatch(text):
        number = float(text.replace("_", ""))
        if not math.isfinite(number):
            raise _NotAValueError(f"must be a finite number, got {visible(text)}")
        return number
    return text


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    base = {"0x": 16, "0b": 2}.get(digits.lstrip("+-")[:2].lower(), 10)
    number = int(digits, base) if len(digits) < 80 else LARGEST_WHOLE + 1
    if abs(number) > LARGEST_WHOLE:
        raise _NotAValueError(f"must be a number within 64 bits, got {visible(text)}")
    return number


class _Dumper(yaml.SafeDumper):
    """Writes what read_yaml accepts."""

    def ignore_aliases(self, data: object) -> bool:
        """Write equal values out instead of referring to the first."""
        return True

    def analyze_scalar(self, scalar: str) -> ScalarAnalysis:
        """Line ends other than a newline are escaped: PyYAML would fold them into a blank within single quotes."""
        analysis = super().analyze_scalar(scalar)
        if any(character in scalar for character in "\x85\u2028\u2029"):
            analysis.allow_flow_plain = analysis.allow_block_plain = False
            analysis.allow_single_quoted = analysis.allow_block = False
        return analysis


# PyYAML leaves 1e5 and 08 bare when they are text; read back they would be numbers here.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(rf"(?:{NUMBER.pattern})\Z"), list("-+.0123456789"))


def key_paths(values: Mapping[str, object], above: KeyPath = ()) -> Iterator[KeyPath]:
    """The path of every key."""
    for key, value in values.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from key_paths(value, (*above, key))


def write_yaml(values: Mapping[str, object]) -> str:
    """Plain values as text, in their order; read_yaml reads the same values from it."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)
