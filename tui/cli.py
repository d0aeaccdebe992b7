"""rl-tui: run one command line, and end with the documented exit code.

Textual, torch and the configuration's libraries are imported inside the branch that needs them, so that --help and
--version answer at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.config.diagnostics import closest, visible
from rl_tui.engine.errors import ConfigError, RlTuiError
from rl_tui.engine.process.hangups import Hangups
from rl_tui.engine.process.imports import imports_that_stay
from rl_tui.engine.process.leaving import end_process
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.tui.command_line.command_arguments import RESULTS_DIR
from rl_tui.tui.command_line.commands import COMMANDS, PRINTED_LINES, calls_environments
from rl_tui.tui.command_line.configuration import (
    LONGEST_NAME,
    Choice,
    choose_settings,
    find_config,
    read_configuration,
    runnable_configuration,
)
from rl_tui.tui.command_line.ranks import ranks_request
from rl_tui.tui.command_line.train_arguments import TrainArguments, parse_train_arguments
from rl_tui.tui.command_line.watcher import LOST, SAVED_BY_RANK_0, is_watchable, play_watched, run_watched
from rl_tui.tui.terminal.captured_output import CapturedOutput
from rl_tui.tui.terminal.streams import ensure_streams, silence, why_no_screen, write_error, write_stderr, write_stdout

if TYPE_CHECKING:
    from rl_tui.engine.config.run import RunConfig
    from rl_tui.engine.running.ranks.requested import RanksRequest

FIRST_WORDS = """\
rl-tui trains game and robot agents, with a live screen in this terminal.

  rl-tui demo             try the screen on a recorded run, without training
  rl-tui presets          list configurations that are ready to train
  rl-tui ppo/CartPole     train one of them
  rl-tui CONFIG           train your own configuration, e.g. my.yaml
  rl-tui --env NAME       train without a file, e.g. in gymnasium:Acrobot-v1
  rl-tui --env PATH       train in a Unity player, by PPO with its defaults
  rl-tui --help           all commands and flags"""
SIGPIPE_EXIT_CODE = 141  # what a shell reports for a program whose reader is gone


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. --help, --version and a wrong flag leave through SystemExit.

    Without `argv`, the command line is that of this process, which may end here. What trains or plays is then in a
    child, where this returns, too.
    """
    ensure_streams()
    if argv is not None:
        return _exit_code_of(list(argv), is_program=False)
    exit_code = 1
    try:
        exit_code = _exit_code_of(sys.argv[1:], is_program=True)
    finally:
        SIGNS.enter("over", exit_code)
    end_process(exit_code)
    return exit_code


def _exit_code_of(words: list[str], *, is_program: bool) -> int:
    try:
        try:
            return run_command(words, is_program=is_program)
        finally:
            write_stdout("")  # also what argparse printed, which the interpreter would otherwise write at its exit
    except RlTuiError as error:
        write_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        silence(sys.stdout)
        return SIGPIPE_EXIT_CODE
    except OSError as error:
        if error.filename is None:
            raise  # not about a path that the user named
        write_stderr(f"{visible(os.fsdecode(error.filename), limit=LONGEST_NAME)}: {error.strerror or error}")
        return ConfigError.exit_code


def run_command(words: Sequence[str], *, is_program: bool = False) -> int:
    """Run the command that the first word names; any other word names a configuration. Raises RlTuiError.

    is_program: this process does nothing else, and what calls environments may happen in a child of it.
    """
    if not words:
        write_stderr(FIRST_WORDS)
        return ConfigError.exit_code
    first, *rest = words
    if first in COMMANDS:
        if is_program and calls_environments(words) and is_watchable():
            return play_watched(lambda: COMMANDS[first](rest))
        return COMMANDS[first](rest)
    if first[:1] != "-" and (closest(first, COMMANDS) or (rest and rest[0][:1] != "-")):
        find_config(first)  # a misspelled command, before its arguments are refused as a training's
    arguments = parse_train_arguments(words)
    request = ranks_request(arguments)
    is_started_here = request is not None and request.world is not None and request.world.is_started_here
    is_watched = is_program and not arguments.is_dry_run and not is_started_here and is_watchable()

    def hangups() -> Hangups:  # of the terminal of the process that asks
        return Hangups(outlives=not arguments.stops_on_hangup)

    if arguments.is_detached and not arguments.is_dry_run and not is_started_here:
        if not is_watched:
            raise ConfigError("--detach: not possible within another program, a debugger or a profiler")
        from rl_tui.tui.command_line.detach import start_detached

        return start_detached(lambda start: run_watched(lambda: train(arguments, start.report), hangups(), start.close))
    lost = LOST if request is None or request.leads else SAVED_BY_RANK_0
    return run_watched(lambda: train(arguments), hangups(), lost=lost) if is_watched else train(arguments)


