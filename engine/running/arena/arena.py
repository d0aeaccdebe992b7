"""Plays every pair of entrants against each other, and rates them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.running.arena.cast import Cast
from rl_tui.engine.running.arena.request import ArenaRequest, ArenaResult, Progress
from rl_tui.engine.running.arena.rounds import Round, rounds_of
from rl_tui.engine.running.arena.standings import Pair, standings
from rl_tui.engine.running.arena.venue import Venue, find_venue
from rl_tui.engine.running.environment_reports import lines_of_reports
from rl_tui.engine.running.environments import make_pool_apart, quota_of, settings_of
from rl_tui.engine.running.evaluation.saved_policy import ignore_note
from rl_tui.engine.running.games.entrants import read_entrants
from rl_tui.engine.running.games.playing import play_games
from rl_tui.engine.running.games.rules import PlayedGame, Record, Rules
from rl_tui.engine.running.games.seats import seats_of
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.lessons.restoring import make_lessons
from rl_tui.engine.running.run_setup import derived_seed
from rl_tui.engine.sampling.environments.base import NoteLevel
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.worker_process import start_seconds
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.storage.archive import Archive

REPEATED_GAMES = 5  # all alike, from which on that is no coincidence


def ignore_progress(progress: Progress) -> None:
    """The default of `play_arena` for `on_game`."""


def play_arena(
    request: ArenaRequest,
    on_game: Callable[[Progress], None] = ignore_progress,
    on_note: Callable[[NoteLevel, str], None] = ignore_note,
) -> ArenaResult:
    """Let every pair play. on_game: called as games end. on_note: gets lines for the user. Raises RlTuiError."""
    entrants = read_entrants(request.entrants, Archive(request.results_dir), with_random=request.with_random)
    names = tuple(entrant.name for entrant in entrants)
    venue = find_venue(entrants, request.overrides, request.behavior, request.seed)
    with ExitStack() as leaving:
        pool = _pool(venue, request.games)
        leaving.callback(pool.close)
        lessons = _start(pool, venue, request.seed)
        seats = tuple(seats_of(pool.specs, request.behavior))
        cast = Cast(entrants, request.way, request.seed, lambda: list(pool.specs), on_note)
        cast.read(pool.specs.values())
        arena = _Arena(pool, venue, lessons, cast, request.seed, on_note)
        arena.play(list(rounds_of(len(entrants), seats, request.games)), names, on_game)
    table = standings(names, arena.records)
    return ArenaResult(venue.source.env, seats, names, cast.sources, arena.records, table, arena.repeated)


def _pool(venue: Venue, num_games: int) -> EnvironmentPool:
    settings = venue.config.env_settings
    num_copies = min(settings.num_envs, num_games)
    return make_pool_apart(venue.source, venue.source.make, num_copies, settings.timeout_wait, quota_of(settings))


def _start(pool: EnvironmentPool, venue: Venue, seed: int) -> Lessons:
    """The instances are there; returns the lessons that the run is at, whose values they have."""
    lessons = make_lessons(venue.config, seed, EventBus(), venue.folder)
    if lessons.has_any:
        pool.set_parameters(lessons.values)
    timeout = venue.config.env_settings.timeout_wait
    SIGNS.call_seconds = start_seconds(timeout)
    pool.start()
    SIGNS.call_seconds = timeout
    return lessons


class _Arena:
    """Plays rounds in one pool, and adds up the results of each pair."""

    def __init__(
        self,
        pool: EnvironmentPool,
        venue: Venue,
        lessons: Lessons,
        cast: Cast,
        seed: int,
        on_note: Callable[[NoteLevel, str], None],
    ) -> None:
        self.records: dict[Pair, Record] = {}
        self._pool, self._venue, self._lessons, self._cast = pool, venue, lessons, cast
        self._seed, self._on_note = seed, on_note
        self._is_repeated: dict[Pair, bool] = {}

    @property
    def repeated(self) -> tuple[Pair, ...]:
        """Pairs whose games in each seat were all alike."""
        return tuple(pair for pair, is_repeated in self._is_repeated.items() if is_repeated)

    def play(self, rounds: Sequence[Round], names: Sequence[str], on_game: Callable[[Progress], None]) -> None:
        """Play all of these."""
        total, done = sum(each.num_games for each in rounds), 0
        for number, each in enumerate(rounds):

            def on_ended(count: int, each: Round = each, before: int = done) -> None:
                on_game(Progress(before + count, total, names[each.own], names[each.other]))

            self._count(each, self._play(number, each, on_ended))
            done += each.num_games

    def _play(self, number: int, one: Round, on_ended: Callable[[int], None]) -> list[PlayedGame]:
        """number: of the round, by which it has a seed of its own."""
        if self._lessons.has_any:
            self._pool.set_parameters(self._lessons.values, restart=True)
        games = play_games(
            self._pool,
            one.seat,
            self._cast.policy_for(one.own),
            self._cast.policy_for(one.other),
            one.num_games,
            derived_seed(self._seed, number),
            self._pass_on_notes,
            on_ended,
        )
        assert games is not None, "it is never interrupted"
        return games

    def _count(self, one: Round, games: Sequence[PlayedGame]) -> None:
        settings = settings_of(self._venue.config, one.seat.behavior)
        record, pair = Rules.of(settings.self_play).record(games), (one.own, one.other)
        if one.own > one.other:
            record, pair = record.reversed, (one.other, one.own)
        self.records[pair] = self.records.get(pair, Record()) + record
        is_repeated = len(games) >= REPEATED_GAMES and len(set(games)) == 1
        self._is_repeated[pair] = self._is_repeated.get(pair, True) and is_repeated

    def _pass_on_notes(self) -> bool:
        for level, text in lines_of_reports(self._pool):
            self._on_note(level, text)
        return True
