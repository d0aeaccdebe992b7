"""What `rl-tui arena` prints: a table of ratings, one of each pair's games, and what to know about them; or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rl_tui.engine.running.arena.ratings import MEAN_RATING, PRIOR_WINS
from rl_tui.engine.running.arena.request import ArenaRequest, ArenaResult
from rl_tui.engine.running.arena.standings import Lead, Standing
from rl_tui.engine.running.games.rules import Record
from rl_tui.engine.session.text import counted, safe_text

_HEAD = ("#", "entrant", "step", "rating", "95 % interval", "games", "won", "drawn", "lost", "ahead of the next")
_LEFT = frozenset({"entrant", "ahead of the next"})


def paragraphs(request: ArenaRequest, result: ArenaResult) -> str:
    """Everything as text, best first."""
    teams = " and ".join(f"team {seat.team} ({seat.behavior})" for seat in result.seats)
    head = f"{result.env}, {teams}: {counted(request.games, 'game')} of each pair, {request.way}, seed {request.seed}"
    table = _aligned([_HEAD, *(_row(rank, one, result) for rank, one in enumerate(result.standings.table, 1))], _LEFT)
    pairs = _aligned(list(_pair_rows(result)), frozenset({"won/drawn/lost against"}))
    parts = [[head], table, pairs, list(_notes(result))]
    return safe_text("\n\n".join("\n".join(lines) for lines in parts), multiline=True) + "\n"


def _row(rank: int, standing: Standing, result: ArenaResult) -> Sequence[str]:
    record = standing.record
    steps = dict.fromkeys(source.step for source in result.sources[standing.place].values())
    return (
        str(rank),
        safe_text(standing.entrant),
        ", ".join("?" if step is None else str(step) for step in steps) or "-",
        f"{standing.rating:z.0f}",
        "fixed" if standing.entrant == result.standings.anchor else f"{standing.low:z.0f} to {standing.high:z.0f}",
        *(str(number) for number in (record.counted, record.won, record.drawn, record.lost)),
        _lead_text(standing.lead),
    )


def _lead_text(lead: Lead | None) -> str:
    return "" if lead is None else f"{lead.points:z.0f} ({lead.low:z.0f} to {lead.high:z.0f})"


def _pair_rows(result: ArenaResult) -> Iterator[Sequence[str]]:
    """The games of the one in the row, against each in a column; the columns have the numbers of the rows."""
    table = result.standings.table
    yield ("#", "won/drawn/lost against", *(str(rank) for rank in range(1, len(table) + 1)))
    for rank, one in enumerate(table, 1):
        records = [_record(result, one.place, other.place) for other in table]
        yield (str(rank), safe_text(one.entrant), *("-" if each is None else _of(each) for each in records))


def _of(record: Record) -> str:
    return f"{record.won}/{record.drawn}/{record.lost}"


def _record(result: ArenaResult, place: int, other: int) -> Record | None:
    """As the first of them has played; None for one with itself."""
    if place < other:
        return result.records.get((place, other), Record())
    return result.records.get((other, place), Record()).reversed if place > other else None


def _notes(result: ArenaResult) -> Iterator[str]:
    found = result.standings
    fixed = f"{found.anchor} has 0" if found.anchor is not None else f"the mean is {MEAN_RATING:z.0f}"
    yield f"Ratings are points of Elo, 400 for odds of ten to one; {fixed}. A draw counts half."
    if found.has_prior:
        added = f"{PRIOR_WINS:g} games won and lost by each in each pair were added"
        yield f"Results alone do not limit every rating, as where one wins or loses every game: {added}."
    if ignored := sum(record.ignored for record in result.records.values()):
        yield f"{counted(ignored, 'game')} ended by a limit of steps and do not count (self_play.interrupted_games)."
    for first, second in result.repeated:
        names = f"{result.entrants[first]} and {result.entrants[second]}"
        yield (
            f"{names}: all games in a seat went alike. Where both act greedily and nothing is drawn, more games say"
            " nothing more, and the intervals are too narrow: use --stochastic."
        )


def _aligned(rows: Sequence[Sequence[str]], left: frozenset[str]) -> list[str]:
    """The rows of a table, the first of which names its columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = zip(row, widths, rows[0], strict=True)
        lines.append("  ".join(f"{cell:{'<' if name in left else '>'}{width}}" for cell, width, name in cells).rstrip())
    return lines


def json_text(request: ArenaRequest, result: ArenaResult) -> str:
    """Everything as one JSON object on one line."""
    found = result.standings
    described = {
        "env": result.env,
        "teams": [{"team": seat.team, "behavior": seat.behavior} for seat in result.seats],
        "games_per_pair": request.games,
        "actions": request.way,
        "seed": request.seed,
        "anchor": found.anchor,
        "draw_odds": found.draw_odds,
        "has_prior": found.has_prior,
        "entrants": [_entrant_json(one, result) for one in found.table],
        "pairs": [
            {
                "first": result.entrants[first],
                "second": result.entrants[second],
                **_record_json(record),
                "is_repeated": (first, second) in result.repeated,
            }
            for (first, second), record in result.records.items()
        ],
    }
    return json.dumps(described) + "\n"


def _entrant_json(standing: Standing, result: ArenaResult) -> dict[str, object]:
    lead, sources = standing.lead, result.sources[standing.place]
    return {
        "name": standing.entrant,
        "sources": {name: {"path": str(source.path), "step": source.step} for name, source in sources.items()},
        "rating": standing.rating,
        "low": standing.low,
        "high": standing.high,
        **_record_json(standing.record),
        "lead": None if lead is None else {"points": lead.points, "low": lead.low, "high": lead.high},
    }


def _record_json(record: Record) -> dict[str, int]:
    return {"won": record.won, "drawn": record.drawn, "lost": record.lost, "ignored": record.ignored}
