"""Text from outside cannot steer a terminal."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.session.text import counted, excerpt, safe_text

PARTS = st.sampled_from(
    ["\x1b", "\x1b[", "\x1b]", "\x9b", "\x9d", "\x07", "\x1b\\", "\x9c", "2J", "0;t", "m", "\u202e", "é"]
)


def test_excerpt_has_the_innermost_calls_and_the_error_last() -> None:
    lines = [f"line {number}" for number in range(20)]
    assert excerpt("\n".join(lines[:12])).splitlines() == lines[:12]
    traceback = "\n".join(["Traceback (most recent call last):", *lines])
    assert excerpt(traceback).splitlines() == ["...", *lines[-12:]]
    dump = "\n".join(["Current thread (most recent call first):", *lines, ""])
    assert excerpt(dump).splitlines() == ["Current thread (most recent call first):", *lines[:11], "..."]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("CartPole-v1", "CartPole-v1"),
        ("Größe 漢字 🙂", "Größe 漢字 🙂"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07name", "name"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("\x9b2Jgone", "gone"),
        ("\x1bcreset", "reset"),
        ("a\x00b\x07c\x7fd\x85e", "abcd e"),
        ("abc\u202edef\u2066", "abcdef"),
        ("x\ud800y", "x\ufffdy"),
        ("one\r\ntwo\tthree\u2028four", "one two three four"),
        ("\x1b]unterminated", "unterminated"),
    ],
)
def test_what_is_left(raw, shown):
    assert safe_text(raw) == shown


def test_several_lines_stay_several_when_asked():
    assert safe_text("a\r\n\tb\x1b[1mc\rd", multiline=True) == "a\n\tbc\nd"


@given(st.lists(st.text(st.characters(), max_size=5) | PARTS, max_size=12).map("".join), st.booleans())
def test_nothing_left_can_steer_a_terminal(raw, multiline):
    text = safe_text(raw, multiline=multiline)
    text.encode("utf-8")
    allowed = "\n\t" if multiline else ""
    for character in text:
        assert unicodedata.category(character) != "Cc" or character in allowed
        assert unicodedata.bidirectional(character) not in {
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        }
    assert safe_text(text, multiline=multiline) == text


@pytest.mark.parametrize("fragment", ["\x1b]", "\x9b0", "\x1b[0", "\x1b", "\x9d\x9d"])
def test_long_hostile_text_takes_linear_time(fragment):
    began = time.thread_time()
    safe_text(fragment * 100_000)
    assert time.thread_time() - began < 2.0


def test_one_of_a_thing_is_not_several() -> None:
    assert [counted(number, "run") for number in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
