"""What the terminal shows and what it should show, cell by cell, so that only the difference is written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from rich.cells import get_character_cell_size

MERGED_GAP = 4  # equal cells between two changes that are written again: moving the cursor takes as many bytes
SHORT_MOVE = 3  # cells over which blanks take fewer bytes than moving, where they are written over later
LONG_BLANK = 12  # blanks that take more bytes than erasing them and moving on
UNKNOWN = "\0"  # what a cell shows after another program may have written there
TOKENS = re.compile(r"\x1b\[(?P<place>\d+;\d+)H|\x1b\[(?P<style>[\d;]*)m|(?P<text>[^\x1b\r\n]+)|\x1b.|[\r\n]")
WIDE = re.compile("[^\x00-\u02ff\u2010-\u2027\u2190-\u21ff\u2500-\u259f\u2800-\u28ff]")  # those and more are narrow


class Look(NamedTuple):
    """How a cell looks. attributes, front, back: parameters of SGR (ECMA-48, 8.3.117); "" for the terminal's own."""

    attributes: frozenset[str] = frozenset()
    front: str = ""
    back: str = ""


PLAIN = Look()
SHOWN_ON_BLANKS = frozenset({"4", "7", "9", "21", "53"})  # lines and swapped colors
ENDINGS = {  # of an attribute
    "1": "22", "2": "22", "3": "23", "4": "24", "21": "24", "5": "25", "6": "25", "7": "27", "8": "28", "9": "29",
    "51": "54", "52": "54", "53": "55",
}  # fmt: skip
Row: TypeAlias = "tuple[list[str], list[Look]]"  # characters, "" right of a wide one, and their looks


class Picture:
    """Used in the app's thread. width, height: cells of the terminal. can_erase_in_color: erased cells get the
    background that is set (terminfo's bce)."""

    def __init__(self, width: int, height: int, *, can_erase_in_color: bool = True) -> None:
        self.width, self.height = width, height
        self._can_erase_in_color = can_erase_in_color
        self._wanted: list[Row] = [([" "] * width, [PLAIN] * width) for _ in range(height)]
        self._shown: list[Row] = []
        self._changed: dict[int, int] = {}  # rows that may differ, and how many keys were pressed before
        self._num_keys = 0
        self.forget()

    @property
    def is_due(self) -> bool:
        """Whether something was drawn since the last difference."""
        return bool(self._changed)

    def forget(self) -> None:
        """What the terminal shows is unknown from now on."""
        self._shown = [([UNKNOWN] * self.width, [PLAIN] * self.width) for _ in range(self.height)]
        self._changed = dict.fromkeys(range(self.height), self._num_keys)

    def on_key(self) -> None:
        """What is drawn from now on answers a key, and is written before what is not written yet."""
        self._num_keys += 1

    def draw(self, sequences: str) -> None:
        """Text with the escape sequences that place and style it, as Textual and Rich write them."""
        x, y, look = 0, 0, PLAIN
        for token in TOKENS.finditer(sequences):
            match token.lastgroup:
                case "text":
                    x = self._put(x, y, token["text"], look)
                case "style":
                    look = styled(look, token["style"])
                case "place":
                    row, _, column = token["place"].partition(";")
                    y, x = int(row) - 1, int(column) - 1

    def difference(self, most: int | None = None) -> str:
        """What makes the terminal show what was drawn; it is taken as shown from now on.

        most: once it has so many bytes, the other rows are left to the next one.
        """
        pen = Pen()
        for y in sorted(self._changed, key=lambda y: (-self._changed[y], y)):
            if most is not None and pen.num_bytes >= most:
                break
            characters, looks = self._wanted[y]
            if self._shown[y] != self._wanted[y]:
                self._write_row(pen, y)
                self._shown[y] = characters.copy(), looks.copy()
            del self._changed[y]
        return pen.finished()

    def _put(self, x: int, y: int, text: str, look: Look) -> int:
        """Where the text ends."""
        if not 0 <= y < self.height:
            return x + len(text)
        characters, looks = self._wanted[y]
        cells = list(text) if WIDE.search(text) is None else in_cells(text)
        end = x + len(cells)
        cells = cells[: max(0, self.width - x)]
        last = x + len(cells)
        if cells:
            if x and characters[x] == "":  # the right half of a wide one
                characters[x - 1] = " "
            if last < self.width and characters[last] == "":
                characters[last] = " "
            characters[x:last], looks[x:last] = cells, [look] * len(cells)
            if " " in text:
                blank = of_blank(look)
                if blank != look:
                    for at in range(x, last):
                        if characters[at] == " ":
                            looks[at] = blank
            self._changed[y] = self._num_keys
        return end

    def _write_row(self, pen: Pen, y: int) -> None:
        (characters, looks), (old, old_looks) = self._wanted[y], self._shown[y]
        columns = [
            x
            for x, (new, before, look, look_before) in enumerate(zip(characters, old, looks, old_looks, strict=True))
            if new != before or look != look_before
        ]
        blank = self._first_of_tail(characters, looks)
        tail = next((x for x in columns if x >= blank), self.width)
        if self.width - tail <= len("\x1b[K"):
            tail = self.width
        runs = [
            run
            for first, last in spans_of([x for x in columns if x < tail])
            for run in self._runs(
                characters,
                looks,
                first - (characters[first] == ""),  # a wide character is written as a whole
                last + (last < self.width and characters[last] == ""),
            )
        ]
        orders = [runs]
        if len({run.look for run in runs}) < len(runs) - 1:  # a look comes back: moving may be shorter than changing it
            orders.append(by_look(runs, pen.look))
        pen.write_shortest(y, orders)
        if tail < self.width:
            pen.move(tail, y)
            pen.erase_row(looks[tail])

    def _first_of_tail(self, characters: list[str], looks: list[Look]) -> int:
        """From where on the row is blank in one look that erasing gives."""
        x, look = self.width, looks[-1]
        if not self._is_erasable(look):
            return x
        while x and characters[x - 1] == " " and looks[x - 1] == look:
            x -= 1
        return x

    def _is_erasable(self, look: Look) -> bool:
        return (self._can_erase_in_color or not look.back) and not look.attributes

    def _runs(self, characters: list[str], looks: list[Look], first: int, last: int) -> Iterator[Run]:
        x = first
        while x < last:
            look, end = looks[x], x + 1
            while end < last and looks[end] == look:
                end += 1
            text = "".join(characters[x:end])
            is_blank = text.isspace()
            is_erased = is_blank and end - x >= LONG_BLANK and self._is_erasable(look)
            yield Run(x, end - x, text, look, is_blank, is_erased)
            x = end


