"""What an arena is asked for, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rl_tui.engine.running.arena.standings import Pair, Standings
from rl_tui.engine.running.evaluation.saved_policy import Way
from rl_tui.engine.running.games.rules import Record
from rl_tui.engine.running.games.seats import Seat


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaRequest:
    """Who plays, and how.

    entrants: words that name them. games: of each pair. behavior: whose environment it is, where a run has several, and
    whose episodes are a team's games, where that has several behaviors. overrides: settings of the first run by
    dotted path.
    """

    entrants: Sequence[str]
    results_dir: Path
    games: int = 100
    seed: int = 1
    way: Way = "sampled"
    behavior: str | None = None
    with_random: bool = True
    overrides: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Progress:
    """done: games that have ended, of all. own, other: who plays now."""

    done: int
    total: int
    own: str
    other: str


@dataclass(frozen=True, slots=True)
class Source:
    """What an entrant acts with for one behavior. step: of its training, None where the file does not say."""

    path: Path
    step: int | None


@dataclass(frozen=True, slots=True)
class ArenaResult:
    """What was played.

    entrants: their names, in the order in which they were typed. sources: of each of them, by behavior; empty for
    random play. records: of each pair, by positions in `entrants`, as the first one has played. repeated: pairs that
    have played the same game again and again.
    """

    env: str
    seats: tuple[Seat, ...]
    entrants: tuple[str, ...]
    sources: tuple[Mapping[str, Source], ...]
    records: Mapping[Pair, Record]
    standings: Standings
    repeated: tuple[Pair, ...]
