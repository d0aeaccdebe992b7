"""The events of a resumed run before it was resumed, read while the engine starts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.session.messages import Envelope
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.runs.reading import in_chunks


class RunHistory:
    """Used in the app's loop; reads in another thread. problem: why not all could be read, "" if it was."""

    def __init__(self, events: Iterator[Envelope]) -> None:
        self.problem = ""
        self._events = events
        self._is_closed = False

    async def read(self) -> RunView:
        """The view with every earlier event, and about to start again."""
        past = await asyncio.to_thread(self._read)
        past.commands.clear()
        past.run, past.state, past.reason, past.exit_code = None, "starting", "", None
        return past

    def close(self) -> None:
        """Stop reading soon."""
        self._is_closed = True

    def _read(self) -> RunView:
        view = RunView()
        try:
            for envelope in in_chunks(self._events):
                if self._is_closed:
                    break
                view.apply(envelope)
        except RlTuiError as error:
            self.problem = safe_text(str(error))
        return view
