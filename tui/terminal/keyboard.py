"""Keys out of what a terminal sends, where the escape key and the beginning of another key are the same byte."""

from __future__ import annotations

import re
from collections.abc import Iterator

from textual import events
from textual.message import Message

from rl_tui.tui.textual_private import (
    ANSI_SEQUENCES_KEYS,
    BRACKETED_PASTE_END,
    BRACKETED_PASTE_START,
    XTermParser,
    flush_parser,
)

ESCAPE = "\x1b"
ESCAPE_SECONDS = 0.1  # after which the byte was the key, as Textual has it
SEQUENCE_SECONDS = 0.5  # how long a slow link may take from the first bytes of a key to its last
SEQUENCE = re.compile(
    r"\x1b(?:"
    r"\[M[\s\S]{3}"  # the mouse, as X10 had it
    r"|\[\[[A-E]"  # function keys of the Linux console
    r"|\[\d+\$"  # shifted keys of rxvt
    r"|\[(?![\[M])[0-?]*[ -/]*[@-~]"  # ECMA-48, 5.4: control sequences
    r"|O[ -~])"  # keys in application mode
)
BEGINNING = re.compile(r"\x1b(?:\[(?:M[\s\S]{0,2}|\[|[0-?]*[ -/]*)|O)?")


class Keyboard:
    """Lives in the thread that reads. Owns what has come of a key that is not complete yet.

    A terminal sends alt and a key as one piece: escape and the key. What comes after an escape in another piece is
    another key, unless it goes on as arrows and function keys do.
    """

    def __init__(self) -> None:
        self._parser = XTermParser()
        self._unread = ""
        self._was_escape = False  # the escape of `_unread` came alone
        self._since = 0.0
        self._is_pasting = False

    def feed(self, piece: str, now: float) -> Iterator[Message]:
        """The keys, and what else the terminal reports, once `piece` has come at the time `now`."""
        yield from self.tick(now)
        if not piece:
            return
        if self._unread == ESCAPE and piece[0] not in "[O":
            yield from self._give_up()
        self._unread += piece
        yield from self._read()
        if self._unread:
            self._since = now
            self._was_escape = self._was_escape or self._unread == ESCAPE

    def tick(self, now: float) -> Iterator[Message]:
        """What has waited too long for the rest of a key."""
        if (
            self._unread
            and not self._is_pasting
            and now - self._since >= (ESCAPE_SECONDS if self._unread == ESCAPE else SEQUENCE_SECONDS)
        ):
            yield from self._give_up()

    def _read(self) -> Iterator[Message]:
        """Take every complete key off `_unread`."""
        while self._unread:
            if self._is_pasting:
                text, end, rest = self._unread.partition(BRACKETED_PASTE_END)
                if not end:
                    return
                self._unread, self._is_pasting = rest, False
                yield events.Paste(text.replace("\x00", ""))
            elif plain := self._unread.partition(ESCAPE)[0]:
                yield from self._parser.feed(self._take(len(plain)))
            elif sequence := SEQUENCE.match(self._unread):
                yield from self._sequence(self._take(sequence.end()))
            elif BEGINNING.fullmatch(self._unread):
                return
            elif self._unread[1] == ESCAPE:
                yield from self._alone(self._take(1))
            elif self._unread[1] in "[O":  # a control sequence that broke off
                self._take(BEGINNING.match(self._unread).end())  # type: ignore[union-attr]  # it matches at least "\x1b["
            else:
                yield from self._alt(self._take(2))

    def _take(self, length: int) -> str:
        taken, self._unread = self._unread[:length], self._unread[length:]
        if not self._unread:
            self._was_escape = False
        return taken

    def _sequence(self, sequence: str) -> Iterator[Message]:
        """What a complete sequence stands for; nothing where Textual does not know it."""
        if sequence == BRACKETED_PASTE_START:
            self._is_pasting = True
            return
        yield from self._parser.feed(sequence)
        flush_parser(self._parser)

    def _alt(self, both: str) -> Iterator[Message]:
        """Alt and a key. Textual has names for some, and loses the alt of signs."""
        if both in ANSI_SEQUENCES_KEYS:
            yield from self._parser.feed(both)
            return
        for message in self._parser.feed(both[1]):
            if isinstance(message, events.Key):
                name = f"shift+{message.key.lower()}" if message.key.isupper() else message.key
                yield events.Key(f"alt+{name}", both[1])

    def _alone(self, escape: str) -> Iterator[Message]:
        """The escape key."""
        yield from self._parser.feed(escape)
        yield from flush_parser(self._parser)

    def _give_up(self) -> Iterator[Message]:
        """The rest will not come: it was escape and another key, or alt and a key; anything longer is noise."""
        waited, was_escape = self._unread, self._was_escape
        self._unread, self._was_escape = "", False
        if was_escape and len(waited) <= 2:
            yield from self._alone(waited[0])
            if waited[1:]:  # "" would be the end of all
                yield from self._parser.feed(waited[1:])
        elif len(waited) == 2:
            yield from self._alt(waited)
