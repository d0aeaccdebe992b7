"""Messages on a socket: lines of JSON, of which a long one comes in parts.

A line has at most LINE_BYTES. A longer message is sent as {"v": 1, "part": TEXT, "more": true}, ..., the last with
"more": false: the texts together are the message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from rl_tui.engine.errors import AttachError
from rl_tui.engine.session.codec import SCHEMA_VERSION

LINE_BYTES = 1 << 20
MESSAGE_BYTES = 64 << 20  # of one that comes in parts: a view has at most a few MB without its curves
PART_BYTES = LINE_BYTES // 2 - 100  # each of them may need two in JSON
_PART = '"part":'


def lines_of(message: str) -> Iterator[bytes]:
    """The lines of a message, which is one line of ASCII without its newline."""
    if len(message) < LINE_BYTES:
        yield f"{message}\n".encode("ascii")
        return
    for start in range(0, len(message), PART_BYTES):
        end = start + PART_BYTES
        part = {"v": SCHEMA_VERSION, "part": message[start:end], "more": end < len(message)}
        yield f"{json.dumps(part, separators=(',', ':'))}\n".encode("ascii")


class LineReader:
    """Messages out of bytes as they arrive. Holds no more than a line, and a message of MESSAGE_BYTES in parts."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._parts: list[str] = []
        self._num_held = 0

    def feed(self, data: bytes) -> list[str]:
        """The messages that are complete now. Raises AttachError on what cannot be one."""
        first_new = len(self._rest)
        self._rest += data
        messages = []
        while (end := self._rest.find(b"\n", first_new)) >= 0:
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            first_new = 0
            if (message := self._joined(line)) is not None:
                messages.append(message)
        if len(self._rest) >= LINE_BYTES:
            raise AttachError(f"a line of more than {LINE_BYTES:,} bytes came")
        return messages

    def _joined(self, line: bytes) -> str | None:
        """The message that is complete with this line; None where it is not the last part."""
        if len(line) >= LINE_BYTES:
            raise AttachError(f"a line of more than {LINE_BYTES:,} bytes came")
        try:
            text = line.decode("ascii")
        except UnicodeDecodeError as error:
            raise AttachError("a line came that is not ASCII") from error
        if _PART not in text[:40] and not self._parts:
            return text
        try:
            body = json.loads(text)
            part, more = body["part"], body["more"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise AttachError(f"not a part of a message: {text[:80]!r}") from error
        if not isinstance(part, str) or not isinstance(more, bool):
            raise AttachError(f"not a part of a message: {text[:80]!r}")
        self._parts.append(part)
        self._num_held += len(part)
        if self._num_held > MESSAGE_BYTES:
            raise AttachError(f"a message of more than {MESSAGE_BYTES:,} bytes came")
        if more:
            return None
        message, self._parts, self._num_held = "".join(self._parts), [], 0
        return message
