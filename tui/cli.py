"""rl-tui: understand the command line, run with or without a screen, end with the promised exit code.

Textual, torch and the configuration's libraries are imported inside the branch that needs them, so that --help and
--version answer at once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import ConfigError, NotSupportedError, RlTuiError
from engine.session.text import safe_text
from tui.arguments import Arguments, Look, parse_arguments
from tui.command_lines import (
    RESULTS_DIR,
    DemoArguments,
    EvaluateArguments,
    ListArguments,
    ReplayArguments,
    UpgradeArguments,
    parse_demo,
    parse_evaluate,
    parse_ls,
    parse_replay,
    parse_upgrade,
)
from tui.terminal import complain, give_up, why_no_screen

if TYPE_CHECKING:
    from engine.config import RunConfig
    from engine.running.launch import Launch
    from engine.session.messages import Envelope
    from engine.session.view import RunView
    from tui.showing import Shown, Subject
    from tui.way_out import Departure

POLL_SECONDS = 0.25  # how soon a signal is acted upon, and lines are printed: sooner would hold up learning
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
        give_up(sys.stdout)
        return SIGPIPE_EXIT_CODE
    return exit_code


def run_command(words: Sequence[str]) -> int:
    """Do what the first word names; anything that is no command names a configuration. Raises RlTuiError."""
    command = COMMANDS.get(words[0]) if words else None
    return train(parse_arguments(words)) if command is None else command(words[1:])


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


def upgrade_config(arguments: UpgradeArguments) -> int:
    """OUT holds what IN says, in today's format, and stdout tells what was rewritten. Raises ConfigError."""
    from engine.config import read_file
    from engine.running.disk import write_atomically
    from engine.upgrade import upgrade

    target = Path(arguments.target)
    if os.path.lexists(target) and not arguments.is_forced:
        raise ConfigError(f"{target}: exists already. Another name, or --force to replace it, is right")
    upgraded = upgrade(read_file(Path(arguments.source)), arguments.source)
    try:
        write_atomically(target, upgraded.content)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror or error}") from error
    kind = "in today's format" if upgraded.notes else f"a copy: {arguments.source} is in today's format already"
    for line in (*upgraded.notes, f"{target}: written, {kind}"):
        print(safe_text(line))
    return 0


def evaluate(arguments: EvaluateArguments) -> int:
    """The returns of a run's policy are on stdout. Raises RlTuiError."""
    from engine.running.archive import Archive

    path = Archive(Path(arguments.results_dir)).resolve(arguments.run)
    from engine.running.recording import require_recorder

    record = None if arguments.record is None else Path(arguments.record)
    if record is not None:
        require_recorder(record)
    from engine.running.run import limit_threads
    from engine.running.saved_policy import SavedRun, Wanted

    limit_threads()
    played = SavedRun(path.parent if path.is_file() else path).play(
        Wanted(
            behavior=arguments.behavior,
            episodes=arguments.episodes,
            checkpoint=arguments.checkpoint,
            seed=arguments.seed,
            is_stochastic=arguments.is_stochastic,
            is_onnx=arguments.is_onnx,
            record=record,
        )
    )
    for reason in played.skipped:
        complain(f"a checkpoint was skipped: {reason}")
    kind = "stochastic" if arguments.is_stochastic else "deterministic"
    print(safe_text(f"{played.behavior} at step {played.step}, {kind}, seed {arguments.seed}: {played.source}"))
    for name, value in played.scores.summary.items():
        print(f"{name:12}{value:12.6g}")
    if record is not None:
        print(safe_text(f"recorded    {record}"))
    return 0


def list_runs(arguments: ListArguments) -> int:
    """The runs of a folder are on stdout. Raises ConfigError where that folder cannot be read."""
    from engine.running.archive import Archive
    from tui.listing import json_lines, table

    folder = arguments.results_dir or RESULTS_DIR
    if arguments.results_dir is not None and not os.path.isdir(folder):
        raise ConfigError(f"{folder}: no such folder, expected one that holds runs")
    runs = Archive(Path(folder)).runs()
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    print(json_lines(runs) if arguments.is_json else table(runs, folder, time.time(), width), end="")
    return 0


def demo(arguments: DemoArguments) -> int:
    """A made-up run was shown; returns the exit code that a real one would have had."""
    require_screen("demo")
    from engine.running.workers import spawn
    from engine.session.view import RunView
    from tui.demo.session import DemoSession
    from tui.showing import Subject

    session = DemoSession(
        speed=arguments.speed, seed=arguments.seed, behaviors=arguments.behaviors, hours=arguments.hours
    )
    view, mail = RunView(), session.subscribe()
    session.begin()
    for envelope in mail.take():  # before the first picture, so that it shows hours of curves
        view.apply(envelope)

    def start() -> None:
        spawn("demo", session.main, session.bus, session.crashed)

    subject = Subject(
        session,
        start,
        "demo",
        view,
        mail,
        clock=lambda: view.now,
        runs=session.runs(),
        notes=lambda: (f"demo {arguments.speed:g}x",),
        is_remembered=False,
    )
    show_alone(subject, arguments.look)
    return session.exit_code


