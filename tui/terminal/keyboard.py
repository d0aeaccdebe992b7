"""Keys from the bytes of a terminal, where the escape key and the beginning of another key are the same byte."""

from __future__ import annotations

import re
from collections.abc import Iterator

from textual import events
from textual.message import Message

from rl_tui.tui.terminal.flow import ANSWER
from rl_tui.tui.textual_private import (
    ANSI_SEQUENCES_KEYS,
    BRACKETED_PASTE_END,
    BRACKETED_PASTE_START,
    XTermParser,
    flush_parser,
)

ESCAPE = "\x1b"
ESCAPE_SECONDS = 0.1  # after that the byte was the key, as in Textual
SEQUENCE_SECONDS = 0.5  # longest time from the first byte of a key to its last, on a slow link
SEQUENCE = re.compile(
    r"\x1b(?:"
    r"\[M[\s\S]{3}"  # the mouse in X10's form
    r"|\[\[[A-E]"  # function keys of the Linux console
    r"|\[\d+\$"  # shifted keys of rxvt
    r"|\[(?![\[M])[0-?]*[ -/]*[@-~]"  # ECMA-48, 5.4: control sequences
    r"|O[ -~])"  # keys in application mode
)
BEGINNING = re.compile(r"\x1b(?:\[(?:M[\s\S]{0,2}|\[|[0-?]*[ -/]*)|O)?")


class Answered(Message):
    """The terminal has read what was written before a query."""


class Keyboard:
    """Used by the thread that reads. Owns the bytes of a key that is not complete yet.

    A terminal sends alt and a key at once: escape and the key. What comes after an escape in a later read is another
    key, unless it continues like those of arrows and function keys.
    """

    def __init__(self) -> None:
        self._parser = XTermParser()
        self._unread = ""
        self._was_escape = False  # the escape in `_unread` came alone
        self._since = 0.0
        self._is_pasting = False

    def feed(self, text: str, now: float) -> Iterator[Message]:
        """The keys, and other reports of the terminal, after `text` was read at the time `now`."""
        yield from self.tick(now)
        if not text:
            return
        if self._unread == ESCAPE and text[0] not in "[O":
            yield from self._time_out()
        self._unread += text
        yield from self._read()
        if self._unread:
            self._since = now
            self._was_escape = self._was_escape or self._unread == ESCAPE

    def tick(self, now: float) -> Iterator[Message]:
        """Incomplete keys whose rest is overdue."""
        if (
            self._unread
            and not self._is_pasting
            and now - self._since >= (ESCAPE_SECONDS if self._unread == ESCAPE else SEQUENCE_SECONDS)
        ):
            yield from self._time_out()

    def _read(self) -> Iterator[Message]:
        """Consume every complete key of `_unread`."""
        while self._unread:
            if self._is_pasting:
                pasted, end, rest = self._unread.partition(BRACKETED_PASTE_END)
                if not end:
                    return
                self._unread, self._is_pasting = rest, False
                yield events.Paste(pasted.replace("\x00", ""))
            elif plain := self._unread.partition(ESCAPE)[0]:
                yield from self._parser.feed(self._consume(len(plain)))
            elif sequence := SEQUENCE.match(self._unread):
                yield from self._sequence(self._consume(sequence.end()))
            elif BEGINNING.fullmatch(self._unread):
                return
            elif self._unread[1] == ESCAPE:
                yield from self._escape_key(self._consume(1))
            elif self._unread[1] in "[O":  # a control sequence that broke off
                self._consume(BEGINNING.match(self._unread).end())  # type: ignore[union-attr]  # it matches at least "\x1b["
            else:
                yield from self._alt(self._consume(2))

    def _consume(self, length: int) -> str:
        consumed, self._unread = self._unread[:length], self._unread[length:]
        if not self._unread:
            self._was_escape = False
        return consumed

    def _sequence(self, sequence: str) -> Iterator[Message]:
        """The key of a complete sequence; nothing if Textual does not know it."""
        if sequence == BRACKETED_PASTE_START:
            self._is_pasting = True
            return
        if sequence == ANSWER:
            yield Answered()
            return
        yield from self._parser.feed(sequence)
        flush_parser(self._parser)

    def _alt(self, both: str) -> Iterator[Message]:
        """Alt and a key. Textual has names for some, and loses the alt of punctuation."""
        if both in ANSI_SEQUENCES_KEYS:
            yield from self._parser.feed(both)
            return
        for message in self._parser.feed(both[1]):
            if isinstance(message, events.Key):
                name = f"shift+{message.key.lower()}" if message.key.isupper() else message.key
                yield events.Key(f"alt+{name}", both[1])

    def _escape_key(self, escape: str) -> Iterator[Message]:
        """The escape key."""
        yield from self._parser.feed(escape)
        yield from flush_parser(self._parser)

    def _time_out(self) -> Iterator[Message]:
        """The rest will not come: it was escape and another key, or alt and a key; anything longer is dropped."""
        waited, was_escape = self._unread, self._was_escape
        self._unread, self._was_escape = "", False
        if was_escape and len(waited) <= 2:
            yield from self._escape_key(waited[0])
            if waited[1:]:  # "" would end the parser
                yield from self._parser.feed(waited[1:])
        elif len(waited) == 2:
            yield from self._alt(waited)
