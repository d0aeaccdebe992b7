"""rl-tui: understand the command line, run with or without a screen, end with the promised exit code.

Textual, torch and the configuration's libraries are imported inside the branch that needs them, so that --help and
--version answer at once.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import ConfigError, NotSupportedError, RlTuiError
from engine.session.text import safe_text
from tui.arguments import Arguments, parse_arguments

if TYPE_CHECKING:
    from engine.config import RunConfig
    from engine.running.launch import Launch
    from engine.session.view import RunView
    from tui.signals import StopSignals

POLL_SECONDS = 0.1  # how soon a signal is acted upon
LEAVE_SECONDS = 5.0  # what a run that was told to stop now may take for its last files
SIGPIPE_EXIT_CODE = 141  # what a shell shows for a program whose reader went away


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. --help, --version and a wrong flag leave through SystemExit."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        exit_code = run_command(words)
        sys.stdout.flush()
    except RlTuiError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        give_up_stdout()
        return SIGPIPE_EXIT_CODE
    return exit_code


def run_command(words: Sequence[str]) -> int:
    """Do what the first word names; anything that is no command names a configuration. Raises RlTuiError."""
    match words[:1]:
        case ["schema"]:
            return print_schema(words[1:])
        case ["presets"]:
            return print_presets(words[1:])
        case _:
            return train(parse_arguments(words))


def print_schema(words: Sequence[str]) -> int:
    """The JSON Schema of the configuration is on stdout."""
    parser = argparse.ArgumentParser("rl-tui schema", description="Print the JSON Schema of the configuration.")
    parser.parse_args(words)
    import json

    from engine.config import json_schema

    print(json.dumps(json_schema(), indent=2))
    return 0


def print_presets(words: Sequence[str]) -> int:
    """The names of all presets, or the text of one, are on stdout."""
    parser = argparse.ArgumentParser("rl-tui presets", description="List the presets, or print one.")
    parser.add_argument("name", nargs="?", metavar="NAME", help="print this preset, e.g. ppo/CartPole")
    name: str | None = parser.parse_args(words).name
    from engine.presets import preset_names, read_preset

    if name is None:
        print("\n".join(preset_names()))
    else:
        print(read_preset(name), end="")
    return 0


def train(arguments: Arguments) -> int:
    """The run that the command line describes is over; returns its exit code. Raises RlTuiError before it begins."""
    for warning in arguments.warnings:
        complain(warning)
    from engine.config import find_unsupported, list_warnings, load_config, without_effect

    config = load_config(find_config(arguments.config), arguments.overrides)
    if arguments.is_deterministic:
        config = without_chance(config)
    unsupported = find_unsupported(config)
    if arguments.is_dry_run:
        return print_effective(config, [*unsupported, *without_effect(config), *list_warnings(config)])
    if unsupported:
        raise NotSupportedError("\n".join(unsupported))
    reason = why_headless(arguments)
    if reason is None:
        return run_on_screen(config, arguments)
    if reason:
        complain(f"no screen: {reason}")
    return run_headless(config, arguments)


def find_config(name: str) -> Path:
    """The file of that name, or else the preset of that name. Raises ConfigError when there is neither."""
    path = Path(name)
    if path.exists():
        return path
    from engine.presets import preset_names, preset_path

    if name in preset_names():
        return preset_path(name)
    raise ConfigError(f"{name}: no such file, and no preset of that name (`rl-tui presets` lists them)")


def without_chance(config: RunConfig) -> RunConfig:
    """The same settings with every listed behavior acting deterministically, as ML-Agents' flag has it."""
    behaviors = {
        name: behavior.model_copy(
            update={"network_settings": behavior.network_settings.model_copy(update={"deterministic": True})}
        )
        for name, behavior in config.behaviors.items()
    }
    return config.model_copy(update={"behaviors": behaviors})


def print_effective(config: RunConfig, notes: Sequence[str]) -> int:
    """The effective configuration is on stdout, and on stderr what of it is not supported or has no effect."""
    from engine.config import effective_yaml

    print(effective_yaml(config), end="")
    for note in notes:
        complain(note)
    return 0


def why_headless(arguments: Arguments) -> str | None:
    """Why this run has no screen: None when it has one, an empty text when that was asked for."""
    if arguments.is_headless:
        return ""
    for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout), ("stderr", sys.stderr)):
        if stream is None or not stream.isatty():
            return f"{name} is not a terminal"
    if os.environ.get("TERM", "dumb") == "dumb":
        return "the terminal is dumb (TERM)"
    return None


