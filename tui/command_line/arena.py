"""`rl-tui arena`: saved policies play against each other, and are rated."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl_tui.engine.process.imports import imports_that_stay
from rl_tui.tui.command_line.command_arguments import FOLDER_TEXT, RESULTS_DIR, SEED_TEXT, add_environment_flags
from rl_tui.tui.command_line.flag_parser import FlagParser, parse
from rl_tui.tui.command_line.train_arguments import assignment, number
from rl_tui.tui.terminal.streams import write_stderr, write_stdout

if TYPE_CHECKING:
    from rl_tui.engine.running.arena.request import Progress
    from rl_tui.engine.running.evaluation.saved_policy import Way

PROGRESS_SECONDS = 1.0  # from one line to the next


@dataclass(frozen=True, slots=True)
class ArenaArguments:
    """`rl-tui arena`. behavior: None if it was not typed. overrides: settings of the environment by dotted path."""

    entrants: tuple[str, ...]
    results_dir: str
    games: int
    seed: int
    way: Way
    behavior: str | None
    with_random: bool
    overrides: Mapping[str, object]
    is_json: bool
    shows_progress: bool


def parse_arena(words: Sequence[str]) -> ArenaArguments:
    """Does not look whether the runs exist."""
    parser = FlagParser(
        "rl-tui arena",
        description="Let saved policies of one game play against each other, each pair in every seat, and rate them.",
    )
    entrants_text = "a run (@STEP: that checkpoint, or @best), or the path of a checkpoint or an ONNX file"
    parser.add_argument("entrants", nargs="+", metavar="RUN[@STEP]", help=entrants_text)
    parser.add_argument("--results-dir", default=RESULTS_DIR, metavar="DIR", help=FOLDER_TEXT)
    games = number("a whole number, at least 1", int, 1, 2**31)
    parser.add_argument("--games", type=games, default=100, metavar="N", help="games of each pair (default 100)")
    seed = number("a whole number from 0 to 4294967295", int, 0, 2**32 - 1)
    parser.add_argument("--seed", type=seed, default=1, metavar="N", help=SEED_TEXT)
    ways = parser.add_mutually_exclusive_group()
    greedy_text = "with the most likely actions, or their mean"
    ways.add_argument("--deterministic", dest="way", action="store_const", const="greedy", help=greedy_text)
    sampled_text = "with sampled actions, as in training (default)"
    ways.add_argument("--stochastic", dest="way", action="store_const", const="sampled", help=sampled_text)
    parser.set_defaults(way="sampled")
    behavior_text = "which one, if a run has several environments, or a team several behaviors"
    parser.add_argument("--behavior", metavar="NAME", help=behavior_text)
    random_text = "without random play, which has the rating 0 otherwise"
    parser.add_argument("--no-random", dest="with_random", action="store_false", help=random_text)
    parser.add_argument("--env", metavar="ENV", help="another environment than that of the first run")
    add_environment_flags(parser)
    copies = number("a whole number from 1 to 1024", int, 1, 1024)
    parser.add_argument("--num-envs", type=copies, metavar="N", help="copies of the environment (default: the run's)")
    parser.add_argument("--no-graphics", action="store_true", help="start Unity players without a window and drawing")
    set_text = "set a setting of the first run by its path, e.g. how games are decided; may be repeated"
    parser.add_argument("--set", action="append", type=assignment, default=[], metavar="PATH=VALUE", help=set_text)
    parser.add_argument("--json", dest="is_json", action="store_true", help="print one JSON object, with every field")
    progress_text = "print progress on stderr, about once a second"
    parser.add_argument("--progress", dest="shows_progress", action="store_true", help=progress_text)
    typed = vars(parse(parser, words))
    overrides = dict(_overrides(typed))
    return ArenaArguments(
        entrants=tuple(typed["entrants"]),
        overrides=overrides,
        **{name: typed[name] for name in _KEPT},
    )


_KEPT = ("results_dir", "games", "seed", "way", "behavior", "with_random", "is_json", "shows_progress")


def _overrides(typed: Mapping[str, Any]) -> list[tuple[str, object]]:
    """The settings that flags have set."""
    found = [(f"env_settings.{name}", typed[name]) for name in ("env", "env_kwargs", "num_envs") if typed[name]]
    if wrappers := typed["wrappers"]:
        found.append(("env_settings.wrappers", [{wrapper.name: dict(wrapper.arguments)} for wrapper in wrappers]))
    if typed["no_graphics"]:
        found.append(("engine_settings.no_graphics", True))
    return [*found, *typed["set"]]


def arena(words: Sequence[str]) -> int:
    """The table of ratings and games is on stdout. Raises RlTuiError."""
    arguments = parse_arena(words)
    with imports_that_stay():
        from rl_tui.engine.running.arena.arena import ignore_progress, play_arena
        from rl_tui.engine.running.arena.request import ArenaRequest
        from rl_tui.engine.running.runtime import limit_threads
        from rl_tui.tui.command_line.arena_text import json_text, paragraphs
    limit_threads()
    request = ArenaRequest(
        entrants=arguments.entrants,
        results_dir=Path(arguments.results_dir),
        games=arguments.games,
        seed=arguments.seed,
        way=arguments.way,
        behavior=arguments.behavior,
        with_random=arguments.with_random,
        overrides=arguments.overrides,
    )
    result = play_arena(
        request,
        ProgressLines().on_game if arguments.shows_progress else ignore_progress,
        lambda level, text: write_stderr(text) if level in ("warning", "error") else None,
    )
    write_stdout(json_text(request, result) if arguments.is_json else paragraphs(request, result))
    return 0


class ProgressLines:
    """The progress of an arena on stderr, about once a second."""

    def __init__(self) -> None:
        self._printed_at = time.monotonic()

    def on_game(self, progress: Progress) -> None:
        """A game has ended."""
        if time.monotonic() - self._printed_at >= PROGRESS_SECONDS:
            self._printed_at = time.monotonic()
            write_stderr(f"{progress.done} of {progress.total} games, {progress.own} against {progress.other}")
