"""Which policies of a run can be watched, and the one that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rl_tui.engine.running.threads import spawn
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.watching import Scene, WatchCommand

if TYPE_CHECKING:
    from rl_tui.engine.running.watching.viewer import Viewer, WatchTarget

NOT_YET = "the engine is starting"
NEVER = "the run ended before it had a policy"


class WatchService:
    """Implements Watching for a run in this process, from before its start until after its end.

    The run calls `offer` and `training_ended`; one thread of a front end calls the rest.
    """

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._targets: Mapping[str, WatchTarget] = {}
        self._has_training_ended = False
        self._viewer: Viewer | None = None

    def offer(self, targets: Mapping[str, WatchTarget]) -> None:
        """These behaviors can be watched from now on, and those that are added. Called once, by the run."""
        self._targets = targets

    def training_ended(self) -> None:
        """Watching no longer has to spare training."""
        self._has_training_ended = True

    def why_not(self, behavior: str) -> str:
        """Why its policy cannot be watched now, "" when it can."""
        target = self._targets.get(behavior)
        if target is not None:
            return target.source.not_drawn
        if self._targets:
            return f"{behavior} has not appeared in its environment{' yet' * (not self._has_training_ended)}"
        return NEVER if self._has_training_ended else NOT_YET

    def begin(self, behavior: str, size: tuple[int, int]) -> str:
        """Play its policy; returns "" or why there is none to watch. What was watched before ends."""
        self.end()
        if reason := self.why_not(behavior):
            return reason
        target = self._targets[behavior]
        from rl_tui.engine.running.watching.viewer import Viewer  # imports numpy, as the run has done by now

        viewer = self._viewer = Viewer(target, behavior, size, self._bus, lambda: not self._has_training_ended)
        spawn("viewer", viewer.main, self._bus, viewer.crashed)
        return ""

    def end(self) -> None:
        """Stop watching. An environment that hangs is left to its process."""
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
        """Draw at most this many pixels from now on."""
        if self._viewer is not None:
            self._viewer.resize(size)
