"""What may be watched of a run, and who watches it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rl_tui.engine.running.workers import spawn
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.watching import Scene, WatchCommand

if TYPE_CHECKING:
    from rl_tui.engine.running.watching.viewer import Play, Viewer

NOT_YET = "the engine is starting"
NEVER = "the run ended before it had a policy"


class WatchService:
    """A Watching over the policies of a run in this process, from before its start until after its end.

    The run admits plays and says when it is over; everything else is called by one thread of a front end.
    """

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._plays: Mapping[str, Play] = {}
        self._is_over = False
        self._viewer: Viewer | None = None

    def admit(self, plays: Mapping[str, Play]) -> None:
        """These behaviors can be watched from now on. Called once, by the run."""
        self._plays = dict(plays)

    def release(self) -> None:
        """Nobody trains any more, so nothing has to be spared."""
        self._is_over = True

    def begin(self, behavior: str, size: tuple[int, int]) -> str:
        """Let its policy play; returns "" or why there is none to watch. What was watched before ends."""
        self.end()
        play = self._plays.get(behavior)
        if play is None:
            return NEVER if self._is_over else NOT_YET
        from rl_tui.engine.running.watching.viewer import Viewer  # imports numpy, which the run has done by now

        viewer = self._viewer = Viewer(play, behavior, size, self._bus, lambda: not self._is_over)
        spawn("viewer", viewer.main, self._bus, viewer.crashed)
        return ""

    def end(self) -> None:
        """Nobody watches any more; an environment that hangs is left to its process."""
        if self._viewer is not None:
            self._viewer.end()
            self._viewer = None

    def pop_scene(self) -> Scene | None:
        """The newest scene, once."""
        return None if self._viewer is None else self._viewer.scenes.pop()

    def send(self, command: WatchCommand) -> None:
        """Change how it is played."""
        if self._viewer is not None:
            self._viewer.send(command)

    def resize(self, size: tuple[int, int]) -> None:
        """Draw at most so many pixels from now on."""
        if self._viewer is not None:
            self._viewer.resize(size)
