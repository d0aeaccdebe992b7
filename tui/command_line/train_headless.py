"""A run without a screen: a line on stdout for each summary and event."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.running.launch import Launch
from rl_tui.engine.running.writers.console import ConsoleWriter
from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.messages import RunStarted
from rl_tui.engine.storage.file_names import OUTPUT, RUN_LOGS
from rl_tui.tui.command_line.train_arguments import Arguments
from rl_tui.tui.terminal.captured_output import OwnOutput
from rl_tui.tui.terminal.signals import StopSignals
from rl_tui.tui.terminal.streams import complain, complain_of, give_up

if TYPE_CHECKING:
    from rl_tui.engine.config.run import RunConfig

POLL_SECONDS = 0.25  # how soon a signal is acted upon, and lines are printed: sooner would hold up learning


def run_headless(config: RunConfig, arguments: Arguments) -> int:
    """Train to the end with one line per summary and event on stdout; returns the run's exit code."""
    launch = Launch(EventBus())
    mail = launch.subscribe()
    with OwnOutput() as output, StopSignals() as signals:
        writer = ConsoleWriter(output.stdout, arguments.log_format, debug=config.debug)
        launch.start(config)
        follow(launch, mail, writer, signals, output)
    return ending(launch)


def follow(launch: Launch, mail: Subscription, writer: ConsoleWriter, signals: StopSignals, output: OwnOutput) -> None:
    """The run is over, and every event from now on had its line."""
    is_over = has_lost_stdout = False
    while not is_over:
        is_over = launch.wait(POLL_SECONDS)
        for stop in signals.take():
            launch.send(stop)
        for envelope in mail.drain():
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


def output_log(run: str) -> Path:
    """Where what is printed beside our own lines is kept."""
    return Path(run, RUN_LOGS, OUTPUT)
