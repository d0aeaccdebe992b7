"""`rl-tui demonstrations play`: a person plays an environment, and the episodes are in a .demo file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl_tui.engine.config.diagnostics import must_be_one_of
from rl_tui.engine.errors import ConfigError, OutputError, RlTuiError
from rl_tui.engine.process.imports import imports_that_stay
from rl_tui.engine.session.messages import Stop
from rl_tui.engine.session.text import counted, safe_text
from rl_tui.tui.command_line.train_arguments import ScreenOptions
from rl_tui.tui.terminal.streams import (
    HANGUP_CODE,
    redirect_output,
    why_no_screen,
    write_error,
    write_stderr,
    write_stdout,
)

if TYPE_CHECKING:
    from rl_tui.engine.config.wrappers import Wrapper
    from rl_tui.engine.running.playing.exchange import Exchange
    from rl_tui.engine.running.playing.turns import Turns
    from rl_tui.tui.terminal.signals import RunSignals

POLL_SECONDS = 0.05  # how often signals are handled while there is no screen
FAILED_SCREEN_CODE = 1
NOTHING_CODE = 1  # no episode was complete


@dataclass(frozen=True, slots=True)
class PlayArguments:
    """`rl-tui demonstrations play`. kwargs, wrappers: of the environment. episodes: None for no limit."""

    env: str
    file: str
    kwargs: Mapping[str, object]
    wrappers: tuple[Wrapper, ...]
    episodes: int | None
    seed: int
    is_forced: bool
    options: ScreenOptions


def play(arguments: PlayArguments, path: Path) -> int:
    """The complete episodes are at `path`, and stdout says how many; returns the exit code. Raises RlTuiError."""
    if reason := why_no_screen():
        raise ConfigError(f"rl-tui demonstrations play: needs a screen, but {reason}")
    with imports_that_stay():
        from rl_tui.engine.running.threads import spawn
        from rl_tui.engine.session.bus import EventBus
        from rl_tui.tui.drawing.themes import THEMES
        from rl_tui.tui.terminal.signals import RunSignals
    if arguments.options.theme and arguments.options.theme not in THEMES:
        raise ConfigError(f"--theme: {must_be_one_of(list(THEMES), arguments.options.theme)}")
    turns = _turns(arguments, path)
    with RunSignals() as signals:
        thread = spawn("play", turns.main, EventBus(), turns.crashed)
        exit_code = await_first_turn(turns, thread.join, signals)
        if exit_code is None and not turns.has_ended:
            exit_code = _show(turns, arguments)
        turns.finish()
        while thread.is_alive():
            thread.join(POLL_SECONDS)
    try:
        is_written = _report(turns, arguments, path)
    except OutputError:
        if exit_code != HANGUP_CODE:
            raise
        is_written = True  # or not: there is no terminal to say so
    return exit_code or (0 if is_written else NOTHING_CODE)


def _turns(arguments: PlayArguments, path: Path) -> Turns:
    """What is played. Raises RlTuiError for what no person can play."""
    from rl_tui.engine.config.environment_name import read_environment
    from rl_tui.engine.running.playing.playable import require_kind
    from rl_tui.engine.running.playing.turns import PlayRequest, Turns
    from rl_tui.tui.keys.play_keys import MOST_CHOICES

    try:
        env = str(read_environment(arguments.env))
    except ValueError as error:  # as pydantic's validators raise
        raise ConfigError(f"ENV: {error}") from error
    require_kind(env, has_wrappers=bool(arguments.wrappers))
    request = PlayRequest(
        env, arguments.kwargs, arguments.wrappers, path, arguments.episodes, arguments.seed, MOST_CHOICES
    )
    return Turns(request)


def await_first_turn(turns: Exchange[Any], wait: Callable[[float], None], signals: RunSignals) -> int | None:
    """Wait until there is something to show; returns the exit code if a signal comes before."""
    while not turns.is_begun and not turns.has_ended:
        wait(POLL_SECONDS)
        for command in signals.pop_commands():
            if isinstance(command, Stop):
                return command.exit_code
    return None


def _show(turns: Turns, arguments: PlayArguments) -> int:
    """The person has played; returns the exit code with which the screen was left."""
    with imports_that_stay():
        from rl_tui.tui.keys.play_keys import PLAY_KEYS
        from rl_tui.tui.play_app import PlayApp
        from rl_tui.tui.screens.play import PlayScreen
        from rl_tui.tui.state.preferences import Preferences
        from rl_tui.tui.state.user_folders import state_folder
    preferences, options = Preferences(state_folder()), arguments.options
    with tempfile.NamedTemporaryFile(prefix="rl-tui-", suffix=".log") as output:
        with redirect_output(Path(output.name)):
            app = PlayApp(
                turns,
                partial(PlayScreen, turns, arguments.env, arguments.file, arguments.episodes),
                PLAY_KEYS,
                nothing_to_save="SIGUSR1 was ignored: each complete episode is on disk already",
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


def _report(turns: Turns, arguments: PlayArguments, path: Path) -> bool:
    """stdout says what is in the file; returns whether there is one. Raises why the play has ended, where it failed."""
    if turns.num_episodes:
        text = f"{arguments.env}, seed {arguments.seed}: {counted(turns.num_episodes, 'episode')}, "
        text += f"{counted(turns.num_steps, 'step')}, mean return {turns.mean_return:.6g}"
        write_stdout(safe_text(text) + "\n")
        write_stdout(safe_text(f"recorded    {path}") + "\n")
    if turns.failure is not None:
        write_error(turns.failure)
    if isinstance(turns.error, RlTuiError):
        raise turns.error
    if turns.error is not None:
        raise turns.error
    if not turns.num_episodes:
        write_stderr(f"{arguments.file}: not written, because no episode was complete")
    return turns.num_episodes > 0