def replay(arguments: ReplayArguments) -> int:
    """A recorded run was shown again. Raises ConfigError where there is none of that name."""
    require_screen("replay")
    from engine.running.archive import Archive
    from engine.running.summarizing import summarize
    from engine.running.workers import spawn
    from engine.session.view import RunView
    from tui.replay import REFUSAL, Replay, start_speed
    from tui.showing import Subject

    archive, speed = Archive(Path(arguments.results_dir)), arguments.speed
    path = archive.resolve(arguments.run)
    if speed is None:
        summary = summarize(path if path.is_dir() else path.parent)
        speed = start_speed(summary.elapsed_seconds if summary is not None else None)
    session, view = Replay(archive.events(arguments.run), speed), RunView()

    def start() -> None:
        spawn("replay", session.main, session.bus, session.crashed)

    subject = Subject(
        session,
        start,
        arguments.run,
        view,
        session.subscribe(),
        clock=lambda: view.now,
        runs=archive,
        player=session,
        refuses=REFUSAL,
        notes=session.notes,
    )
    return 1 if show_alone(subject, arguments.look) is None else 0


def require_screen(command: str) -> None:
    """There can be a screen. Raises ConfigError otherwise."""
    reason = why_no_screen()
    if reason:
        raise ConfigError(f"rl-tui {command}: needs a screen, but {reason}")


def show_alone(subject: Subject, look: Look) -> Departure | None:
    """What has no folder for its output was shown; returns how the screen was left, None when it failed."""
    from tui.showing import show

    shown = show(subject, look)
    if shown.departure != "hangup" and shown.printed:
        complain(shown.printed)
    return shown.departure


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
    """The effective configuration is on stdout, and on stderr what of it is not supported or has no effect."""
    from engine.config import effective_yaml, find_unsupported, list_warnings, without_effect

    print(effective_yaml(config), end="")
    for note in (*find_unsupported(config), *without_effect(config), *list_warnings(config)):
        complain(note)
    return 0


def why_headless(arguments: Arguments) -> str | None:
    """Why this run has no screen: None when it has one, an empty text when that was asked for."""
    return "" if arguments.is_headless else why_no_screen() or None


def run_headless(config: RunConfig, arguments: Arguments) -> int:
    """Train to the end with one line per summary and event on stdout; returns the run's exit code."""
    from engine.running.launch import Launch
    from engine.running.writers.console import ConsoleWriter
    from engine.session.bus import EventBus
    from tui.signals import StopSignals

    launch = Launch(EventBus())
    mail = launch.subscribe()
    writer = ConsoleWriter(sys.stdout, arguments.log_format, debug=config.debug)
    with StopSignals() as signals:
        launch.start(config)
        is_over = has_lost_stdout = False
        while not is_over:
            is_over = launch.wait(POLL_SECONDS)
            for stop in signals.take():
                launch.send(stop)
            for envelope in mail.take():
                writer.write(envelope)
            if writer.failed is not None and not has_lost_stdout:
                has_lost_stdout = True
                complain(f"stdout takes no more ({writer.failed}): training goes on, events.jsonl has every line")
                give_up(sys.stdout)
    if launch.error is not None:
        complain(str(launch.error))
    return launch.exit_code


def run_on_screen(arguments: Arguments) -> int:
    """Train while the screen shows it; returns the run's exit code once the screen was left and the run is over.

    The configuration is read when the first picture stands, which a fifth of a second would delay by half.
    """
    from engine.running.archive import Archive
    from engine.running.launch import Launch
    from engine.session.bus import EventBus
    from engine.session.view import RunView
    from tui.showing import Subject, show

    launch, view, runs = Launch(EventBus()), RunView(), Archive(Path(RESULTS_DIR))

    def start() -> Iterator[Envelope] | None:
        config = runnable(arguments)
        settings = config.checkpoint_settings
        runs.results_dir = Path(settings.results_dir)
        expect(view, config)
        launch.start(config)
        return runs.events(settings.run_id) if settings.resume else None

    mail = launch.subscribe()
    subject = Subject(launch, start, arguments.config, view, mail, runs=runs, give_way=launch.give_way)
    shown = show(subject, arguments.look)
    keep_output(shown, view)
    if shown.departure != "hangup":
        say_goodbye(launch, view)
    return launch.exit_code


def expect(view: RunView, config: RunConfig) -> None:
    """What the screen may show before the engine has told anything is in the view."""
    for name, behavior in config.behaviors.items():
        pane = view.behavior(name)
        pane.algorithm, pane.max_steps = behavior.trainer_type, behavior.max_steps
        env = config.env_settings.env
        pane.environment = (env.get(name, "") if isinstance(env, dict) else env) or ""


def keep_output(shown: Shown, view: RunView) -> None:
    """What was printed while the screen was on is in the run's logs, or shown where there are none."""
    logs = None if view.run is None else Path(view.run.path) / "run_logs"
    if logs is None or not logs.is_dir():
        if shown.printed:
            complain(shown.printed)
        return
    path = logs / "output.log"
    if shown.printed:
        with path.open("a", encoding="utf-8") as log:
            log.write(shown.printed)
    if shown.departure is None:
        complain(
            f"the screen failed: {shown.failure}; the run was stopped with checkpoints, the traceback is in {path}"
        )


def say_goodbye(launch: Launch, view: RunView) -> None:
    """The terminal says how the run ended and where its files are."""
    reason = f" ({view.reason})" if view.reason else ""
    if launch.error is not None or view.state == "failed":
        complain(str(launch.error or view.reason or "the run failed"))
        reason = ""  # it was said
    if view.run is not None:
        print(safe_text(f"{view.run.run_id}: {view.state}{reason}, files in {view.run.path}"))


COMMANDS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "schema": print_schema,
    "presets": print_presets,
    "evaluate": lambda words: evaluate(parse_evaluate(words)),
    "upgrade-config": lambda words: upgrade_config(parse_upgrade(words)),
    "ls": lambda words: list_runs(parse_ls(words)),
    "demo": lambda words: demo(parse_demo(words)),
    "replay": lambda words: replay(parse_replay(words)),
}
