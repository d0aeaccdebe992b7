"""A screen over a fake session, driven by keys, at a time that stands still until the run reports something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rl_tui.engine.session.messages import Event
from rl_tui.engine.session.view import RunView
from rl_tui.engine.session.watching import Watching
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.runs.sources import Player, Runs
from rl_tui.tui.screens.base import RunScreen
from rl_tui.tui.screens.chart_actions import ChartActions
from rl_tui.tui.state.preferences import Preferences
from tests.fakes import FakeSession
from tests.tui.connections import Connection, SessionOverSocket
from tests.tui.settling import settle, until_shown
from tests.tui.snapshots import screen_text


class Driven:
    """Open it with `async with`; what it shows comes back as text.

    opened: the screen it begins with; answers: whether the session does; session: a replay instead of the fake one; the
    rest as for TrainerApp.
    """

    def __init__(
        self,
        view: RunView,
        size: tuple[int, int] = (80, 24),
        *,
        opened: str = "",
        runs: Runs | None = None,
        is_ascii: bool = False,
        answers: bool = True,
        refuses: str = "",
        forbids: str = "",
        player: Player | None = None,
        notifications: bool = False,
        preferences: Preferences | None = None,
        watching: Watching | None = None,
        session: Any = None,
        screen_name: str = "",
        why_not_leave: str = "",
    ) -> None:
        kind = SessionOverSocket if Connection.is_by_socket else FakeSession
        self.session = session or kind(view, answers=answers, watching=watching)
        self.now = view.now + 2
        self.app = TrainerApp(
            self.session,
            clock=lambda: self.now,
            runs=runs,
            ascii=is_ascii,
            refuses=refuses,
            forbids=forbids,
            player=player,
            preferences=preferences,
            screen_name=screen_name,
            why_not_leave=lambda: why_not_leave,
        )
        self._opened = opened
        self._running = self.app.run_test(size=size, notifications=notifications)

    async def __aenter__(self) -> Driven:
        self.pilot = await self._running.__aenter__()
        await settle(self.app)  # Textual has given a pane the keys
        if self._opened:
            self.screen.action_open_screen(self._opened)
            await self.tick()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._running.__aexit__(*error)
        if isinstance(self.session, SessionOverSocket):
            self.session.close()

    @property
    def view(self) -> RunView:
        """What it shows."""
        return self.session.live.view

    @property
    def screen(self) -> RunScreen:
        """The one on top."""
        assert isinstance(self.app.screen, RunScreen)
        return self.app.screen

    @property
    def drawn(self) -> list[str]:
        """The metrics of its chart."""
        assert isinstance(self.app.screen, ChartActions)
        return self.app.screen.drawn

    @property
    def clipboard(self) -> str:
        """What was copied last."""
        return self.app.clipboard

    async def text(self) -> str:
        """What the terminal shows after a tick."""
        await self.tick()
        return screen_text(self.app)

    async def tick(self) -> None:
        """A picture is due, and drawn."""
        await settle(self.app)
        self.app.tick()
        await settle(self.app)

    async def press(self, *keys: str) -> str:
        """What it shows after the keys, one after the other, each of which had its picture."""
        for key in keys:
            await self.pilot.press(key)
            await self.tick()
        return screen_text(self.app)

    async def publish(self, *events: Event) -> str:
        """What it shows a second after the run reported these."""
        for event in events:
            self.session.bus.publish(event)
        self.now += 1
        return await self.text()

    async def until(self, words: str | Callable[[str], bool]) -> str:
        """What it shows as soon as it shows these words: files are read in other threads."""
        return await until_shown(self.text, words)