def train(arguments: TrainArguments, on_training: Callable[[str], object] | None = None) -> int:
    """Run a training until its end; returns its exit code. Raises RlTuiError if it cannot start. on_training: called
    with its folder once it trains; what it prints from then on is not read."""
    for warning in arguments.warnings:
        write_stderr(warning)
    choice = choose_settings(arguments)  # of a file, before anything heavy is imported
    if choice.note:
        write_stderr(choice.note)
    if arguments.is_dry_run:
        with CapturedOutput(PRINTED_LINES):
            config = read_configuration(arguments)
        return print_effective(config, arguments.num_ranks)
    request = ranks_request(arguments)
    reason = why_headless(arguments, request)
    if reason is None:
        require_folder(arguments, choice)  # else a screen would open and close at once
        with imports_that_stay():
            from rl_tui.tui.command_line.train_on_screen import train_on_screen
        return train_on_screen(arguments)
    with CapturedOutput(PRINTED_LINES):
        config = runnable_configuration(arguments)
    if request is not None and not request.leads:
        with imports_that_stay():
            from rl_tui.tui.command_line.train_as_rank import train_as_rank
        return train_as_rank(config, arguments, request)
    if reason:
        write_stderr(f"no screen: {reason}")
    with imports_that_stay():
        from rl_tui.tui.command_line.train_headless import train_headless
    return train_headless(config, arguments, on_training)


def require_folder(arguments: TrainArguments, choice: Choice) -> None:
    """The run can use its folder, if the flags alone determine which it is. Raises RlTuiError otherwise.

    The configuration is not read for this: that takes half as long as everything else before the first picture.
    """
    from rl_tui.engine.storage.run_folder import RunFolder

    path, flags = choice.path, arguments.overrides
    if path is not None and (not path.is_file() or b"checkpoint_settings" in path.read_bytes()):
        return
    if "checkpoint_settings" in flags:
        return
    results_dir = flags.get("checkpoint_settings.results_dir", RESULTS_DIR)
    run_id = flags.get("checkpoint_settings.run_id")
    if not isinstance(results_dir, str) or not isinstance(run_id, str | None):
        return
    resume, force, resume_or_start = (
        flags.get(f"checkpoint_settings.{name}") is True for name in ("resume", "force", "resume_or_start")
    )
    results, or_start = Path(results_dir).absolute(), resume_or_start and not resume
    folder = RunFolder(results, run_id) if run_id else RunFolder.of_file(results, choice.named_after, or_start=or_start)
    with suppress(OSError):  # the run will report it
        folder.require_startable(resume, force, or_start=or_start)


def print_effective(config: RunConfig, num_ranks: int = 1) -> int:
    """The effective configuration is on stdout, and on stderr why it would not start, on so many ranks, and which
    settings are unused.

    Returns the exit code: 2 for a run that would not start, 0 for one that would.
    """
    from rl_tui.engine.config.loading import effective_yaml
    from rl_tui.engine.config.support import editor_note, few_updates_note, find_unused, list_warnings
    from rl_tui.engine.running.preflight import refusals, start_note
    from rl_tui.tui.terminal.captured_output import CapturedOutput

    write_stdout(effective_yaml(config))
    with CapturedOutput():  # what environments print is no part of the configuration
        refused = refusals(config, num_ranks)
    for note in (*refused, *find_unused(config), *list_warnings(config)):
        write_stderr(note)
    for line in () if refused else filter(None, (editor_note(config), few_updates_note(config), start_note(config))):
        write_stderr(line)
    return ConfigError.exit_code if refused else 0


def why_headless(arguments: TrainArguments, request: RanksRequest | None = None) -> str | None:
    """Why this run has no screen: None when it has one, "" with --no-ui."""
    if arguments.is_headless:
        return ""
    if request is not None and request.world is not None:
        return f"the terminal is that of all ranks, which {request.world.launcher} has started; `rl-tui attach` has one"
    return why_no_screen() or None
