"""Ranks in words: the names of their machines, and which one is slow."""

from __future__ import annotations

from collections.abc import Iterable

from rl_tui.engine.session.ranks_view import SLOW, RanksView
from rl_tui.engine.session.text import counted, safe_text
from rl_tui.tui.drawing.lines import Line, Span, cells, line, wrap
from rl_tui.tui.panes.base import Frame


def short_hosts(hosts: Iterable[str]) -> dict[str, str]:
    """A name for each host: without its domain, where that distinguishes them and is no part of an address."""
    names = dict.fromkeys(hosts)
    short = [name.partition(".")[0] for name in names]
    is_distinct = len(set(short)) == len(names) and not any(name.isdecimal() or not name for name in short)
    return {name: safe_text(one) for name, one in zip(names, short if is_distinct else names, strict=True)}


def even_words(ranks: RanksView) -> str:
    """That no rank is slow, and how long all wait where that is long: then each waits for what all do together."""
    if ranks.slowest is None:
        return "measuring for a few seconds"
    return "no rank is slow" + (f": all wait alike, {ranks.waiting:.0%} of the time" if ranks.waiting >= SLOW else "")


def slow_words(ranks: RanksView) -> str:
    """Which rank is slow, by the short name of its machine; "" for none."""
    if (slow := ranks.slow) is None:
        return ""
    names = short_hosts(each.host for each in ranks.statuses)
    return slow.words(names[slow.status.host] if ranks.has_hosts else "")


def slow_lines(frame: Frame, width: int) -> list[Line]:
    """The same in at most two lines with the key to all ranks; none once the run is over."""
    words = "" if frame.view.is_over else slow_words(frame.view.ranks)
    if not words:
        return []
    signs = f" {frame.glyphs.warning} ", "   "
    rows = [line(Span(sign + row, "warning")) for sign, row in zip(signs, wrap(words, width - 4, 2), strict=False)]
    key = f"  {frame.keymap.of_id('ranks').shown.partition(', ')[0]} shows each"
    return [*rows[:-1], line(*rows[-1], Span(key if cells(rows[-1]) + len(key) < width else "", "faint"))]


def numbers_of(ranks: tuple[int, ...]) -> str:
    """Those of a machine: "rank 2", "ranks 0-7", "3 ranks" where they are not in a row."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    in_row = ranks == tuple(range(ranks[0], ranks[0] + len(ranks))) if ranks else False
    return f"ranks {ranks[0]}-{ranks[-1]}" if in_row else counted(len(ranks), "rank")
