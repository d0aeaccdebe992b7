"""rl-tui: understand the command line, run with or without a screen, end with the promised exit code.

Textual, torch and the configuration's libraries are imported inside the branch that needs them, so that --help and
--version answer at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import ConfigError, NotSupportedError, RlTuiError
from engine.mistakes import visible
from engine.session.text import safe_text
from tui.arguments import Arguments, parse_arguments
from tui.command_lines import RESULTS_DIR
from tui.commands import COMMANDS
from tui.terminal import answer, complain, complain_of, give_up, open_streams, why_no_screen

if TYPE_CHECKING:
    from engine.config import RunConfig
    from engine.running.archive import Archive
    from engine.running.launch import Launch
    from engine.running.writers.console import ConsoleWriter
    from engine.session.bus import Subscription
    from engine.session.messages import Envelope
    from engine.session.view import RunView
    from tui.output import OwnOutput
    from tui.showing import Shown
    from tui.signals import StopSignals

POLL_SECONDS = 0.25  # how soon a signal is acted upon, and lines are printed: sooner would hold up learning
LONGEST_PATH = 400  # in a message
SIGPIPE_EXIT_CODE = 141  # what a shell shows for a program whose reader went away


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. --help, --version and a wrong flag leave through SystemExit."""
    open_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            return run_command(words)
        finally:
            answer("")  # what argparse printed, too, which the interpreter would else write at its exit
    except RlTuiError as error:
        complain_of(error)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        give_up(sys.stdout)
        return SIGPIPE_EXIT_CODE
    except OSError as error:
        if error.filename is None:
            raise  # not about a path that anybody named
        complain(f"{visible(os.fsdecode(error.filename), limit=LONGEST_PATH)}: {error.strerror or error}")
        return ConfigError.exit_code


def run_command(words: Sequence[str]) -> int:
    """Do what the first word names; anything that is no command names a configuration. Raises RlTuiError."""
    command = COMMANDS.get(words[0]) if words else None
    return train(parse_arguments(words)) if command is None else command(words[1:])


def train(arguments: Arguments) -> int:
    """The run that the command line describes is over; returns its exit code. Raises RlTuiError before it begins."""
    for warning in arguments.warnings:
        complain(warning)
    if arguments.is_dry_run:
        return print_effective(configuration(arguments))
    reason = why_headless(arguments)
    if reason is None:
        return run_on_screen(arguments)
    config = runnable(arguments)
    if reason:
        complain(f"no screen: {reason}")
    return run_headless(config, arguments)


def configuration(arguments: Arguments) -> RunConfig:
    """What the file and the flags say together. Raises ConfigError with every mistake."""
    from engine.config import load_config

    config = load_config(find_config(arguments.config), arguments.overrides)
    return without_chance(config) if arguments.is_deterministic else config


def runnable(arguments: Arguments) -> RunConfig:
    """The same, and all of it can be run. Raises NotSupportedError otherwise."""
    from engine.config import find_unsupported

    config = configuration(arguments)
    unsupported = find_unsupported(config)
    if unsupported:
        raise NotSupportedError("\n".join(unsupported))
    return config


def find_config(name: str) -> Path:
    """The file of that name, or else the preset of that name. Raises ConfigError when there is neither."""
    path = Path(name)
    if path.exists():
        return path
    from engine.presets import preset_hint, preset_names, preset_path

    if name in preset_names():
        return preset_path(name)
    raise ConfigError(f"{name}: no such file, and no preset of that name.{preset_hint(name)}")


def without_chance(config: RunConfig) -> RunConfig:
    """The same settings with every listed behavior acting deterministically, as ML-Agents' flag has it."""
    behaviors = {
        name: behavior.model_copy(
            update={"network_settings": behavior.network_settings.model_copy(update={"deterministic": True})}
        )
        for name, behavior in config.behaviors.items()
    }
    return config.model_copy(update={"behaviors": behaviors})


def print_effective(config: RunConfig) -> int:
    """The effective configuration is on stdout, and on stderr why it would not start and what of it has no effect.

    Returns the exit code: 2 for a run that would not start, 0 for one that would and where no environment is named.
    """
    from engine.config import effective_yaml, list_warnings, without_effect
    from engine.running.preflight import refusals

    answer(effective_yaml(config))
    refused = refusals(config)
    for note in (*refused, *without_effect(config), *list_warnings(config)):
        complain(note)
    names_environment = config.env_settings.env is not None or config.env_settings.env_path is not None
    return ConfigError.exit_code if refused and names_environment else 0


def why_headless(arguments: Arguments) -> str | None:
    """Why this run has no screen: None when it has one, an empty text when that was asked for."""
    return "" if arguments.is_headless else why_no_screen() or None


def run_headless(config: RunConfig, arguments: Arguments) -> int:
    """Train to the end with one line per summary and event on stdout; returns the run's exit code."""
    from engine.running.launch import Launch
    from engine.running.writers.console import ConsoleWriter
    from engine.session.bus import EventBus
    from tui.output import OwnOutput
    from tui.signals import StopSignals

    launch = Launch(EventBus())
    mail = launch.subscribe()
    with OwnOutput() as output, StopSignals() as signals:
        writer = ConsoleWriter(output.stdout, arguments.log_format, debug=config.debug)
        launch.start(config)
        follow(launch, mail, writer, signals, output)
    return ending(launch)


