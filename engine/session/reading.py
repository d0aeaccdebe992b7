"""Reading long recordings in a thread, without slowing down the others."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rl_tui.engine.session.messages import Envelope
from rl_tui.engine.session.view import RunView

CHUNK_EVENTS = 20  # about 1 ms of Python: longer ones make keys wait

T = TypeVar("T")


def in_chunks(events: Iterable[T]) -> Iterator[T]:
    """The same events; other threads run between chunks of them, since a long file takes half a minute."""
    for number, event in enumerate(events, start=1):
        yield event
        if number % CHUNK_EVENTS == 0:
            time.sleep(0)


def read_past(view: RunView, events: Iterable[Envelope]) -> None:
    """Fold in what a run has reported before it was resumed: the view is then about to start again."""
    try:
        for envelope in in_chunks(events):
            view.apply(envelope)
    finally:
        view.commands.clear()
        view.run, view.state, view.reason, view.exit_code = None, "starting", "", None
