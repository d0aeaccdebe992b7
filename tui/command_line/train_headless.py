"""A training without a screen: a line on stdout for each summary and event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.process.hangups import Hangups
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.running.launch import Launch
from rl_tui.engine.running.writers.console import ConsoleWriter
from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.messages import Envelope, RunStarted, RunStateChanged
from rl_tui.engine.storage.file_names import OUTPUT, RUN_LOGS
from rl_tui.tui.command_line.ranks import requested_ranks
from rl_tui.tui.command_line.train_arguments import TrainArguments
from rl_tui.tui.terminal.captured_output import CapturedOutput
from rl_tui.tui.terminal.signals import RunSignals
from rl_tui.tui.terminal.streams import silence, write_error, write_stderr

if TYPE_CHECKING:
    from rl_tui.engine.config.run import RunConfig

POLL_SECONDS = 0.25  # how often signals and events are handled: more often would slow learning down


def train_headless(
    config: RunConfig, arguments: TrainArguments, on_training: Callable[[str], object] | None = None
) -> int:
    """Train to the end with one line per summary and event on stdout; returns the run's exit code. on_training: called
    with the run's folder once it trains; then nothing more is printed."""
    launch = Launch(EventBus())
    mail = launch.subscribe()
    hangups = Hangups(outlives=not arguments.stops_on_hangup)
    with CapturedOutput() as output, RunSignals(hangups=hangups) as signals:
        writer = ConsoleWriter(output.stdout, arguments.log_format, debug=config.debug)
        launch.let_attach(launch.live)
        launch.start(config, ranks=requested_ranks(arguments))
        print_events(launch, mail, writer, signals, output, on_training=on_training)
    return report_end(launch)


def print_events(
    launch: Launch,
    mail: Subscription,
    writer: ConsoleWriter,
    signals: RunSignals,
    output: CapturedOutput,
    earlier: Sequence[Envelope] = (),
    on_training: Callable[[str], object] | None = None,
) -> None:
    """Print every event from now on, until the run is over. earlier: events that come first, some of which may come
    again. on_training: see train_headless."""
    run, waiting = "", list(earlier)
    last = waiting[-1].number if waiting else 0
    is_over = has_lost_stdout = False
    while not is_over:
        is_over = launch.wait(POLL_SECONDS)
        SIGNS.beat("main")
        for command in signals.pop_commands():
            launch.send(command)
        for note in signals.pop_notes():
            launch.log(note)
        waiting += [envelope for envelope in mail.drain() if envelope.number > last]
        for envelope in waiting:
            writer.write(envelope)
            match envelope.event:
                case RunStarted():
                    run = envelope.event.path
                    output.save_to(output_log(run))
                case RunStateChanged(state="training") if on_training is not None:
                    on_training(run)
                    on_training = None
                    silence(output.stdout)
                    silence(output.stderr)
        waiting.clear()
        if writer.failed is not None and not has_lost_stdout:
            has_lost_stdout = True
            text = f"stdout cannot be written ({writer.failed}): training continues, events.jsonl has every line"
            write_stderr(text, output.stderr)
            silence(output.stdout)


def report_end(launch: Launch) -> int:
    """The error of a failed run is on stderr; returns the exit code."""
    if launch.error is not None:
        write_error(launch.error)
    return launch.exit_code


def output_log(run: str) -> Path:
    """The file for what environments and libraries print."""
    return Path(run, RUN_LOGS, OUTPUT)