def follow(launch: Launch, mail: Subscription, writer: ConsoleWriter, signals: StopSignals, output: OwnOutput) -> None:
    """The run is over, and every event from now on had its line."""
    from engine.session.messages import RunStarted

    is_over = has_lost_stdout = False
    while not is_over:
        is_over = launch.wait(POLL_SECONDS)
        for stop in signals.take():
            launch.send(stop)
        for envelope in mail.take():
            writer.write(envelope)
            if isinstance(envelope.event, RunStarted):
                output.keep_in(output_log(envelope.event.path))
        if writer.failed is not None and not has_lost_stdout:
            has_lost_stdout = True
            text = f"stdout takes no more ({writer.failed}): training goes on, events.jsonl has every line"
            complain(text, output.stderr)
            give_up(output.stdout)


def ending(launch: Launch) -> int:
    """Why the run failed is on stderr, if it did; returns its exit code."""
    if launch.error is not None:
        complain_of(launch.error)
    return launch.exit_code


def run_on_screen(arguments: Arguments) -> int:
    """Train while the screen shows it; returns the run's exit code once the screen was left and the run is over.

    The configuration is read when the first picture stands, which a fifth of a second would delay by half.
    """
    from engine.running.archive import Archive
    from engine.running.launch import Launch
    from engine.running.writers.console import ConsoleWriter
    from engine.session.bus import EventBus
    from engine.session.view import RunView
    from tui.output import OwnOutput
    from tui.showing import Subject, show
    from tui.signals import StopSignals

    launch, view, runs = Launch(EventBus()), RunView(), Archive(Path(RESULTS_DIR).absolute())
    is_debug = False

    def start() -> Iterator[Envelope] | None:
        nonlocal is_debug
        config = runnable(arguments)
        is_debug = config.debug
        past = past_events(config, runs)
        expect(view, config)
        launch.start(config)
        return past

    mail = launch.subscribe()
    subject = Subject(
        launch, start, arguments.config, view, mail, runs=runs, give_way=launch.give_way, outlives_screen=True
    )
    with StopSignals() as signals:
        shown = show(subject, arguments.look, signals)
        goes_on = not shown.was_left and not launch.wait(0)
        keep_output(shown, view, goes_on=goes_on)
        if goes_on:
            with OwnOutput() as output:
                if view.run is not None:
                    output.keep_in(output_log(view.run.path))
                has_trained = view.state != "starting"
                writer = ConsoleWriter(output.stdout, arguments.log_format, debug=is_debug, has_trained=has_trained)
                follow(launch, mail, writer, signals, output)
    if goes_on:
        return ending(launch)
    if shown.departure != "hangup":
        say_goodbye(launch, view)
    return launch.exit_code


def past_events(config: RunConfig, runs: Archive) -> Iterator[Envelope] | None:
    """What a run that is resumed has told before; None where nothing is resumed or the policies only play.

    `runs` looks into the results folder of `config` from now on.
    """
    from engine.running.naming import newest_run_id, run_name

    settings = config.checkpoint_settings
    runs.results_dir = Path(settings.results_dir).absolute()
    if not settings.resume or settings.inference:
        return None
    try:
        return runs.events(settings.run_id or newest_run_id(runs.results_dir, run_name(config.source.file)))
    except OSError:
        return None  # the run will say so


def expect(view: RunView, config: RunConfig) -> None:
    """What the screen may show before the engine has told anything is in the view."""
    for name, behavior in config.behaviors.items():
        pane = view.behavior(name)
        pane.algorithm, pane.max_steps = behavior.trainer_type, behavior.max_steps
        env = config.env_settings.env
        pane.environment = (env.get(name, "") if isinstance(env, dict) else env) or ""


def keep_output(shown: Shown, view: RunView, *, goes_on: bool) -> None:
    """What was printed while the screen was on is in the run's logs, or shown where there are none.

    Where the screen failed, one line says so, and what became of the run.
    """
    where = written_to_logs(shown.printed, view)
    if shown.printed and where is None:
        complain(shown.printed)
    if shown.departure is None:
        then = "training goes on without it, a line per event as with --no-ui; " if goes_on else ""
        place = "above" if where is None else f"in {where}"
        complain(f"the screen failed ({shown.failure}): {then}the traceback is {place}")


def written_to_logs(printed: str, view: RunView) -> Path | None:
    """The file of the run's logs that the text was added to; None where there is none that takes it."""
    path = None if view.run is None else output_log(view.run.path)
    if path is None or not path.parent.is_dir():
        return None
    if printed:
        try:
            with path.open("a", encoding="utf-8") as log:
                log.write(printed)
        except OSError:  # a full disk: it must not cost the run
            return None
    return path


def output_log(run: str) -> Path:
    """Where what is printed beside our own lines is kept."""
    return Path(run) / "run_logs" / "output.log"


def say_goodbye(launch: Launch, view: RunView) -> None:
    """The terminal says how the run ended and where its files are."""
    has_failed = launch.error is not None or view.state == "failed"
    if launch.error is not None:
        complain_of(launch.error)
    elif has_failed:
        complain(view.reason or "the run failed")
    reason = f" ({view.reason})" if view.reason and not has_failed else ""
    if view.run is not None:
        answer(safe_text(f"{view.run.run_id}: {view.state}{reason}, files in {view.run.path}") + "\n")