def run_headless(config: RunConfig, arguments: Arguments) -> int:
    """Train to the end with one line per summary and event on stdout; returns the run's exit code."""
    from engine.running.launch import Launch
    from engine.running.writers.console import ConsoleWriter
    from engine.session.bus import EventBus
    from tui.signals import StopSignals

    launch = Launch(config, EventBus())
    mail = launch.subscribe()
    writer = ConsoleWriter(sys.stdout, arguments.log_format, debug=config.debug)
    with StopSignals() as signals:
        launch.start()
        is_over = has_lost_stdout = False
        while not is_over:
            is_over = launch.wait(0)
            for stop in signals.take():
                launch.send(stop)
            for envelope in mail.take(0 if is_over else POLL_SECONDS):
                writer.write(envelope)
            if writer.failed is not None and not has_lost_stdout:
                has_lost_stdout = True
                complain(f"stdout takes no more ({writer.failed}): training goes on, events.jsonl has every line")
                give_up_stdout()
    if launch.error is not None:
        complain(str(launch.error))
    return launch.exit_code


def run_on_screen(config: RunConfig, arguments: Arguments) -> int:
    """Train while the screen shows it; returns the run's exit code once the screen was left and the run is over."""
    from engine.running.launch import Launch
    from engine.session.bus import EventBus
    from engine.session.messages import Stop
    from tui.app import TrainerApp
    from tui.signals import StopSignals
    from tui.terminal import redirect_output

    launch = Launch(config, EventBus())
    view = expected_view(config)
    with tempfile.NamedTemporaryFile(prefix="rl-tui-", suffix=".log", delete=False) as file:
        output = Path(file.name)
    has_begun = False
    with StopSignals() as signals, redirect_output(output):

        def begin() -> None:
            nonlocal has_begun
            has_begun = True
            launch.start()  # not before: the picture would come half a second later
            for stop in signals.take():
                app.request_stop(stop.exit_code)

        mail = launch.subscribe()
        app = TrainerApp(launch, view, arguments.config, subscription=mail, ascii=arguments.is_ascii, on_shown=begin)
        departure = app.run(mouse=False)  # no pane uses it, and the terminal's own selection of text goes on working
        if departure is None:  # the screen itself failed
            launch.send(Stop("checkpoint", exit_code=1))
        if has_begun:
            await_end(launch, signals, LEAVE_SECONDS if departure == "now" else None)
        app.fold()
    keep_output(output, view, must_show=departure is None)
    if departure != "hangup":
        say_goodbye(launch, view)
    return launch.exit_code


def expected_view(config: RunConfig) -> RunView:
    """What the screen may show before the engine has told anything."""
    from engine.session.view import RunView

    view = RunView()
    for name, behavior in config.behaviors.items():
        pane = view.behavior(name)
        pane.algorithm, pane.max_steps = behavior.trainer_type, behavior.max_steps
        env = config.env_settings.env
        pane.environment = (env.get(name, "") if isinstance(env, dict) else env) or ""
    return view


def await_end(launch: Launch, signals: StopSignals, seconds: float | None) -> None:
    """The run is over, or was given that many seconds for it; signals still reach it."""
    waited = 0.0
    while not launch.wait(POLL_SECONDS) and (seconds is None or waited < seconds):
        waited += POLL_SECONDS
        for stop in signals.take():
            launch.send(stop)


def keep_output(output: Path, view: RunView, *, must_show: bool) -> None:
    """What was printed while the screen was on is in the run's logs, and shown where it must be or there is no run."""
    printed = output.read_bytes()
    output.unlink()
    logs = None if view.run is None else Path(view.run.path) / "run_logs"
    if printed and logs is not None and logs.is_dir():
        with (logs / "output.log").open("ab") as log:
            log.write(printed)
    if printed and (must_show or logs is None):
        complain(printed.decode(errors="replace"))


def say_goodbye(launch: Launch, view: RunView) -> None:
    """The terminal says how the run ended and where its files are."""
    if launch.error is not None:
        complain(str(launch.error))
    elif view.state == "failed":
        complain(view.reason or "the run failed")
    if view.run is not None:
        reason = f" ({view.reason})" if view.reason else ""
        print(safe_text(f"{view.run.run_id}: {view.state}{reason}, files in {view.run.path}"))


def complain(text: str) -> None:
    """The text is on stderr, without the control characters that a file or a name may bring along."""
    print(safe_text(text, multiline=True), file=sys.stderr)


def give_up_stdout() -> None:
    """Nobody reads stdout any more; without this the interpreter would fail once more when it flushes at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
