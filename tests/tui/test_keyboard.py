"""Keys out of bytes: the escape key, alt and a key, and keys of several bytes that come in parts."""

from __future__ import annotations

import pytest
from textual import events
from textual.message import Message

from rl_tui.tui.terminal.keyboard import Keyboard

SOON = 0.03


def names(messages: list[Message]) -> list[str]:
    return [message.key if isinstance(message, events.Key) else type(message).__name__ for message in messages]


def read(*parts: str, gap: float = SOON) -> list[str]:
    """The keys that come of these parts, `gap` seconds apart, and of nothing twenty times a second afterwards."""
    keyboard, now, found = Keyboard(), 0.0, list[Message]()
    for part in parts:
        now += gap
        found += keyboard.feed(part, now)
    for beat in range(20):
        found += keyboard.feed("", now + beat / 20)
    return names(found)


@pytest.mark.parametrize(
    ("parts", "keys"),
    [
        (["p"], ["p"]),
        (["\x1b"], ["escape"]),
        (["\x1b", "p"], ["escape", "p"]),
        (["\x1b", "pp"], ["escape", "p", "p"]),
        (["\x1b", "\x1b", "q"], ["escape", "escape", "q"]),
        (["\x1b\x1b"], ["escape", "escape"]),
        (["\x1b", "\r"], ["escape", "enter"]),
        (["\x1b", "\x03"], ["escape", "ctrl+c"]),
        (["\x1b", "["], ["escape", "left_square_bracket"]),
        (["\x1b", "O"], ["escape", "O"]),
        (["k\x1b", "c"], ["k", "escape", "c"]),
        (["p\x1b[Ap"], ["p", "up", "p"]),
        (["ä", "\x1b", "ö"], ["ä", "escape", "ö"]),
    ],
)
def test_both_keys_act_when_one_follows_escape_quickly(parts: list[str], keys: list[str]) -> None:
    assert read(*parts) == keys


@pytest.mark.parametrize(
    ("both", "key"),
    [
        ("\x1bp", "alt+p"),
        ("\x1bP", "alt+shift+p"),
        ("\x1b?", "alt+question_mark"),
        ("\x1b[", "alt+left_square_bracket"),
        ("\x1bb", "ctrl+left"),
        ("\x1b\r", "alt+enter"),
    ],
)
def test_alt_and_a_key_come_as_one_and_act_as_neither(both: str, key: str) -> None:
    assert read(both) == [key]
    assert read(both + "q") == [key, "q"] if both != "\x1b[" else True


@pytest.mark.parametrize("sequence", ["\x1b[A", "\x1bOA", "\x1b[1;2D", "\x1b[15~", "\x1b[[A", "\x1bOP"])
def test_arrows_and_function_keys_are_whole_however_a_slow_link_cuts_them(sequence: str) -> None:
    whole = read(sequence)
    assert len(whole) == 1
    for cut in range(1, len(sequence)):
        assert read(sequence[:cut], sequence[cut:], "p") == [*whole, "p"]
    assert read(*sequence) == whole
    assert read(sequence[:2], sequence[2:], gap=0.3) == whole


def test_the_answer_to_a_query_is_no_key_however_it_is_cut() -> None:
    for cut in range(5):
        assert read("\x1b[0n"[:cut], "\x1b[0n"[cut:], gap=0.01) == ["Answered"]
    assert read("p\x1b[0nq") == ["p", "Answered", "q"]


def test_an_unknown_report_of_the_terminal_is_no_key() -> None:
    assert read("\x1b[?62;4;52cp") == ["p"]
    assert read("\x1b[?62;4", "p") == []
    assert read("\x1b[?6\x1b[Ap") == ["up", "p"]


def test_mouse_focus_and_modes_are_what_textual_makes_of_them() -> None:
    assert read("\x1b[<0;10;5M\x1b[<0;10;5m") == ["MouseDown", "MouseUp"]
    assert read("\x1b[I\x1b[O\x1b[?2026;2$y") == ["AppFocus", "AppBlur", "TerminalSupportsSynchronizedOutput"]


def test_text_that_is_pasted_gives_no_keys() -> None:
    parts = ["\x1b[200~q k\x1b", "[A ctrl\x1b[20", "1~p"]
    keyboard = Keyboard()
    found = [message for part in parts for message in keyboard.feed(part, 0.0)]
    assert names(found) == ["Paste", "p"]
    assert isinstance(found[0], events.Paste)
    assert found[0].text == "q k\x1b[A ctrl"
