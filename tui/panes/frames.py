"""Single panes painted more often than the rest of the screen: a watched play."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from textual.app import App

from rl_tui.tui.drawing.pacing import FramePace
from rl_tui.tui.drawing.painting import PatchUpdate, spots
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.textual_private import paint


class Frames:
    """Owned by the app. frame: what the panes draw; may_paint: whether the view follows; is_training: whether something
    trains, which should not be slowed down."""

    def __init__(
        self,
        app: App[Any],
        frame: Callable[[], Frame],
        bytes_per_second: float,
        may_paint: Callable[[], bool],
        is_training: Callable[[], bool],
    ) -> None:
        self._app, self._frame, self._may_paint, self._is_training = app, frame, may_paint, is_training
        self._pace = FramePace(bytes_per_second)
        self._painted_at, self._process_used = time.monotonic(), time.process_time()

    @property
    def seconds(self) -> float:
        """From one picture to the next."""
        return self._pace.seconds

    @property
    def is_ready(self) -> bool:
        """Whether the terminal has taken the last picture, and the next one is wanted."""
        return self._may_paint()

    def paint(self, panes: Sequence[Pane]) -> None:
        """These panes of the screen on top are up to date."""
        screen, began = self._app.screen, time.thread_time()
        frame, where = self._frame(), spots(screen)
        patches = [patch for pane in panes for patch in pane.draw(frame, where.get(pane), must=True)]
        paint(self._app, screen, PatchUpdate(patches) if patches else None)
        size = sum(len(patch.text) for patch in patches)
        now, used = time.monotonic(), time.process_time()
        busy = (used - self._process_used) / max(now - self._painted_at, 1e-6)
        self._painted_at, self._process_used = now, used
        self._pace.drew(time.thread_time() - began, size, busy=busy, is_training=self._is_training())
