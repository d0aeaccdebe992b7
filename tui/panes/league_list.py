"""The league table of every behavior that plays itself: its newest policy, and below it the snapshots it meets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.league_view import Games, LeagueView
from rl_tui.engine.session.messages import LeagueSnapshot
from rl_tui.engine.session.text import counted, safe_text
from rl_tui.tui.charts.percent import bar
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, cells, line
from rl_tui.tui.drawing.text import count, fit, left, num_cells, right
from rl_tui.tui.panes.base import BEAT, Frame
from rl_tui.tui.panes.league_words import (
    NO_LEAGUE,
    against_words,
    league_text,
    opponents_of,
    players,
    rating_text,
    team_forms,
)
from rl_tui.tui.panes.list import Entry, ListPane

SIGN_WIDTH, NAME_WIDTH, STEP_WIDTH, RATING_WIDTH, GAMES_WIDTH, RESULT_WIDTH = 2, 11, 7, 7, 7, 6
PERCENT_WIDTH, GAP = 5, 2
LEAST_BAR, LONGEST_BAR = 6, 40
NAMED = 18  # of the percentages from which their title has room beside that of the games
NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class Widths:
    """Of the columns that differ from terminal to terminal; 0 for one that is left out. result: of each of three."""

    result: int
    bar: int

    @property
    def wins(self) -> int:
        """Of the bar and its percentage."""
        return (GAP + self.bar if self.bar else 0) + PERCENT_WIDTH


class LeagueList(ListPane):
    """A line for each behavior, and below it one for its newest policy and one for each snapshot, newest first."""

    topic = "league"
    seconds = BEAT

    def inputs(self, frame: Frame) -> object:
        """Who plays, and who learns."""
        reports = [each.league.report for each in players(frame.view) if each.league is not None]
        known = [(each.behavior, each.learning_team, len(each.snapshots)) for each in reports]
        return super().inputs(frame), frame.selected, known, len(frame.view.behaviors)

    def heading(self, frame: Frame) -> str:
        """How many snapshots there are, and the sign of those that play."""
        leagues = [each.league for each in players(frame.view) if each.league is not None]
        number = sum(len(each.report.snapshots) for each in leagues)
        words = f"{counted(number, 'snapshot')} {frame.glyphs.dot} {frame.glyphs.running} plays now"
        return f"League {frame.glyphs.dot} {words}" if number else "League"

    def header(self, frame: Frame, width: int) -> Line | None:
        """The columns of `_row`."""
        if not players(frame.view):
            return None
        widths = widths_in(width - self.cursor_width)
        words = " " * (self.cursor_width + SIGN_WIDTH) + left("policy", NAME_WIDTH)
        words += right("step", STEP_WIDTH) + right("rating", RATING_WIDTH) + right("games", GAMES_WIDTH)
        words += "".join(right(title, widths.result) for title in ("won", "drawn", "lost") if widths.result)
        words += right("newest wins" if widths.wins >= NAMED else "wins", widths.wins)
        return line(Span(words, "dim"))

    def empty(self, frame: Frame) -> str:
        """What would give one."""
        return "available once training starts" if frame.view.state == "starting" else NO_LEAGUE

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """The tables, one behavior after the other; a line for one that does not play itself."""
        if not players(frame.view):
            return []
        return [entry for behavior in frame.view.behaviors.values() for entry in _entries(behavior, frame)]

    def behavior(self, frame: Frame) -> BehaviorView | None:
        """The one of the entry below the cursor, or the first one with a table where that has none."""
        entry, own = self.current(frame), players(frame.view)
        if entry is None or not own:
            return None
        found = [each for each in own if entry.key == each.name or entry.key.startswith(f"{each.name}/")]
        return max(found, key=lambda each: len(each.name), default=own[0])

    def _index(self, frame: Frame, shown: Sequence[Entry]) -> int:
        """The selected behavior, before the cursor was moved."""
        if self.topic in frame.state.cursors or frame.behavior is None:
            return super()._index(frame, shown)
        return next((at for at, entry in enumerate(shown) if entry.key == frame.behavior.name), 0)


def widths_in(width: int) -> Widths:
    """Of a row of so many cells: the results go where a percentage has no room beside them, the bar before them."""
    extra = width - SIGN_WIDTH - NAME_WIDTH - STEP_WIDTH - RATING_WIDTH - GAMES_WIDTH - PERCENT_WIDTH
    result = RESULT_WIDTH if extra >= 3 * RESULT_WIDTH else 0
    for_bar = extra - 3 * result - GAP - 1  # a blank at the end of the row
    return Widths(result, min(for_bar, LONGEST_BAR) if for_bar >= LEAST_BAR else 0)


def _entries(behavior: BehaviorView, frame: Frame) -> list[Entry]:
    name, league = behavior.name, behavior.league
    if not behavior.plays_itself:
        words = f"{safe_text(name)}  learns without self-play"
        return [Entry(name, words, partial(_plain_row, words, frame.glyphs))]
    text = league_text(behavior, frame.view, frame.time)
    entries = [Entry(name, text, partial(_title, behavior, frame))]
    if league is None:
        return entries
    games = league.games if league.is_symmetric else Games()
    own = Row(NEWEST, behavior.step, league.report.rating, games, games, False)
    entries.append(Entry(f"{name}/", _newest_text(behavior, league, games), partial(_row, own, frame.glyphs)))
    opponents = opponents_of(behavior, frame.view)
    for number, snapshot in reversed(list(enumerate(league.report.snapshots, start=1))):
        row = _snapshot_row(number, snapshot)
        words = _snapshot_text(number, snapshot, name, opponents)
        entries.append(Entry(f"{name}/{snapshot.step}", words, partial(_row, row, frame.glyphs)))
    return entries


@dataclass(frozen=True, slots=True)
class Row:
    """A policy of the table. games: its own, those of the newest against all snapshots of the window; of_newest: those
    of the policy that learns, against it."""

    name: str
    step: int
    rating: float
    games: Games
    of_newest: Games
    is_playing: bool


def _snapshot_row(number: int, snapshot: LeagueSnapshot) -> Row:
    games = Games(snapshot.won, snapshot.drawn, snapshot.lost)
    name = f"snapshot {number}"
    return Row(name, snapshot.step, snapshot.rating, games, games.of_opponent, snapshot.is_playing)


def _title(behavior: BehaviorView, frame: Frame, width: int) -> Line:
    """The behavior, which team learns and how many games were rated, in as many words as fit."""
    name, league = safe_text(behavior.name), behavior.league
    words = "no game has ended yet"
    tone: Tone = "dim"
    if league is not None:
        words = _team_words(behavior, league, frame, width - num_cells(name) - GAP)
        tone = "text" if league.report.is_learning else "wait"
    name = fit(name, max(NAME_WIDTH, width - GAP - num_cells(words)), frame.glyphs.ellipsis)
    return line(Span(name, "accent"), " " * GAP, Span(words, tone))


def _team_words(behavior: BehaviorView, league: LeagueView, frame: Frame, room: int) -> str:
    against, games = against_words(behavior, frame.view), f"{count(league.report.num_games)} games"
    forms = team_forms(league, frame.time)
    sentences = [", ".join(part for part in (against, form, games) if part) for form in forms]
    sentences += [", ".join(part for part in (against, form) if part) for form in forms] + list(forms)
    return next((words for words in sentences if num_cells(words) <= room), forms[-1])


def _plain_row(words: str, glyphs: Glyphs, width: int) -> Line:
    return line(Span(fit(words, width, glyphs.ellipsis), "dim"))


def _row(one: Row, glyphs: Glyphs, width: int) -> Line:
    widths = widths_in(width)
    is_newest = one.name == NEWEST
    sign = Span(left(glyphs.running if one.is_playing else "", SIGN_WIDTH), "good")
    name = Span(left(one.name, NAME_WIDTH, glyphs.ellipsis), "strong" if is_newest else "text")
    figures = right(count(one.step), STEP_WIDTH), right(rating_text(one.rating), RATING_WIDTH)
    games = one.games
    results = [games.won, games.drawn, games.lost] if widths.result else []
    spans = line(
        *(sign, name, *figures),
        Span(right(count(games.count) if games.count else "", GAMES_WIDTH), "dim"),
        "".join(right(count(each) if games.count else "", widths.result) for each in results),
    )
    return line(*spans, *_wins(one.of_newest.win_rate, widths, glyphs))


def _wins(rate: float | None, widths: Widths, glyphs: Glyphs) -> Line:
    """How often the policy that learns wins, as a bar and in percent; nothing before the first game."""
    if rate is None:
        return ()
    drawn: Line = (Span(" " * GAP), *bar(rate, widths.bar, glyphs, "accent")) if widths.bar else ()
    return line(*drawn, right(f"{100 * rate:.0f}%", widths.wins - cells(drawn)))


def _newest_text(behavior: BehaviorView, league: LeagueView, games: Games) -> str:
    report = league.report
    parts = [f"{NEWEST} policy of {safe_text(behavior.name)}", f"step {behavior.step:,}"]
    parts += [f"rating {report.rating:.1f}", counted(report.num_games, "rated game")]
    return "  ".join([*parts, *([f"against the window: {_results(games)}"] if games.count else [])])


def _snapshot_text(number: int, one: LeagueSnapshot, name: str, opponents: Sequence[str]) -> str:
    """All that is known of it, to be searched and copied."""
    games = Games(one.won, one.drawn, one.lost)
    whose = "the newest" if opponents == [name] else f"the newest {' or '.join(map(safe_text, opponents))}".rstrip()
    parts = [f"snapshot {number} of {safe_text(name)}", f"step {one.step:,}", f"rating {one.rating:.1f}"]
    parts.append(f"against {whose}: {_results(games)}" if games.count else "no game yet")
    parts += [f"{whose} wins {100 * games.of_opponent.win_rate:.0f}%"] if games.of_opponent.win_rate is not None else []
    return "  ".join([*parts, *(["plays now"] if one.is_playing else [])])


def _results(games: Games) -> str:
    return f"{counted(games.count, 'game')}, {games.won:,} won, {games.drawn:,} drawn, {games.lost:,} lost"
