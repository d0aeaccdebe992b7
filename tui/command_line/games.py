"""`rl-tui play`: a person plays against the policy of a run."""

from __future__ import annotations

import tempfile
from argparse import SUPPRESS
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.config.diagnostics import must_be_one_of
from rl_tui.engine.errors import ConfigError, RlTuiError
from rl_tui.engine.process.imports import imports_that_stay
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.command_line.command_arguments import FOLDER_TEXT, RESULTS_DIR
from rl_tui.tui.command_line.flag_parser import FlagParser, parse
from rl_tui.tui.command_line.play import FAILED_SCREEN_CODE, POLL_SECONDS, await_first_turn
from rl_tui.tui.command_line.train_arguments import ScreenOptions, add_screen_flags, number, screen_options
from rl_tui.tui.terminal.streams import (
    HANGUP_CODE,
    redirect_output,
    why_no_screen,
    write_error,
    write_stderr,
    write_stdout,
)

if TYPE_CHECKING:
    from rl_tui.engine.running.playing.games import Games

DESCRIPTION = (
    "Play a game against the policy of a run, at the keyboard: tic-tac-toe, connect four, or any other environment"
    " whose agents have one choice among a few. You and the policy change seats after each game. The run may train"
    " meanwhile."
)


@dataclass(frozen=True, slots=True)
class GameArguments:
    """`rl-tui play`. run: RUN or RUN@STEP. opponent: None for the run itself. behavior, team, seat: None if they were
    not typed."""

    run: str
    results_dir: str
    opponent: str | None
    behavior: str | None
    team: int | None
    seat: int | None
    is_greedy: bool
    seed: int
    options: ScreenOptions


def parse_game(words: Sequence[str]) -> GameArguments:
    """Does not look whether the run exists."""
    parser = FlagParser("rl-tui play", description=DESCRIPTION, argument_default=SUPPRESS)
    run_text = "id or folder of the run, whose environment is played and whose policy gives hints; RUN@STEP or RUN@best"
    parser.add_argument("run", metavar="RUN[@STEP]", help=f"{run_text} for another checkpoint than the newest")
    parser.add_argument("--results-dir", default=RESULTS_DIR, metavar="DIR", help=FOLDER_TEXT)
    opponent_text = (
        "who plays all other agents: another RUN[@STEP], an ONNX file, or random (default: the run's policy)"
    )
    parser.add_argument("--opponent", default=None, metavar="WHO", help=opponent_text)
    behavior_text = "which behavior you play, if there are several (default: each in turn)"
    parser.add_argument("--behavior", default=None, metavar="NAME", help=behavior_text)
    seats = parser.add_mutually_exclusive_group()
    team_text = "play for this team in every game (default: change seats)"
    whole = number("a whole number from 0", int, 0, 2**31)
    seats.add_argument("--team", type=whole, default=None, metavar="N", help=team_text)
    seat_text = "play the agent that acts first (1), second (2), ... in every game"
    from_one = number("a whole number, at least 1", int, 1, 2**31)
    seats.add_argument("--seat", type=from_one, default=None, metavar="N", help=seat_text)
    ways = parser.add_mutually_exclusive_group()
    greedy_text = "the policy takes its likeliest actions, or their mean (default)"
    ways.add_argument("--deterministic", dest="is_greedy", action="store_true", default=True, help=greedy_text)
    sampled_text = "it samples its actions, as in training: games differ"
    ways.add_argument("--stochastic", dest="is_greedy", action="store_false", default=True, help=sampled_text)
    seed = number("a whole number from 0 to 4294967295", int, 0, 2**32 - 1)
    seed_text = "seed of the first game and of sampled actions (default 1)"
    parser.add_argument("--seed", type=seed, default=1, metavar="N", help=seed_text)
    add_screen_flags(parser, without=("readonly", "no_bell", "no_title"))
    typed = parse(parser, words)
    return GameArguments(
        run=typed.run,
        results_dir=typed.results_dir,
        opponent=typed.opponent,
        behavior=typed.behavior,
        team=typed.team,
        seat=typed.seat,
        is_greedy=typed.is_greedy,
        seed=typed.seed,
        options=screen_options(vars(typed)),
    )


