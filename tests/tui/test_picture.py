"""Only what differs is written to the terminal, and the terminal then shows what was drawn: pyte is the terminal."""

from __future__ import annotations

import pyte
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rl_tui.tui.terminal.picture import PLAIN, Look, Picture, change, styled

WIDTH, HEIGHT = 30, 4
TEXTS = st.text("ab ─⣿漢é́", max_size=WIDTH + 3) | st.integers(1, WIDTH).map(lambda count: " " * count)
STYLES = st.sampled_from(
    ["", "0", "1", "2;38;5;75", "48;5;234", "4", "7", "38;2;1;2;3;48;2;4;5;6", "22;39", "31;42", "97;100"]
)
DRAWN = st.lists(st.tuples(st.integers(0, WIDTH - 1), st.integers(0, HEIGHT - 1), STYLES, TEXTS), max_size=6)
PICTURES = st.lists(DRAWN, min_size=1, max_size=5)


class Terminal:
    """What a terminal shows of what it is sent. Like ours, it does not wrap lines."""

    def __init__(self) -> None:
        self.screen = pyte.Screen(WIDTH, HEIGHT)
        self._stream = pyte.Stream(self.screen)
        self.feed("\x1b[?7l")

    def feed(self, sequences: str) -> None:
        self._stream.feed(sequences)

    def cells(self) -> list[tuple[object, ...]]:
        """Everything that can be seen: the color in front does not show on blanks."""
        seen = []
        for y in range(HEIGHT):
            for x in range(WIDTH):
                cell = self.screen.buffer[y][x]
                is_blank = cell.data == " " and not (cell.underscore or cell.reverse)
                seen.append((cell.data, cell.bg) if is_blank else cell)
        return seen


def sequences_of(drawn: list[tuple[int, int, str, str]]) -> str:
    """As Textual writes: each segment is placed and styled by itself."""
    return "".join(f"\x1b[{y + 1};{x + 1}H\x1b[{style}m{text[: WIDTH - x]}\x1b[0m\n" for x, y, style, text in drawn)


def plain(drawn: list[tuple[int, int, str, str]]) -> list[tuple[int, int, str, str]]:
    """Without characters that are wider or narrower than a cell, which pyte overwrites in its own way."""
    return [(x, y, style, "".join(c for c in text if c in "ab ─⣿")) for x, y, style, text in drawn]


@given(PICTURES, st.booleans())
@example([[(0, 0, "48;5;234", "a" + " " * 29)], [(5, 0, "1;38;5;75", "b─b"), (0, 3, "4", " " * 20)]], True)
@example([[(0, 0, "", "ab" * 15)], [(3, 0, "7", " " * 14), (20, 0, "31", " " * 10)]], True)
def test_the_terminal_shows_what_was_drawn(pictures: list[list[tuple[int, int, str, str]]], can_erase: bool) -> None:
    picture, ours, theirs = Picture(WIDTH, HEIGHT, can_erase_in_color=can_erase), Terminal(), Terminal()
    for drawn in map(plain, pictures):
        sequences = sequences_of(drawn)
        picture.draw(sequences)
        ours.feed(picture.difference())
        theirs.feed(sequences.replace("\n", ""))
        assert ours.cells() == theirs.cells()
    assert picture.difference() == ""


@given(PICTURES)
def test_one_after_the_other_gives_the_picture_of_all_at_once(pictures: list[list[tuple[int, int, str, str]]]) -> None:
    """Of wide characters half of which is overwritten, too."""
    stepwise, whole, ours, theirs = Picture(WIDTH, HEIGHT), Picture(WIDTH, HEIGHT), Terminal(), Terminal()
    for drawn in pictures:
        stepwise.draw(sequences_of(drawn))
        whole.draw(sequences_of(drawn))
        ours.feed(stepwise.difference())
    theirs.feed(whole.difference())
    assert ours.cells() == theirs.cells()


@given(PICTURES, st.integers(1, 60))
def test_parts_of_a_picture_give_all_of_it(pictures: list[list[tuple[int, int, str, str]]], most: int) -> None:
    whole, parted, ours, theirs = Picture(WIDTH, HEIGHT), Picture(WIDTH, HEIGHT), Terminal(), Terminal()
    for drawn in map(plain, pictures):
        for picture in (whole, parted):
            picture.draw(sequences_of(drawn))
        theirs.feed(whole.difference())
        ours.feed(parted.difference(most))  # the rest is overtaken by the next picture
    while parted.is_due:
        ours.feed(parted.difference(most))
    assert ours.cells() == theirs.cells()


