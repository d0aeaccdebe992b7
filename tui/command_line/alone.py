"""A screen in a process that trains nothing: of recorded runs, and of one that trains in another process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.process.imports import imports_that_stay
from rl_tui.tui.command_line.train_arguments import ScreenOptions
from rl_tui.tui.terminal.relaunch import relaunch
from rl_tui.tui.terminal.streams import why_no_screen, write_stderr

if TYPE_CHECKING:
    from rl_tui.tui.command_line.run_screen import ScreenSubject
    from rl_tui.tui.screens.exit_policy import ExitReason


def require_screen(command: str) -> None:
    """What a screen needs is imported. Raises ConfigError if no screen is possible here."""
    reason = why_no_screen()
    if reason:
        raise ConfigError(f"rl-tui {command}: needs a screen, but {reason}")
    with imports_that_stay():
        import rl_tui.tui.command_line.run_screen  # noqa: F401


def show_alone(subject: ScreenSubject, options: ScreenOptions) -> ExitReason | None:
    """A screen that trains nothing was shown; returns why it was left, None if it failed."""
    from rl_tui.tui.command_line.run_screen import run_screen
    from rl_tui.tui.terminal.signals import RunSignals

    with RunSignals() as signals:
        shown = run_screen(subject, options, signals)
    if shown.exit_reason != "hangup" and shown.printed:
        write_stderr(shown.printed)
    if shown.next_command:
        relaunch(shown.next_command)
    return shown.exit_reason