class Run(NamedTuple):
    """Cells of one look next to each other. is_blank: it is written in every look that blanks have in common with its
    own. is_erased: erasing it is shorter."""

    x: int
    width: int
    text: str
    look: Look
    is_blank: bool
    is_erased: bool


def by_look(runs: list[Run], look: Look) -> list[Run]:
    """The same, one look after the other, from `look` on. Blanks stay behind what is left of them."""
    groups: dict[Look, list[Run]] = {look: []}
    current = look
    for run in runs:
        if not run.is_blank or of_blank(current) != run.look:
            current = run.look
        groups.setdefault(current, []).append(run)
    return [run for group in groups.values() for run in group]


class Pen:
    """Writes one difference: knows where the cursor is and how it writes, and says neither twice.

    look: in which it writes. x, y: of the cursor. is_sure: whether that is certain, since terminals differ in how wide
    some characters are. parts: what it has written.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._counted = self._num_counted = 0  # bytes, of so many parts
        self.look = PLAIN
        self.x = self.y = -1
        self.is_sure = True

    @property
    def num_bytes(self) -> int:
        """How long it is so far."""
        self._counted += sum(len(part.encode()) for part in self.parts[self._num_counted :])
        self._num_counted = len(self.parts)
        return self._counted

    def write_shortest(self, y: int, orders: Sequence[Sequence[Run]]) -> None:
        """Write the runs of a row, in that of the orders which takes the fewest bytes."""
        best, fewest = None, 0  # characters: the text is the same in each
        for runs in orders:
            pen = Pen()
            pen.look, pen.x, pen.y, pen.is_sure = self.look, self.x, self.y, self.is_sure
            written_by = {x: at for at, run in enumerate(runs) for x in range(run.x, run.x + run.width)}
            for at, run in enumerate(runs):
                gap = run.x - pen.x if y == pen.y and pen.is_sure else 0
                if 0 < gap <= SHORT_MOVE and all(written_by.get(x, at) > at for x in range(pen.x, run.x)):
                    pen.write(" " * gap, gap, pen.look)
                pen.move(run.x, y)
                pen.write_run(run)
            length = sum(map(len, pen.parts))
            if best is None or length < fewest:
                best, fewest = pen, length
        if best is not None:
            self.parts += best.parts
            self.look, self.x, self.y, self.is_sure = best.look, best.x, best.y, best.is_sure

    def write_run(self, run: Run) -> None:
        """Where the cursor is."""
        if run.is_erased:
            self.erase(run.width, run.look)
        elif run.is_blank:
            self.write_blanks(run.width, run.look)
        else:
            self.write(run.text, run.width, run.look)

    def move(self, x: int, y: int) -> None:
        """The cursor is on that cell."""
        if y != self.y:
            self.parts.append(f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H")
        elif x != self.x:
            by = x - self.x
            is_near = self.is_sure and 0 < by < 100
            self.parts.append(f"\x1b[{x + 1}G" if not is_near else "\x1b[C" if by == 1 else f"\x1b[{by}C")
            self.is_sure |= not is_near
        self.is_sure |= y != self.y
        self.x, self.y = x, y

    def write(self, text: str, width: int, look: Look) -> None:
        """Text of so many cells."""
        self._take(look)
        self.parts.append(text)
        self.x += width
        self.is_sure = self.is_sure and WIDE.search(text) is None

    def write_blanks(self, width: int, look: Look) -> None:
        """look: that of a blank, which other looks may have as well."""
        self._take_for_blanks(look)
        self.parts.append(" " * width)
        self.x += width

    def erase(self, width: int, look: Look) -> None:
        """The same with fewer bytes."""
        self._take_for_blanks(look)
        self.parts.append(f"\x1b[{width}X\x1b[{width}C")
        self.x += width

    def erase_row(self, look: Look) -> None:
        """Blanks up to the end of the row."""
        self._take_for_blanks(look)
        self.parts.append("\x1b[K")

    def _take_for_blanks(self, look: Look) -> None:
        if of_blank(self.look) != look:
            self._take(look)

    def finished(self) -> str:
        """All of it; what comes next is written in the terminal's own look."""
        self._take(PLAIN)
        return "".join(self.parts)

    def _take(self, look: Look) -> None:
        if look != self.look:
            self.parts.append(change(self.look, look))
            self.look = look