def play_game(arguments: GameArguments) -> int:
    """A person has played, and stdout says how the games have ended; returns the exit code. Raises RlTuiError."""
    if reason := why_no_screen():
        raise ConfigError(f"rl-tui play: needs a screen, but {reason}")
    with imports_that_stay():
        from rl_tui.engine.running.threads import spawn
        from rl_tui.engine.session.bus import EventBus
        from rl_tui.tui.drawing.themes import THEMES
        from rl_tui.tui.terminal.signals import RunSignals
    if arguments.options.theme and arguments.options.theme not in THEMES:
        raise ConfigError(f"--theme: {must_be_one_of(list(THEMES), arguments.options.theme)}")
    games = _games(arguments)
    with RunSignals() as signals:
        thread = spawn("play", games.main, EventBus(), games.crashed)
        exit_code = await_first_turn(games, thread.join, signals)
        if exit_code is None and not games.has_ended:
            exit_code = _show(games, arguments)
        games.finish()
        while thread.is_alive():
            thread.join(POLL_SECONDS)
    if exit_code != HANGUP_CODE:
        _report(games)
    return exit_code or 0


def _games(arguments: GameArguments) -> Games:
    """What is played. Raises RlTuiError for a run that does not exist, and for what no person can play."""
    from rl_tui.engine.storage.archive import Archive
    from rl_tui.tui.keys.game_keys import MOST_CHOICES

    archive = Archive(Path(arguments.results_dir))
    with imports_that_stay():
        from rl_tui.engine.config.loading import load_to_act
        from rl_tui.engine.running.games.entrants import read_entrant, read_run
        from rl_tui.engine.running.playing.games import Games
        from rl_tui.engine.running.playing.seats import SeatRequest
        from rl_tui.engine.running.playing.table import GameRequest
        from rl_tui.engine.running.runtime import limit_threads
        from rl_tui.engine.storage.file_names import CONFIGURATION
    run = read_run(arguments.run, archive)
    opponent = run if arguments.opponent is None else read_entrant(arguments.opponent, archive)
    limit_threads()
    seat = SeatRequest(arguments.behavior, arguments.team, arguments.seat)
    request = GameRequest(run, opponent, seat, arguments.is_greedy, arguments.seed, MOST_CHOICES)
    return Games(request, load_to_act(run.path / CONFIGURATION))


def _show(games: Games, arguments: GameArguments) -> int:
    """The person has played; returns the exit code with which the screen was left."""
    with imports_that_stay():
        from rl_tui.tui.keys.game_keys import GAME_KEYS
        from rl_tui.tui.play_app import PlayApp
        from rl_tui.tui.screens.game import GameScreen
        from rl_tui.tui.state.preferences import Preferences
        from rl_tui.tui.state.user_folders import state_folder
    preferences, options = Preferences(state_folder()), arguments.options
    with tempfile.NamedTemporaryFile(prefix="rl-tui-", suffix=".log") as output:
        with redirect_output(Path(output.name)):
            app = PlayApp(
                games,
                partial(GameScreen, games, arguments.run),
                GAME_KEYS,
                nothing_to_save="SIGUSR1 was ignored: nothing of a game is saved",
                ascii=options.is_ascii,
                theme=options.theme or None,
                last_theme=preferences.theme(),
                save_theme=preferences.save_theme,
            )
            exit_code = app.show(mouse=options.has_mouse)
        printed = output.read().decode(errors="replace")
    if printed and exit_code != HANGUP_CODE:
        write_stderr(printed)
    return FAILED_SCREEN_CODE if exit_code is None else exit_code


def _report(games: Games) -> None:
    """stdout says how the games have ended. Raises why the play has ended, where it failed."""
    table = games.table
    if table is not None:
        for line in table.warnings:
            write_stderr(line)
        if table.returns:
            write_stdout(safe_text(table.summary) + "\n")
    if games.failure is not None:
        write_error(games.failure)
    if isinstance(games.error, RlTuiError):
        raise games.error
    if games.error is not None:
        raise games.error
