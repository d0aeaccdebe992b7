"""A training on the screen, until the screen was left and the run is over; it continues without one that fails."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.errors import OutputError
from rl_tui.engine.process.files import open_regular
from rl_tui.engine.process.hangups import Hangups
from rl_tui.engine.running.launch import Launch
from rl_tui.engine.running.writers.console import ConsoleWriter
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import Attend, Envelope
from rl_tui.engine.session.states import BAD_ENDS, ENDS
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.archive import Archive
from rl_tui.engine.storage.run_folder import RunFolder
from rl_tui.engine.storage.run_ids import newest_run_id, run_name
from rl_tui.tui.command_line.command_arguments import RESULTS_DIR
from rl_tui.tui.command_line.configuration import choose_settings, runnable_configuration
from rl_tui.tui.command_line.departure import leave_terminal, why_not_leave
from rl_tui.tui.command_line.ranks import requested_ranks
from rl_tui.tui.command_line.run_screen import ScreenResult, ScreenSubject, run_screen
from rl_tui.tui.command_line.train_arguments import TrainArguments
from rl_tui.tui.command_line.train_headless import output_log, print_events, report_end
from rl_tui.tui.terminal.captured_output import CapturedOutput
from rl_tui.tui.terminal.naming import screen_name
from rl_tui.tui.terminal.relaunch import relaunch
from rl_tui.tui.terminal.signals import GONE_NOTE, RunSignals
from rl_tui.tui.terminal.streams import write_error, write_stderr, write_stdout

if TYPE_CHECKING:
    from rl_tui.engine.config.run import RunConfig

START_FLAGS = {
    "--run-id": True,
    "--initialize-from": True,
    "--resume": False,
    "--resume-or-start": False,
    "--force": False,
}  # takes a value?
REST = "--env-args"  # everything after it is for the player


def train_on_screen(arguments: TrainArguments) -> int:
    """Train while the screen shows it; returns the run's exit code once the screen was left and the run is over.

    The configuration is read after the first picture, which would otherwise take half as long again.
    """
    bus, runs = EventBus(), Archive(Path(RESULTS_DIR).absolute())
    launch, choice, is_debug = Launch(bus), choose_settings(arguments), False
    live, hangups = launch.live, Hangups(outlives=not arguments.stops_on_hangup)
    screen = screen_name()

    def start() -> Iterator[Envelope] | None:
        nonlocal is_debug
        from rl_tui.engine.running.preflight import require_startable

        config = runnable_configuration(arguments)
        require_startable(config)
        is_debug = config.debug
        past = earlier_events(config, runs)
        if past is not None:  # the run appends its own to the same file
            past = takewhile(lambda envelope: not bus.has_published(envelope), past)
        prefill(live.view, config)
        launch.send(Attend(not arguments.options.is_readonly, screen))  # what diverges at once waits, too
        if choice.note:
            bus.log("info", "run", choice.note)
        launch.let_attach()
        launch.start(config, ranks=requested_ranks(arguments))
        return past

    subject = ScreenSubject(
        launch,
        start,
        arguments.config or run_name(choice.named_after),
        runs=runs,
        outlives_screen=True,
        hangups=hangups,
        why_not_leave=lambda: why_not_leave() or launch.why_not_attach,
        screen_name=screen,
        output_log=lambda: None if live.view.run is None else output_log(live.view.run.path),
    )
    with RunSignals(hangups=hangups) as signals:
        shown = run_screen(subject, arguments.options, signals)
        view = live.view
        launch.send(Attend(False, screen))
        launch.watching.end()  # a screen that failed has not done so
        continues = not shown.was_left and not launch.wait(0)
        save_output(shown, view, continues=continues)
        if continues and shown.exit_reason == "lost":
            launch.log(GONE_NOTE)
        if continues and shown.exit_reason == "detached":
            assert view.run is not None
            leave_terminal(Path(view.run.path), hangups)
        if continues:
            train_on(launch, arguments, signals, is_debug=is_debug)
    if continues:
        return report_end(launch)
    if shown.exit_reason != "hangup":
        print_result(launch, view, arguments)
    if shown.next_command:
        relaunch(shown.next_command)
    return launch.exit_code


def train_on(launch: Launch, arguments: TrainArguments, signals: RunSignals, *, is_debug: bool) -> None:
    """The run goes on without its screen until its end, with a line for each event where anything can be written."""
    mail = launch.subscribe()
    earlier = launch.live.fold()  # what the screen has not shown; the mail may begin with the same
    launch.lose_screen()
    view = launch.live.view
    with CapturedOutput() as output:
        if view.run is not None:
            output.save_to(output_log(view.run.path))
        has_trained = view.state != "starting"
        offline = [name for name, behavior in view.behaviors.items() if behavior.learns_offline]
        writer = ConsoleWriter(
            output.stdout, arguments.log_format, debug=is_debug, has_trained=has_trained, offline=offline
        )
        print_events(launch, mail, writer, signals, output, earlier)


def earlier_events(config: RunConfig, runs: Archive) -> Iterator[Envelope] | None:
    """The earlier events of a run that is resumed; None if none is, or with --inference.

    `runs` reads the results folder of `config` from now on.
    """
    settings = config.checkpoint_settings
    runs.results_dir = Path(settings.results_dir).absolute()
    if settings.inference:
        return None
    if settings.resume_or_start:
        folder = RunFolder.of(config)
        return runs.events(str(folder.events)) if folder.events.is_file() else None
    if not settings.resume:
        return None
    try:
        named_by = config.source.run_name or config.source.file
        run_id = settings.run_id or newest_run_id(runs.results_dir, run_name(named_by))
    except OSError:
        run_id = None
    return runs.events(run_id) if run_id is not None else None  # the run will report that there is none


def prefill(view: RunView, config: RunConfig) -> None:
    """The view shows the behaviors of the configuration before the first event."""
    for name, behavior in config.behaviors.items():
        pane = view.behavior(name)
        pane.algorithm, pane.max_steps = behavior.trainer_type, behavior.max_steps
        env = config.env_settings.environment
        pane.environment = env.get(name, "") if isinstance(env, dict) else env


def save_output(shown: ScreenResult, view: RunView, *, continues: bool) -> None:
    """Output that is not in the run's log yet is added to it, or is on stderr if there is no log.

    If the screen failed, a line says so and whether training continues.
    """
    where = written_to_logs(shown.printed, view)
    if shown.printed and where is None:
        write_stderr(shown.printed)
    if shown.exit_reason is None:
        then = "training continues without it, a line per event as with --no-ui; " if continues else ""
        place = "above" if where is None else f"in {where}"
        write_stderr(f"the screen failed ({shown.failure}): {then}the traceback is {place}")


def written_to_logs(printed: str, view: RunView) -> Path | None:
    """The log of the run that the text was added to; None if there is none, or it cannot be written."""
    path = None if view.run is None else output_log(view.run.path)
    if path is None or not path.parent.is_dir():
        return None
    if printed:
        try:
            with open(path, "a", encoding="utf-8", opener=open_regular) as log:
                log.write(printed)
        except OSError:  # a full disk must not end the run
            return None
    return path


def print_result(launch: Launch, view: RunView, arguments: TrainArguments) -> None:
    """Print how the run ended, where its files are, and the command that resumes it."""
    has_failed = launch.error is not None or view.state in BAD_ENDS
    if launch.error is not None:
        write_error(launch.error)
    elif has_failed:
        write_stderr(view.reason or "the run failed")
    reason = f" ({view.reason})" if view.reason and not has_failed else ""
    if view.run is not None:
        with contextlib.suppress(OutputError):  # the exit code stays that of the run
            write_stdout(safe_text(f"{view.run.run_id}: {view.state}{reason}, files in {view.run.path}") + "\n")
            if launch.error is None and can_be_resumed(view):
                write_stdout(safe_text(f"resume with: {resume_command(arguments.words, view.run.run_id)}") + "\n")


def can_be_resumed(view: RunView) -> bool:
    """Whether the run ended early and has a checkpoint."""
    ended_early = view.state in ENDS and view.state != "finished"
    return ended_early and any(behavior.checkpoints for behavior in view.behaviors.values())


def resume_command(words: Sequence[str], run_id: str) -> str:
    """What to type in a shell. words: the command line that started the run, without the program's name."""
    end = words.index(REST) if REST in words else len(words)
    kept, is_value = [], False
    for word in words[:end]:
        flag = "" if is_value else _start_flag(word)
        if not flag and not is_value:
            kept.append(word)
        is_value = bool(flag) and START_FLAGS[flag] and "=" not in word
    return shlex.join(["rl-tui", *kept, "--run-id", run_id, "--resume", *words[end:]])


def _start_flag(word: str) -> str:
    """The flag that the word is or abbreviates, as in argparse; "" for any other word."""
    typed = word.partition("=")[0]
    if typed in START_FLAGS:
        return typed
    flags = [flag for flag in START_FLAGS if len(typed) > len("--") and flag.startswith(typed)]
    return flags[0] if len(flags) == 1 else ""