def in_cells(text: str) -> list[str]:
    """Each character with those that combine with it; "" after one that takes two cells."""
    cells: list[str] = []
    for character in text:
        width = get_character_cell_size(character)
        if width:
            cells += [character, ""] if width == 2 else [character]
        elif cells:
            at = -2 if cells[-1] == "" else -1
            cells[at] += character
    return cells


def spans_of(columns: list[int]) -> list[tuple[int, int]]:
    """First column and one past the last of those that are near each other."""
    spans: list[tuple[int, int]] = []
    for x in columns:
        if spans and x - spans[-1][1] <= MERGED_GAP:
            spans[-1] = spans[-1][0], x + 1
        else:
            spans.append((x, x + 1))
    return spans


@lru_cache(8192)  # pictures in true color have as many
def styled(look: Look, parameters: str) -> Look:
    """The look after a sequence SGR with these parameters."""
    attributes, front, back = set(look.attributes), look.front, look.back
    codes = parameters.split(";")
    while codes:
        code = codes.pop(0)
        number = int(code or 0)
        if number == 0:
            attributes, front, back = set(), "", ""
        elif number in (38, 48):
            length = 2 if codes[0] == "5" else 4
            color = ";".join([code, *codes[:length]])
            del codes[:length]
            front, back = (color, back) if number == 38 else (front, color)
        elif number == 39 or 30 <= number <= 37 or 90 <= number <= 97:
            front = "" if number == 39 else code
        elif number == 49 or 40 <= number <= 47 or 100 <= number <= 107:
            back = "" if number == 49 else code
        elif code in ENDINGS:
            attributes.add(code)
        else:
            attributes -= {start for start, end in ENDINGS.items() if end == code}
    return Look(frozenset(attributes), front, back)


@lru_cache(8192)
def of_blank(look: Look) -> Look:
    """How a blank looks that is written with that look, whatever other looks it may have been written with."""
    shown = look.attributes & SHOWN_ON_BLANKS
    return look if shown else Look(back=look.back)


@lru_cache(8192)
def change(before: Look, after: Look) -> str:
    """The shortest sequence SGR from one look to the other; "" where they are the same."""
    if after == before:
        return ""
    if after == PLAIN:
        return "\x1b[m"
    ended = {ENDINGS[code] for code in before.attributes - after.attributes}
    begun = {code for code in after.attributes if code not in before.attributes or ENDINGS[code] in ended}
    codes = [*sorted(ended), *sorted(begun)]
    if after.front != before.front:
        codes.append(after.front or "39")
    if after.back != before.back:
        codes.append(after.back or "49")
    from_plain = ["", *sorted(after.attributes), *filter(None, (after.front, after.back))]
    return f"\x1b[{min(';'.join(codes), ';'.join(from_plain), key=len)}m"
