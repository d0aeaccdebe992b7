"""Long files of events, read in a thread beside the screen."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rl_tui.engine.session.messages import Envelope

CHUNK_EVENTS = 20  # about 1 ms of Python: longer ones make keys wait for it


def politely(events: Iterator[Envelope]) -> Iterator[Envelope]:
    """The same events; between chunks the other threads have their turn, for a long file takes half a minute."""
    for number, envelope in enumerate(events, start=1):
        yield envelope
        if number % CHUNK_EVENTS == 0:
            time.sleep(0)
