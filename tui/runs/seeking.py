"""Going to any place of a recorded run: what is shown there is folded anew from the nearest snapshot before it."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.session.log_position import LogPosition
from rl_tui.engine.session.messages import Envelope, RunStateChanged
from rl_tui.engine.session.states import ENDS
from rl_tui.engine.session.view import RunView

Open: TypeAlias = Callable[[LogPosition], Iterator[Envelope | None]]

SILENT_SECONDS = 60.0  # a longer time without events lies between two lives of a run: it is skipped
SNAPSHOT_EVENTS = 2500  # from one to the next at first: a tenth of a second to fold
MOST_SNAPSHOTS = 24  # a few MB each, of a long run
CHUNK_EVENTS = 20  # about 1 ms of Python: longer ones make keys wait for it


@dataclass(slots=True)
class Course:
    """How far a recording has come. time: of the newest event; played: seconds without the silences; is_over: the run.

    Another process may have written a progress report late: time never goes back.
    """

    time: float | None = None
    played: float = 0.0
    is_over: bool = False

    def played_after(self, envelope: Envelope) -> float:
        """What `played` will be."""
        gap = 0.0 if self.time is None else max(0.0, envelope.time - self.time)
        return self.played + (gap if gap <= SILENT_SECONDS else 0.0)

    def take(self, envelope: Envelope) -> None:
        """The next event."""
        self.played = self.played_after(envelope)
        self.time = envelope.time if self.time is None else max(self.time, envelope.time)
        if isinstance(envelope.event, RunStateChanged):
            self.is_over = envelope.event.state in ENDS


@dataclass(slots=True)
class Scene:
    """All of a recording at one place: what a screen shows there, and from where it goes on."""

    view: RunView = field(default_factory=RunView)
    course: Course = field(default_factory=Course)
    place: LogPosition = field(default_factory=LogPosition)


class Seek(NamedTuple):
    """Where to go. share: of the whole, None for from here; by: so much further; or to a step of a behavior."""

    share: float | None = None
    by: float = 0.0
    behavior: str = ""
    step: int = 0


class Rewinder:
    """Reads the recording once from its beginning, a little at a time, and keeps snapshots. Used by one thread."""

    def __init__(self, open_events: Open) -> None:
        self.is_complete = False  # all that was written until then was read
        self._open = open_events
        self._scene = Scene()
        self._events = open_events(self._scene.place)
        self._snapshots = [Scene()]
        self._num_read, self._spacing = 0, SNAPSHOT_EVENTS

    @property
    def total(self) -> float:
        """Seconds of the recording, as far as it was read."""
        return self._scene.course.played

    def work(self, seconds: float) -> None:
        """Read on for about so long, at most to the end of what is written by now."""
        until = time.monotonic() + seconds
        self.is_complete = False
        while time.monotonic() < until and not self.is_complete:
            for _ in range(CHUNK_EVENTS):
                if not self._read():
                    return
            time.sleep(0)  # the screen has its turn

    def scene(self, seek: Seek, played: float) -> tuple[Scene, Iterator[Envelope | None], Envelope | None]:
        """The recording there, the events that follow, and the first of them where it was read already.

        played: seconds until here, from which `seek` may count.
        """
        target = (played if seek.share is None else seek.share * self.total) + seek.by * self.total
        start = self._before(seek, target)
        scene = Scene(copy.deepcopy(start.view), replace(start.course), replace(start.place))
        events = self._open(scene.place)
        for number, envelope in enumerate(events):
            if envelope is None:
                break
            if not seek.behavior and scene.course.played_after(envelope) > max(0.0, target):
                return scene, events, envelope
            scene.course.take(envelope)
            scene.view.apply(envelope)
            if seek.behavior and _has_reached(scene, seek):
                break
            if number % CHUNK_EVENTS == 0:
                time.sleep(0)
        return scene, events, None

    def _before(self, seek: Seek, target: float) -> Scene:
        best = self._snapshots[0]
        for snapshot in self._snapshots:
            if _has_reached(snapshot, seek) if seek.behavior else snapshot.course.played > target:
                break
            best = snapshot
        return best

    def _read(self) -> bool:
        """One event more; False where there is none, or none that can be read: the replay will say why."""
        try:
            envelope = next(self._events, None)
        except (OSError, ValueError, RlTuiError):
            envelope = None
        if envelope is None:
            self.is_complete = True
            return False
        self._scene.course.take(envelope)
        self._scene.view.apply(envelope)
        self._num_read += 1
        if self._num_read % self._spacing == 0:
            self._keep()
        return True

    def _keep(self) -> None:
        scene = self._scene
        self._snapshots.append(Scene(copy.deepcopy(scene.view), replace(scene.course), replace(scene.place)))
        if len(self._snapshots) > MOST_SNAPSHOTS:
            del self._snapshots[1::2]
            self._spacing *= 2


def _has_reached(scene: Scene, seek: Seek) -> bool:
    behavior = scene.view.behaviors.get(seek.behavior)
    if behavior is None:
        return False
    newest_episode = behavior.returns.steps[-1] if len(behavior.returns) else 0.0  # told more often than progress
    return max(behavior.step, newest_episode) >= seek.step
