"""Seeking in a recorded run: the view at any place is folded from the nearest snapshot before it."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.session.log_position import LogPosition
from rl_tui.engine.session.messages import Envelope, RunStateChanged
from rl_tui.engine.session.reading import CHUNK_EVENTS, in_chunks
from rl_tui.engine.session.states import ENDS
from rl_tui.engine.session.view import RunView

OpenEvents: TypeAlias = Callable[[LogPosition], Iterator[Envelope | None]]

SILENT_SECONDS = 60.0  # a longer gap is between two processes of a run: it is skipped
SNAPSHOT_EVENTS = 2500  # from one to the next at first, which takes a tenth of a second to fold
MOST_SNAPSHOTS = 24  # a few MB each in a long run


@dataclass(slots=True)
class Timeline:
    """Progress through a recording. time: of the newest event; played: seconds without the gaps; is_over: the run.

    Time never goes back, though another process may have written a progress report late.
    """

    time: float | None = None
    played: float = 0.0
    is_over: bool = False

    def played_after(self, envelope: Envelope) -> float:
        """`played` after that event."""
        gap = 0.0 if self.time is None else max(0.0, envelope.time - self.time)
        return self.played + (gap if gap <= SILENT_SECONDS else 0.0)

    def advance(self, envelope: Envelope) -> None:
        """Move to the next event."""
        self.played = self.played_after(envelope)
        self.time = envelope.time if self.time is None else max(self.time, envelope.time)
        if isinstance(envelope.event, RunStateChanged):
            self.is_over = envelope.event.state in ENDS


@dataclass(slots=True)
class Snapshot:
    """A recording at one place: the view there, and where the next events are."""

    view: RunView = field(default_factory=RunView)
    timeline: Timeline = field(default_factory=Timeline)
    place: LogPosition = field(default_factory=LogPosition)

    def copied(self) -> Snapshot:
        """One that does not change with this."""
        return Snapshot(copy.deepcopy(self.view), replace(self.timeline), replace(self.place))


class Seek(NamedTuple):
    """Where to go: `share` of the whole (None: from here) and `by` more of it, or a step of a behavior."""

    share: float | None = None
    by: float = 0.0
    behavior: str = ""
    step: int = 0


class RecordingIndex:
    """Reads the recording once from its beginning, a little at a time, and keeps snapshots. Used by one thread."""

    def __init__(self, open_events: OpenEvents) -> None:
        self.is_complete = False  # everything that was written by then was read
        self._open = open_events
        self._newest = Snapshot()
        self._events = open_events(self._newest.place)
        self._snapshots = [Snapshot()]
        self._num_read, self._spacing = 0, SNAPSHOT_EVENTS

    @property
    def total(self) -> float:
        """Seconds of the recording that were read."""
        return self._newest.timeline.played

    def work(self, seconds: float) -> None:
        """Read for about that many seconds, at most to the end of what is written by now."""
        until = time.monotonic() + seconds
        self.is_complete = False
        while time.monotonic() < until and not self.is_complete:
            for _ in range(CHUNK_EVENTS):
                if not self._read():
                    return
            time.sleep(0)  # the screen may run

    def snapshot(self, seek: Seek, played: float) -> tuple[Snapshot, Iterator[Envelope | None], Envelope | None]:
        """The recording there, the events that follow, and the first of them if it was read already.

        played: seconds until here, from which `seek` may count.
        """
        target = (played if seek.share is None else seek.share * self.total) + seek.by * self.total
        start = self._before(seek, target)
        snapshot = start.copied()
        events = self._open(snapshot.place)
        for envelope in in_chunks(events):
            if envelope is None:
                break
            if not seek.behavior and snapshot.timeline.played_after(envelope) > max(0.0, target):
                return snapshot, events, envelope
            snapshot.timeline.advance(envelope)
            snapshot.view.apply(envelope)
            if seek.behavior and _has_reached(snapshot, seek):
                break
        return snapshot, events, None

    def _before(self, seek: Seek, target: float) -> Snapshot:
        best = self._snapshots[0]
        for snapshot in self._snapshots:
            if _has_reached(snapshot, seek) if seek.behavior else snapshot.timeline.played > target:
                break
            best = snapshot
        return best

    def _read(self) -> bool:
        """One more event; False if there is none, or none that can be read, which the playback will report."""
        try:
            envelope = next(self._events, None)
        except (OSError, ValueError, RlTuiError):
            envelope = None
        if envelope is None:
            self.is_complete = True
            return False
        self._newest.timeline.advance(envelope)
        self._newest.view.apply(envelope)
        self._num_read += 1
        if self._num_read % self._spacing == 0:
            self._keep()
        return True

    def _keep(self) -> None:
        self._snapshots.append(self._newest.copied())
        if len(self._snapshots) > MOST_SNAPSHOTS:
            del self._snapshots[1::2]
            self._spacing *= 2


def _has_reached(snapshot: Snapshot, seek: Seek) -> bool:
    behavior = snapshot.view.behaviors.get(seek.behavior)
    if behavior is None:
        return False
    newest_episode = behavior.returns.steps[-1] if len(behavior.returns) else 0.0  # published more often than progress
    return max(behavior.step, newest_episode) >= seek.step