def test_what_answers_a_key_is_written_before_what_waits() -> None:
    picture = Picture(WIDTH, HEIGHT)
    picture.difference()
    picture.draw(sequences_of([(0, y, "", "old") for y in range(HEIGHT)]))
    assert picture.difference(1) == "\x1b[1Hold"
    picture.on_key()
    picture.draw(sequences_of([(0, 2, "", "new")]))
    assert picture.difference(1) == "\x1b[3Hnew"
    assert picture.difference() == "\x1b[2Hold\x1b[4Hold"


def test_nothing_is_written_that_the_terminal_shows_already() -> None:
    picture = Picture(WIDTH, HEIGHT)
    picture.draw("\x1b[1;1H\x1b[38;5;75mreturn 12.5\x1b[0m")
    assert "return 12.5" in picture.difference()
    picture.draw("\x1b[1;1H\x1b[38;5;75mreturn 12.7\x1b[0m")
    assert picture.difference() == "\x1b[1;11H\x1b[38;5;75m7\x1b[m"
    picture.draw("\x1b[1;1H\x1b[38;5;75mreturn 12.7\x1b[0m")
    assert picture.difference() == ""
    picture.draw("\x1b[2;1H\x1b[38;5;246m      \x1b[0m")
    assert picture.difference() == "", "a color that cannot be seen"


def test_blanks_are_erased_where_that_is_shorter() -> None:
    picture = Picture(WIDTH, HEIGHT)
    picture.draw("\x1b[1;1H" + "x" * WIDTH)
    picture.difference()
    picture.draw("\x1b[1;3H\x1b[48;5;234m" + " " * (WIDTH - 2) + "\x1b[0m")
    assert picture.difference() == "\x1b[1;3H\x1b[48;5;234m\x1b[K\x1b[m"
    unable = Picture(WIDTH, HEIGHT, can_erase_in_color=False)
    unable.difference()
    unable.draw("\x1b[1;3H\x1b[48;5;234m" + " " * (WIDTH - 2) + "\x1b[0m")
    assert "\x1b[K" not in unable.difference()


def test_everything_is_written_again_once_the_terminal_is_forgotten() -> None:
    picture, terminal = Picture(WIDTH, HEIGHT), Terminal()
    picture.draw("\x1b[2;3Hloss 0.5")
    terminal.feed(picture.difference())
    terminal.feed("\x1b[Hmail for you\x1b[4;1Hagain")
    picture.draw("\x1b[2;3Hloss 0.4")
    terminal.feed(picture.difference())
    assert "mail" in terminal.screen.display[0]
    picture.forget()
    terminal.feed(picture.difference())
    assert [line.strip() for line in terminal.screen.display] == ["", "loss 0.4", "", ""]


@pytest.mark.parametrize("outside", ["\x1b[9;1Hbelow", "\x1b[1;40Hright", f"\x1b[1;28H{'漢' * 4}"])
def test_what_does_not_fit_is_cut_off(outside: str) -> None:
    picture, terminal = Picture(WIDTH, HEIGHT), Terminal()
    picture.draw(outside)
    terminal.feed(picture.difference())
    assert not terminal.screen.buffer[HEIGHT]
    assert all(len(line) <= WIDTH for line in terminal.screen.display)


@given(st.lists(STYLES, max_size=6), st.lists(STYLES, max_size=6))
def test_a_change_of_looks_leads_from_one_to_the_other(first: list[str], second: list[str]) -> None:
    before, after = PLAIN, PLAIN
    for style in first:
        before = styled(before, style)
    for style in second:
        after = styled(after, style)
    sequence = change(before, after)
    assert (styled(before, sequence.removeprefix("\x1b[").removesuffix("m")) if sequence else before) == after


def test_bold_and_dim_end_together_and_the_other_one_goes_on() -> None:
    assert styled(Look(frozenset("12")), change(Look(frozenset("12")), Look(frozenset("2")))[2:-1]) == Look(
        frozenset("2")
    )


def test_looks_that_alternate_in_a_row_are_written_one_after_the_other() -> None:
    picture = Picture(30, 1)
    picture.difference()
    red, blue = "\x1b[38;5;160m", "\x1b[38;5;33m"
    picture.draw("\x1b[1;1H" + f"{red}a{blue}b" * 10)
    written = picture.difference()
    assert (written.count(red), written.count(blue)) == (1, 1)
    assert len(written) < len(f"{red}a{blue}b" * 10) / 2
    assert "\x1b[C" in written, "over what is written already"
    assert "a a a" in written, "blanks are shorter than moving over what comes later"


def test_where_a_terminal_may_draw_a_character_wider_columns_are_absolute() -> None:
    for character, moves in (("x", "\x1b[9C"), ("★", "\x1b[11G")):
        picture = Picture(30, 1)
        picture.difference()
        picture.draw(f"\x1b[1;1H{character}\x1b[1;11Hy")
        assert moves in picture.difference()
