"""Every rank of a run that has several: its machine and device, how fast it is, how long it waits, which is slow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from rl_tui.engine.session.messages import RankStatus
from rl_tui.engine.session.ranks_view import RanksView
from rl_tui.engine.session.text import counted, safe_text
from rl_tui.tui.charts.percent import bar
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, cells, line
from rl_tui.tui.drawing.text import count, fit, fit_path, left, num_cells, right
from rl_tui.tui.panes.base import BEAT, Frame
from rl_tui.tui.panes.list import Entry, ListPane, same
from rl_tui.tui.panes.rank_words import even_words, short_hosts, slow_words

SIGN_WIDTH, NAME_WIDTH, SPEED_WIDTH, WAITING_WIDTH, PERCENT_WIDTH = 2, 9, 9, 9, 5
LEAST_HOST, LONGEST_HOST = 8, 40
LEAST_DEVICE, LONGEST_DEVICE = 6, 12  # "device"
LEAST_BAR, LONGEST_BAR = 7, 48
GAP, MARGIN = 2, 1  # before a column of words or a bar; at the end of a row that has a bar
ALL = "all ranks"
NONE = "one rank trains this run; --ranks starts several on this machine, torchrun and srun on others, too"


@dataclass(frozen=True, slots=True)
class Widths:
    """Of the columns that differ from terminal to terminal and from run to run; 0 for one that is left out."""

    host: int
    device: int
    bar: int

    @property
    def place(self) -> int:
        """Of host and device, with the blanks before each."""
        return sum(GAP + width for width in (self.host, self.device) if width)

    @property
    def waiting(self) -> int:
        """Of its bar and its percentage."""
        return GAP + self.bar + PERCENT_WIDTH if self.bar else WAITING_WIDTH


class RankList(ListPane):
    """Which one is slow, the totals, and a line for each, by number. seconds: they report every two seconds."""

    topic = "ranks"
    seconds = BEAT

    def inputs(self, frame: Frame) -> object:
        """How many there are, and which one is slow."""
        slow = frame.view.ranks.slow
        return super().inputs(frame), len(frame.view.ranks.statuses), slow and slow.status.rank

    def heading(self, frame: Frame) -> str:
        """How many there are, and on how many machines."""
        statuses = frame.view.ranks.statuses
        hosts = len({each.host for each in statuses})
        words = f"Ranks {frame.glyphs.dot} {len(statuses)}" if statuses else "Ranks"
        return f"{words} on {counted(hosts, 'machine')}" if hosts > 1 else words

    def header(self, frame: Frame, width: int) -> Line | None:
        """The columns of `_figures`."""
        ranks = frame.view.ranks
        if not ranks.statuses:
            return None
        widths = widths_in(width - self.cursor_width, ranks)
        words = " " * (self.cursor_width + SIGN_WIDTH + NAME_WIDTH)
        words += _place("host", "device", widths) + right("steps/s", SPEED_WIDTH) + right("waiting", widths.waiting)
        return line(Span(words, "dim"))

    def empty(self, frame: Frame) -> str:
        """What would give some."""
        return "available once training starts" if frame.view.state == "starting" else NONE

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """What is slow, the totals, each rank."""
        ranks = frame.view.ranks
        if not ranks.statuses:
            return []
        glyphs, slow = frame.glyphs, ranks.slow
        names = short_hosts(each.host for each in ranks.statuses)
        words = slow_words(ranks)
        total = f"{ALL}, {len(ranks.statuses)}  {'  '.join(_words(ranks.steps_per_second, ranks.waiting))}"
        entries = [
            Entry("slow", words or even_words(ranks), same(_slow_row(ranks, glyphs))),
            Entry("all", total, partial(_total_row, ranks, glyphs)),
        ]
        for each in ranks.statuses:
            is_slow = slow is not None and each.rank == slow.status.rank
            draw = partial(_row, each, names[each.host], is_slow, ranks, glyphs)
            entries.append(Entry(f"{each.rank}", _text(each, is_slow), draw))
        return entries


def widths_in(width: int, ranks: RanksView) -> Widths:
    """Of a row of so many cells: where room is short there is no bar, then the host is cut, then there is no device."""
    names = short_hosts(each.host for each in ranks.statuses)
    longest = max((num_cells(name) for name in names.values()), default=0)
    host = max(LEAST_HOST, min(LONGEST_HOST, longest)) if ranks.has_hosts else 0
    device = max((num_cells(safe_text(each.device)) for each in ranks.statuses), default=0)
    device = max(LEAST_DEVICE, min(LONGEST_DEVICE, device))
    room = width - SIGN_WIDTH - NAME_WIDTH - SPEED_WIDTH
    extra = room - Widths(host, device, LEAST_BAR).place - GAP - PERCENT_WIDTH - MARGIN
    if extra >= LEAST_BAR:
        return Widths(host, device, min(extra, LONGEST_BAR))
    missing = Widths(host, device, 0).place + WAITING_WIDTH - room
    cut = min(max(0, missing), max(0, host - LEAST_HOST))
    return Widths(host - cut, device if missing <= cut else 0, 0)


def _text(one: RankStatus, is_slow: bool) -> str:
    """All that is known of it, to be searched and copied."""
    where = f"rank {one.rank} on {safe_text(one.host)}" if one.host else f"rank {one.rank}"
    parts = where, safe_text(one.device), *_words(one.steps_per_second, one.waiting), "slow" if is_slow else ""
    return "  ".join(part for part in parts if part)


def _words(speed: float, waiting: float) -> list[str]:
    return [f"{count(speed)} steps/s", f"waiting {100 * waiting:.0f}%"]


def _slow_row(ranks: RanksView, glyphs: Glyphs) -> Line:
    words = slow_words(ranks)
    if not words:
        return line(" " * SIGN_WIDTH, Span(even_words(ranks), "dim"))
    return line(Span(left(glyphs.warning, SIGN_WIDTH), "warning"), Span(words, "warning"))


def _total_row(ranks: RanksView, glyphs: Glyphs, width: int) -> Line:
    """All of them as one."""
    widths = widths_in(width, ranks)
    name = Span(left(ALL, NAME_WIDTH + widths.place), "accent")
    return line(" " * SIGN_WIDTH, name, *_figures(ranks.steps_per_second, ranks.waiting, widths, glyphs))


def _row(one: RankStatus, host: str, is_slow: bool, ranks: RanksView, glyphs: Glyphs, width: int) -> Line:
    widths = widths_in(width, ranks)
    sign = Span(left(glyphs.warning if is_slow else "", SIGN_WIDTH), "warning")
    name = Span(left(f"rank {one.rank}", NAME_WIDTH, glyphs.ellipsis), "warning" if is_slow else "text")
    place = Span(_place(host, safe_text(one.device), widths, glyphs.ellipsis), "dim")
    return line(sign, name, place, *_figures(one.steps_per_second, one.waiting, widths, glyphs))


def _place(host: str, device: str, widths: Widths, ellipsis: str = "") -> str:
    """Both columns; of a name that is too long the end is kept, which is a number in most clusters."""
    words = " " * GAP + left(fit_path(host, widths.host, ellipsis), widths.host) if widths.host else ""
    return words + (" " * GAP + left(fit(device, widths.device, ellipsis), widths.device) if widths.device else "")


def _figures(speed: float, share: float, widths: Widths, glyphs: Glyphs) -> Line:
    waiting: Line = line(" " * GAP, *bar(share, widths.bar, glyphs, "accent")) if widths.bar else ()
    percent = right(f"{100 * share:.0f}%", widths.waiting - cells(waiting))
    return line(right(count(speed), SPEED_WIDTH), *waiting, percent)
