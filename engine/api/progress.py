"""What a program shows of a run while it trains: a table, in a terminal or a notebook, or plain lines.

rich is imported by what draws with it.
"""

from __future__ import annotations

import datetime
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rl_tui.engine.api.run_handle import RunHandle
from rl_tui.engine.running.writers.console import ConsoleWriter
from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.messages import Envelope, RunStateChanged
from rl_tui.engine.session.sentences import sentence_of
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

BAR_WIDTH = 20  # characters


class Progress(ABC):
    """Shows a run. Used by one thread."""

    @abstractmethod
    def update(self) -> None:
        """Show what has happened since the last call."""


class Nothing(Progress):
    """Shows nothing."""

    def update(self) -> None:
        """Nothing is shown."""


class Lines(Progress):
    """The lines of --no-ui on stdout."""

    def __init__(self, run: RunHandle):
        self._run = run
        self._writer = ConsoleWriter(sys.stdout)

    def update(self) -> None:
        """Print a line for each thing that has happened."""
        for envelope in self._run.events(wait=False):
            self._writer.write(envelope)


class TerminalTable(Progress):
    """A table at the bottom of a terminal; warnings, errors and what else is printed scroll above it."""

    def __init__(self, run: RunHandle, live: Live):
        self._run = run
        self._live = live

    def update(self) -> None:
        """Print the warnings, draw the table."""
        for line in new_troubles(self._run):
            self._live.console.print(line, markup=False, highlight=False)
        self._live.update(table_of(self._run), refresh=True)


class NotebookTable(Progress):
    """A table in the output of a notebook's cell, replaced in place; warnings and errors below it."""

    def __init__(self, run: RunHandle):
        from IPython.display import display  # a notebook has it

        self._run = run
        self._display: Any = display(table_of(run), display_id=True)

    def update(self) -> None:
        """Print the warnings, replace the table."""
        for line in new_troubles(self._run):
            sys.stdout.write(line + "\n")
        self._display.update(table_of(self._run))


@contextmanager
def progress_of(run: RunHandle, quiet: bool) -> Iterator[Progress]:
    """How the run is shown where this program prints."""
    if quiet:
        yield Nothing()
        return
    from rich.console import Console

    console = Console()
    if console.is_jupyter:
        yield NotebookTable(run)
    elif console.is_terminal and not console.is_dumb_terminal:
        with live_table(run, console) as live:
            yield TerminalTable(run, live)
    else:
        yield Lines(run)


def live_table(run: RunHandle, console: Console) -> Live:
    """A table that only its owner's thread redraws."""
    from rich.live import Live

    return Live(table_of(run), console=console, auto_refresh=False, vertical_overflow="visible")


def new_troubles(run: RunHandle) -> Iterator[str]:
    """The line of each warning and error that has not been read."""
    for envelope in run.events(wait=False):
        if (text := _trouble(envelope)) is not None:
            yield text


def _trouble(envelope: Envelope) -> str | None:
    """None as well for the end of the run, which the caller raises."""
    said = sentence_of(envelope.event)
    if said is None or said.level not in ("warning", "error") or isinstance(envelope.event, RunStateChanged):
        return None
    return safe_text(f"[{said.level.upper()}] {said.line}")


def table_of(run: RunHandle) -> Table:
    """The run as a table with a row for each behavior."""
    from rich import box
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    with run.live.reading() as view:
        title, padding = title_of(view), (0, 1, 0, 0)
        table = Table(box=box.SIMPLE_HEAD, padding=padding, title=title, title_justify="left", title_style="bold")
        table.add_column("behavior", no_wrap=True)
        table.add_column(max_width=BAR_WIDTH)  # the only column that gives way where there is little room
        for name in ("step", "steps/s", "return", "left"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column(no_wrap=True)
        for behavior in view.behaviors.values():
            name, *figures = row_of(behavior)
            bar = ProgressBar(total=max(1, behavior.max_steps), completed=behavior.step)
            table.add_row(name, bar if behavior.max_steps else "", *figures)
    return table


def title_of(view: RunView) -> str:
    """The run's folder and state."""
    if view.run is None:
        return view.state
    return safe_text(f"{view.run.path}: {view.state}")


def row_of(behavior: BehaviorView) -> tuple[str, ...]:
    """Name, steps, speed, mean return of the newest hundred episodes, time until max_steps, state."""
    steps = f"{behavior.step:,}" + (f" of {behavior.max_steps:,}" if behavior.max_steps else "")
    remaining, mean = behavior.remaining_seconds, behavior.mean_return
    left = "" if remaining is None else str(datetime.timedelta(seconds=round(remaining)))
    state = "filling" if behavior.is_filling else behavior.state
    speed = f"{behavior.steps_per_second:,.0f}" if behavior.steps_per_second else ""
    return safe_text(behavior.name), steps, speed, "" if mean is None else f"{mean:.4g}", left, state
