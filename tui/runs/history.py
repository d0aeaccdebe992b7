"""The events of a resumed run before it was resumed, read while the engine starts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import takewhile

from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.session.messages import Envelope
from rl_tui.engine.session.reading import read_past
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView


class RunHistory:
    """Used in the app's loop; reads in another thread. problem: why not all could be read, "" if it was."""

    def __init__(self, events: Iterator[Envelope]) -> None:
        self.problem = ""
        self._events = events
        self._is_closed = False

    async def read(self) -> RunView:
        """The view with every earlier event, and about to start again."""
        view = RunView()
        await asyncio.to_thread(self._read, view)
        return view

    def close(self) -> None:
        """Stop reading soon."""
        self._is_closed = True

    def _read(self, view: RunView) -> None:
        try:
            read_past(view, takewhile(lambda _: not self._is_closed, self._events))
        except RlTuiError as error:
            self.problem = safe_text(str(error))
