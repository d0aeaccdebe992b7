"""A training as a rank that is not the first: no screen, no files, and the user is at another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rl_tui.engine.process.hangups import Hangups
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.running.launch import Launch
from rl_tui.engine.running.ranks.messages import RANKS
from rl_tui.engine.running.ranks.requested import RanksRequest, RequestedRanks
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import LogEmitted, RunStarted
from rl_tui.tui.command_line.train_arguments import TrainArguments
from rl_tui.tui.command_line.train_headless import POLL_SECONDS, output_log
from rl_tui.tui.terminal.captured_output import CapturedOutput
from rl_tui.tui.terminal.signals import RunSignals
from rl_tui.tui.terminal.streams import write_error, write_stderr

if TYPE_CHECKING:
    from rl_tui.engine.config.run import RunConfig


def train_as_rank(config: RunConfig, arguments: TrainArguments, request: RanksRequest) -> int:
    """Train as a rank that has neither screen nor files, until rank 0 ends; returns the exit code.

    stderr has where the run is, and what has gone wrong here. Where rank 0 has started this one, it says so itself.
    """
    ranks, is_started_here = RequestedRanks(request), request.world is not None and request.world.is_started_here
    launch = Launch(EventBus())
    mail = launch.subscribe()
    hangups = Hangups(outlives=not arguments.stops_on_hangup)
    with CapturedOutput() as output, RunSignals(hangups=hangups) as signals:
        launch.start(config, ranks=ranks)
        is_over = False
        while not is_over:
            is_over = launch.wait(POLL_SECONDS)
            SIGNS.beat("main")
            for command in signals.pop_commands():
                launch.send(command)
            for envelope in mail.drain():
                match envelope.event:
                    case LogEmitted(source=source, message=text) if source == RANKS and not is_started_here:
                        write_stderr(text, output.stderr)
                    case RunStarted(path=path):
                        output.save_to(output_log(path))  # where this machine has that folder
    if is_started_here and ranks.have_met:
        return launch.exit_code
    if launch.error is not None:
        write_error(launch.error)
    elif launch.failure is not None:
        write_stderr(str(launch.failure))
    return launch.exit_code
