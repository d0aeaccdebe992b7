"""A run on the screen, until the screen was left and the run is over; without one where the screen fails."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.errors import OutputError
from rl_tui.engine.running.launch import Launch
from rl_tui.engine.running.writers.console import ConsoleWriter
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import Envelope
from rl_tui.engine.session.states import BAD_ENDS
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.archive import Archive
from rl_tui.engine.storage.run_ids import newest_run_id, run_name
from rl_tui.tui.command_line.command_arguments import RESULTS_DIR
from rl_tui.tui.command_line.configuration import runnable
from rl_tui.tui.command_line.resuming import can_be_resumed, resume_command
from rl_tui.tui.command_line.run_screen import Shown, Subject, show
from rl_tui.tui.command_line.train_arguments import Arguments
from rl_tui.tui.command_line.train_headless import ending, follow, output_log
from rl_tui.tui.terminal.captured_output import OwnOutput
from rl_tui.tui.terminal.own_command import become
from rl_tui.tui.terminal.signals import StopSignals
from rl_tui.tui.terminal.streams import answer, complain, complain_of

if TYPE_CHECKING:
    from rl_tui.engine.config.run import RunConfig


def run_on_screen(arguments: Arguments) -> int:
    """Train while the screen shows it; returns the run's exit code once the screen was left and the run is over.

    The configuration is read once the first picture is there, which a fifth of a second would delay by half.
    """
    launch, view, runs = Launch(EventBus()), RunView(), Archive(Path(RESULTS_DIR).absolute())
    is_debug = False

    def start() -> Iterator[Envelope] | None:
        nonlocal is_debug
        from rl_tui.engine.running.preflight import require_startable

        config = runnable(arguments)
        require_startable(config)
        is_debug = config.debug
        past = past_events(config, runs)
        expect(view, config)
        launch.attend(not arguments.look.is_readonly)
        launch.start(config)
        return past

    mail = launch.subscribe()
    subject = Subject(
        launch,
        start,
        arguments.config,
        view,
        mail,
        runs=runs,
        prioritize_ui=launch.prioritize_ui,
        watching=launch.watching,
        outlives_screen=True,
        output_log=lambda: None if view.run is None else output_log(view.run.path),
    )
    with StopSignals() as signals:
        shown = show(subject, arguments.look, signals)
        launch.attend(False)
        launch.watching.end()  # a screen that failed has not said so
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
    if shown.exit_reason != "hangup":
        say_goodbye(launch, view, arguments)
    if shown.next_command:
        become(shown.next_command)
    return launch.exit_code


def past_events(config: RunConfig, runs: Archive) -> Iterator[Envelope] | None:
    """The earlier events of a run that is resumed; None where nothing is resumed or the policies only play.

    `runs` looks into the results folder of `config` from now on.
    """
    settings = config.checkpoint_settings
    runs.results_dir = Path(settings.results_dir).absolute()
    if not settings.resume or settings.inference:
        return None
    try:
        return runs.events(settings.run_id or newest_run_id(runs.results_dir, run_name(config.source.file)))
    except OSError:
        return None  # the run will say so


def expect(view: RunView, config: RunConfig) -> None:
    """What the screen may show before the first event is in the view."""
    for name, behavior in config.behaviors.items():
        pane = view.behavior(name)
        pane.algorithm, pane.max_steps = behavior.trainer_type, behavior.max_steps
        env = config.env_settings.env
        pane.environment = (env.get(name, "") if isinstance(env, dict) else env) or ""


def keep_output(shown: Shown, view: RunView, *, goes_on: bool) -> None:
    """What was printed beside the screen and has no log yet is in the run's logs, or shown where there are none.

    Where the screen failed, one line says so, and what became of the run.
    """
    where = written_to_logs(shown.printed, view)
    if shown.printed and where is None:
        complain(shown.printed)
    if shown.exit_reason is None:
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


def say_goodbye(launch: Launch, view: RunView, arguments: Arguments) -> None:
    """The terminal, if it is still there, says how the run ended, where its files are, and how to go on with it."""
    has_failed = launch.error is not None or view.state in BAD_ENDS
    if launch.error is not None:
        complain_of(launch.error)
    elif has_failed:
        complain(view.reason or "the run failed")
    reason = f" ({view.reason})" if view.reason and not has_failed else ""
    if view.run is not None:
        with contextlib.suppress(OutputError):  # the exit code is the run's, whether anybody can read this or not
            answer(safe_text(f"{view.run.run_id}: {view.state}{reason}, files in {view.run.path}") + "\n")
            if launch.error is None and can_be_resumed(view):
                answer(safe_text(f"resume with: {resume_command(arguments.words, view.run.run_id)}") + "\n")
