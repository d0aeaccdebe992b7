"""Texts of events, which an environment may make as long as it likes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, get_args

from rl_tui.engine.session.messages import Event

LONGEST_TEXT = 64_000  # bytes
_HEAD = 40_000  # the rest is its end: a traceback ends with the error
_TEXTS = {kind: [field.name for field in dataclasses.fields(kind) if field.type == "Text"] for kind in get_args(Event)}


def shorten(text: str, keep: Callable[[str], str] | None = None) -> str:
    """The text, or of one with more than LONGEST_TEXT bytes both ends.

    keep: called with a text that is too long; returns where it is whole, "" if it is nowhere.
    """
    if len(text) <= LONGEST_TEXT // 4:  # of at most four bytes each
        return text
    content = text.encode(errors="replace")
    if len(content) <= LONGEST_TEXT:
        return text
    where = keep(text) if keep is not None else ""
    whole = f"; the whole text is in {where}" if where else ""
    note = f"\n[... {len(content) - LONGEST_TEXT} bytes are left out here{whole} ...]\n"
    tail = content[_HEAD - LONGEST_TEXT :]
    return content[:_HEAD].decode(errors="ignore") + note + tail.decode(errors="ignore")


def with_short_texts(event: Event, keep: Callable[[str], str] | None = None) -> Event:
    """The event with every text shortened, see `shorten`. Names are no texts: they must stay what they are."""
    names = _TEXTS[type(event)]
    if not names:  # as of those that a run publishes most
        return event
    texts = {name: getattr(event, name) for name in names}
    changes: dict[str, Any] = {
        name: short for name, text in texts.items() if (short := shorten(text, keep)) is not text
    }
    return dataclasses.replace(event, **changes) if changes else event
