"""A training without a screen: a line on stdout for each summary and event."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.process.hangups import Hangups
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.running.launch import Launch
from rl_tui.engine.running.writers.console import ConsoleWriter
from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.messages import Envelope, RunStarted
from rl_tui.engine.storage.file_names import EVENTS, OUTPUT, RUN_LOGS
from rl_tui.tui.command_line.train_arguments import TrainArguments
from rl_tui.tui.terminal.captured_output import CapturedOutput
from rl_tui.tui.terminal.signals import RunSignals
from rl_tui.tui.terminal.streams import silence, write_error, write_stderr

if TYPE_CHECKING:
    from rl_tui.engine.config.run import RunConfig

POLL_SECONDS = 0.25  # how often signals and events are handled: more often would slow learning down


def train_headless(config: RunConfig, arguments: TrainArguments) -> int:
    """Train to the end with one line per summary and event on stdout; returns the run's exit code."""
    bus = EventBus()
    launch = Launch(bus)
    mail = launch.subscribe()
    hangups = Hangups(outlives=not arguments.stops_on_hangup)
    with CapturedOutput() as output, RunSignals(hangups=hangups) as signals:
        writer = ConsoleWriter(output.stdout, arguments.log_format, debug=config.debug)
        launch.let_attach(partial(events_before, bus))
        launch.start(config)
        print_events(launch, mail, writer, signals, output)
    return report_end(launch)


def print_events(
    launch: Launch, mail: Subscription, writer: ConsoleWriter, signals: RunSignals, output: CapturedOutput
) -> None:
    """Print every event from now on, until the run is over."""
    is_over = has_lost_stdout = False
    while not is_over:
        is_over = launch.wait(POLL_SECONDS)
        SIGNS.beat("main")
        for command in signals.pop_commands():
            launch.send(command)
        for note in signals.pop_notes():
            launch.log(note)
        for envelope in mail.drain():
            writer.write(envelope)
            if isinstance(envelope.event, RunStarted):
                output.save_to(output_log(envelope.event.path))
        if writer.failed is not None and not has_lost_stdout:
            has_lost_stdout = True
            text = f"stdout cannot be written ({writer.failed}): training continues, events.jsonl has every line"
            write_stderr(text, output.stderr)
            silence(output.stdout)


def events_before(bus: EventBus, started: RunStarted) -> Iterator[Envelope]:
    """What the log of a resumed run has of its earlier processes."""
    from rl_tui.engine.storage.event_log import read_events

    return takewhile(lambda envelope: not bus.has_published(envelope), read_events(Path(started.path, EVENTS)))


def report_end(launch: Launch) -> int:
    """The error of a failed run is on stderr; returns the exit code."""
    if launch.error is not None:
        write_error(launch.error)
    return launch.exit_code


def output_log(run: str) -> Path:
    """The file for what environments and libraries print."""
    return Path(run, RUN_LOGS, OUTPUT)
