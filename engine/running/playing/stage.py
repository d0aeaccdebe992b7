"""The environment of a person who plays: made, drawn, and made again where it fails."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

from rl_tui.engine.errors import CheckpointError, DemonstrationError, ExportError, NotSupportedError, RlTuiError
from rl_tui.engine.running.playing.exchange import Exchange
from rl_tui.engine.running.watching.drawing_variables import drawing_variables
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import StartStopped
from rl_tui.engine.sampling.pools.pictures import Picture
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.session.watching import Pixels, Scene, SceneState

RENDER_MODE = "render_mode"
NO_FAULT_OF_PICTURES = (CheckpointError, DemonstrationError, ExportError, NotSupportedError)


class Stage:
    """Used by the thread of a play. One environment after another, in a process of its own, where one fails.

    source: not yet drawn. timeout: seconds after which a call counts as hung. picture: the newest, or why there is
    none.
    """

    def __init__(self, source: EnvironmentSource, timeout: float, exchange: Exchange[Any]) -> None:
        self.picture = Picture()
        self._source, self._timeout, self._exchange = source, timeout, exchange

    def play(self, play_in: Callable[[ProcessPool], None], recover: Callable[[RlTuiError], None]) -> None:
        """Until the play is over. play_in: has started no environment yet. recover: a failure was noticed after the
        first turn, and another environment comes after this. Raises RlTuiError for a failure before."""
        given = self._source
        source = given.showing_frames() if RENDER_MODE in given.kwargs else given.watched()
        while not self._exchange.is_finished:
            try:
                pool = ProcessPool(source, 1, 1, self._timeout, variables=drawing_variables())
                with contextlib.closing(pool):
                    play_in(pool)
            except StartStopped:
                return
            except NO_FAULT_OF_PICTURES:
                raise
            except RlTuiError as error:
                if self._exchange.is_begun:
                    recover(error)
                elif source is given:
                    raise
                else:  # it may be playable without a picture
                    self.picture, source = Picture(reason=str(error)), given

    def draw(self, pool: ProcessPool) -> None:
        """The newest picture, unless the environment has none."""
        if self._exchange.is_finished or self.picture.reason:
            return
        picture = pool.picture(0, *self._exchange.size, lambda: not self._exchange.is_finished)
        self.picture = self.picture if picture is None else picture

    def drawn_in(self, scene: Scene, state: SceneState, reason: str) -> Scene:
        """The scene with the picture. reason: of a failure."""
        frame = self.picture.pixels
        return dataclasses.replace(
            scene,
            state=state,
            reason=reason,
            pixels=None if frame is None else Pixels(frame.shape[1], frame.shape[0], frame.tobytes()),
            text=self.picture.text,
            undrawn=self.picture.reason,
        )
