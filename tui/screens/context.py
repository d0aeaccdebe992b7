"""What the screens of one run share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.view import RunView
from rl_tui.engine.session.watching import Watching
from rl_tui.tui.keys.keymap import Keymap
from rl_tui.tui.panes.frames import Frames
from rl_tui.tui.runs.sources import Player, Runs
from rl_tui.tui.state.choices import ScreenState
from rl_tui.tui.state.command_status import CommandStatus
from rl_tui.tui.state.controls import Controls


@dataclass(frozen=True, slots=True)
class Context:
    """Owned by the app; every screen and dialog has it.

    redraw: draw the screen on top, now. freeze: freeze the view, or unfreeze it. choose_theme: choose the theme of that
    name in THEMES, or the next one for ""; returns its name. runs: None if there is no folder of runs. player: None
    unless the run is a replay. watching: the policies of the run at play. frames: paints them. exit_for: leave the
    screen and run that command line of rl-tui instead. take_control: let this screen control the run. forbids: why no
    run of the folder may be changed, "" when it may. is_made_up: nothing trains, so that nothing can be lost. detaches:
    the run trains in another process, and goes on when the screen is left. why_not_leave: why it cannot go on without
    the screen where it trains in this process; "" when it can.
    """

    live: LiveView
    state: ScreenState
    status: CommandStatus
    controls: Controls
    keymap: Keymap
    redraw: Callable[[], None]
    freeze: Callable[[], None]
    choose_theme: Callable[[str], str]
    watching: Watching
    frames: Frames
    exit_for: Callable[[Sequence[str]], None]
    take_control: Callable[[], None]
    runs: Runs | None = None
    player: Player | None = None
    forbids: str = ""
    is_made_up: bool = False
    detaches: bool = False
    why_not_leave: Callable[[], str] = str

    @property
    def view(self) -> RunView:
        """The run as it is now; another one after a seek."""
        return self.live.view
