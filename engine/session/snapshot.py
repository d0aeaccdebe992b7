"""A view as JSON lines: first all but its curves, then one curve after the other, those that are drawn first.

The first line is {"v": 1, "view": {...}}; that of a curve {"v": 1, "curve": [behavior, tag], ...fields}, where the
behavior is null for devices, and the tag null for a behavior's count of episodes.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import TypeAlias

from rl_tui.engine.session.behavior_view import EVALUATION, RETURN, BehaviorView
from rl_tui.engine.session.codec import SCHEMA_VERSION, parse
from rl_tui.engine.session.history import HISTORY_POINTS, History
from rl_tui.engine.session.plain import from_plain, to_plain
from rl_tui.engine.session.view import RunView

Curve: TypeAlias = tuple[str | None, str | None]  # behavior and tag, see above
DRAWN_FIRST = (RETURN, EVALUATION)  # tags of curves that the first picture of a screen has


class Snapshot:
    """A view as it was when this was made. Each line takes a few milliseconds to encode.

    first: the line of all but curves. curves: those that are to follow, in the view's order.
    """

    def __init__(self, view: RunView):
        self._histories = {curve: history.copy() for curve, history in _curves(view)}
        self.curves: tuple[Curve, ...] = tuple(self._histories)
        self.first = json.dumps({"v": SCHEMA_VERSION, "view": to_plain(_without_curves(view))})

    def line(self, curve: Curve) -> str:
        """The line of this curve."""
        return json.dumps({"v": SCHEMA_VERSION, "curve": curve} | to_plain(self._histories[curve]))


class SnapshotReader:
    """A view that lines arrive for: usable after the first, complete after all. Raises ValueError on other lines."""

    def __init__(self, first: str):
        body = parse(first, "a view")
        try:
            self.view: RunView = from_plain(body["view"], RunView)
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"not a complete view: {first[:80]!r} ({error})") from error
        self._missing = {curve for curve, _ in _curves(self.view)}

    @property
    def is_complete(self) -> bool:
        """Whether every curve has come."""
        return not self._missing

    def add(self, line: str) -> Curve:
        """The next curve, which is in its place; returns which one it is."""
        body = parse(line, "a curve")
        try:
            curve: Curve = from_plain(body["curve"], tuple[str | None, str | None])
            history: History = from_plain(body, History)
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"not a complete curve: {line[:80]!r} ({error})") from error
        if curve not in self._missing:
            raise ValueError(f"the view has no such curve, or it has come before: {line[:80]!r}")
        _require_whole(history)
        self._missing.discard(curve)
        _put(self.view, curve, history)
        return curve


def _curves(view: RunView) -> Iterator[tuple[Curve, History]]:
    for name, behavior in view.behaviors.items():
        yield from (((name, tag), history) for tag, history in behavior.histories.items())
        yield (name, None), behavior.episode_counts
    yield from (((None, tag), history) for tag, history in view.device_histories.items())


def _put(view: RunView, curve: Curve, history: History) -> None:
    behavior, tag = curve
    if behavior is None:
        assert tag is not None
        view.device_histories[tag] = history
    elif tag is None:
        view.behaviors[behavior].episode_counts = history
    else:
        view.behaviors[behavior].histories[tag] = history


def _without_curves(view: RunView) -> RunView:
    """The same with empty ones."""

    def bare(behavior: BehaviorView) -> BehaviorView:
        empty = {tag: History() for tag in behavior.histories}
        return dataclasses.replace(behavior, histories=empty, episode_counts=History())

    behaviors = {name: bare(behavior) for name, behavior in view.behaviors.items()}
    devices = {tag: History() for tag in view.device_histories}
    return dataclasses.replace(view, behaviors=behaviors, device_histories=devices)


def _require_whole(history: History) -> None:
    """Raise ValueError where its columns do not belong together."""
    columns = (history.times, history.low, history.high, history.mean, history.counts, history.broken)
    count = len(history.steps)
    if count > HISTORY_POINTS or any(len(column) != count for column in columns):
        raise ValueError(f"a curve must have columns of one length, at most {HISTORY_POINTS}")
    if history.stride < 1 or not 0 <= history.filling <= history.stride or (history.filling and not count):
        raise ValueError("a curve must have a stride of at least 1, in which its last bucket fills")
