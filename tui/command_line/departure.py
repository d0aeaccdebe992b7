"""How a run leaves the terminal that it was started in, and trains on."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from rl_tui.engine.errors import OutputError
from rl_tui.engine.process.hangups import Hangups
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.storage.ownership import sign_again
from rl_tui.tui.terminal.relaunch import shell_command
from rl_tui.tui.terminal.streams import leave_streams, write_stdout


def why_not_leave() -> str:
    """Why this process cannot go on without its terminal; "" when it can. A shell waits for the process that it has
    started, so that another one must train."""
    return "" if SIGNS.watcher else "a debugger or a profiler runs this process"


def leave_terminal(run: Path, hangups: Hangups) -> None:
    """The shell goes on, and this process has no terminal. Called by the main thread, outside the screen."""
    with contextlib.suppress(OutputError, BrokenPipeError):  # a terminal that is gone meanwhile must not end the run
        write_stdout(way_back(run))
    leave_streams()
    os.setsid()  # this is no leader of a group: another process has started it
    SIGNS.leave(lambda: sign_again(run))
    hangups.leave()  # not before the process that still has the terminal knows: until then it passes hangups on


def way_back(run: Path) -> str:
    """Where a run trains that no terminal shows, and what to type to see it; lines for stdout."""
    return safe_text(f"{run.name} trains on; back to it: {shell_command(('attach', str(run)))}") + "\n"
