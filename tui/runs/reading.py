"""Reading long files of events in a thread, without slowing the screen down."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TypeVar

CHUNK_EVENTS = 20  # about 1 ms of Python: longer ones make keys wait

T = TypeVar("T")


def in_chunks(events: Iterator[T]) -> Iterator[T]:
    """The same events; other threads run between chunks of them, since a long file takes half a minute."""
    for number, event in enumerate(events, start=1):
        yield event
        if number % CHUNK_EVENTS == 0:
            time.sleep(0)
