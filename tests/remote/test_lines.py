"""Messages on a socket come whole or not at all, however they arrive."""

from __future__ import annotations

import json
import random

import pytest

from rl_tui.engine.errors import AttachError
from rl_tui.engine.remote import lines
from rl_tui.engine.remote.lines import LINE_BYTES, LineReader, lines_of


@pytest.mark.parametrize("length", [0, 1, LINE_BYTES - 1, LINE_BYTES, LINE_BYTES + 1, 3 * LINE_BYTES])
@pytest.mark.parametrize("letter", ["x", '"', "\\"])
def test_message_of_any_length_comes_whole_in_lines_that_are_short_enough(length: int, letter: str) -> None:
    message = letter * length
    sent = list(lines_of(message))
    assert all(len(line) <= LINE_BYTES and line.endswith(b"\n") for line in sent)
    assert LineReader().feed(b"".join(sent)) == [message]


def test_bytes_arrive_in_any_portions() -> None:
    draw = random.Random(1)
    messages = ['{"v": 1}', "y" * (LINE_BYTES + 7), "", '{"v": 1, "part": 3}'[:8], "z" * 100]
    whole = b"".join(line for message in messages for line in lines_of(message))
    reader, found, start = LineReader(), [], 0
    while start < len(whole):
        end = start + draw.choice([1, 100, 65_536, 300_000])
        found += reader.feed(whole[start:end])
        start = end
    assert found == messages


@pytest.mark.parametrize(
    "data",
    [
        b"x" * (LINE_BYTES + 1),
        b"x" * LINE_BYTES + b"\n",
        b"\xc3\xa4\n",
        b'{"v": 1, "part": 3, "more": false}\n',
        b'{"v": 1, "part": "a"}\n',
        b'{"v":1,"part":"a","more":true}\n{"v": 1}\n',
        b'{"v":1,"part":' + b"[" * 10_000 + b"\n",
    ],
)
def test_what_is_no_line_is_refused(data: bytes) -> None:
    with pytest.raises(AttachError):
        LineReader().feed(data)


def test_message_in_parts_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MESSAGE_BYTES", 100)
    part = json.dumps({"v": 1, "part": "x" * 60, "more": True}).encode() + b"\n"
    reader = LineReader()
    assert reader.feed(part) == []
    with pytest.raises(AttachError, match="a message of more than 100 bytes came"):
        reader.feed(part)
