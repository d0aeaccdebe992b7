"""The newest policy of the selected behavior at play, in an environment of its own."""

from __future__ import annotations

import time

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal

from rl_tui.engine.session.watching import Scene, WatchCommand
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.picture import PicturePane
from rl_tui.tui.panes.watched import WatchedPane
from rl_tui.tui.screens.base import RunScreen
from rl_tui.tui.screens.context import Context
from rl_tui.tui.textual_private import fire_late

SILENT_SECONDS = 2.0  # without a scene while it plays, after which the screen says so
RETRY_SECONDS = 0.5  # from one try to begin to the next, while there is no policy yet


class WatchScreen(RunScreen):
    """Owns the play: it begins when the screen opens or another behavior is selected, and ends when it is left.

    Only what is seen is drawn: behind a dialog, or while the terminal has not taken the last picture, the play goes on
    unseen.
    """

    BINDINGS = bindings("watch")
    places = ("watch",)

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(context, name)
        self.picture, self.watched = PicturePane(), WatchedPane()
        self._behavior = ""
        self._began_at = 0.0
        self._last_scene_at = 0.0

    def body(self) -> ComposeResult:
        """The picture, and the figures beside or above it."""
        with Horizontal(id="watch"):
            yield self.picture
            yield self.watched

    def on_mount(self) -> None:
        """Look for scenes from now on."""
        super().on_mount()
        self.call_after_refresh(self._look)

    def on_unmount(self) -> None:
        """The play is no longer watched."""
        self.context.watching.end()

    def on_resize(self, event: events.Resize) -> None:
        """The picture has other room."""
        self.call_after_refresh(lambda: self.context.watching.resize(self.picture.pixels_wanted))

    def _look(self) -> None:
        """Show the newest scene if there is one, and look again as soon as the next one may be drawn."""
        if not self.is_attached:
            return
        fire_late(self.set_timer(self._show_newest(), self._look))

    def _show_newest(self) -> float:
        """What there is has been drawn; returns the seconds until the next look."""
        if self.app.screen is not self:
            return RETRY_SECONDS
        now = time.monotonic()
        self._follow_selection(now)
        frames = self.context.frames
        scene = self.context.watching.pop_scene() if frames.is_ready else None
        if scene is not None:
            self._last_scene_at = now
            self._take(scene)
        elif self._has_gone_silent(now):
            frames.paint([self.watched])
        return frames.seconds

    def _take(self, scene: Scene) -> None:
        has_changed = self.picture.scene is None or self.picture.scene.state != scene.state
        self.picture.scene = self.watched.scene = scene
        self.watched.waits = 0.0
        self.context.frames.paint([self.picture, self.watched])
        if has_changed:
            self.context.redraw()

    def _has_gone_silent(self, now: float) -> bool:
        scene = self.watched.scene
        if scene is None or scene.state != "playing" or now - self._last_scene_at < max(SILENT_SECONDS, 3 / scene.hz):
            return False
        self.watched.waits = now - self._last_scene_at
        return True

    def _follow_selection(self, now: float) -> None:
        """The behavior that is selected is the one that plays."""
        selected = self.context.controls.selected
        name = "" if selected is None else selected.name
        if (name == self._behavior and not self.picture.words) or now - self._began_at < RETRY_SECONDS:
            return
        self._began_at, self._behavior = now, name
        words = self.context.watching.begin(name, self.picture.pixels_wanted)
        if words != self.picture.words or not words:
            self.picture.words, self.picture.scene, self.watched.scene = words, None, None
            self.context.redraw()

    def _send(self, command: WatchCommand) -> None:
        scene = self.watched.scene
        if scene is None:
            self.say(f"watch: {self.picture.words or 'nothing to show yet'}")
        elif scene.state == "failed" and command != "restart":
            self.say(f"watch: it has failed; {self.context.keymap.of_id('watch-restart').shown} restarts it")
        else:
            self.context.watching.send(command)

    def action_freeze(self) -> None:
        """Here the play is what is held still."""
        scene = self.watched.scene
        self._send("resume" if scene is not None and scene.state == "paused" else "pause")

    def action_watch_step(self) -> None:
        """One step, and hold still."""
        self._send("step")

    def action_watch_restart(self) -> None:
        """Begin an episode."""
        self._send("restart")

    def action_watch_renew(self) -> None:
        """The newest policy plays from now on."""
        self._send("renew")

    def action_watch_greedy(self) -> None:
        """The most likely actions, or drawn ones."""
        scene = self.watched.scene
        self._send("drawn" if scene is None or scene.is_greedy else "greedy")
