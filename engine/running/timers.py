"""Where the time went: the tree and the gauges of run_logs/timers.json, in ML-Agents' shape."""

from __future__ import annotations

import importlib.metadata
import math
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType

from engine.session.messages import Envelope, MetricsReported
from engine.specs import Json
from engine.version import VERSION

EPISODE_LENGTH = "Environment/Episode Length"
TIMER_FORMAT_VERSION = "0.1.0"  # of the files that mlagents-learn writes


class Timer:
    """One node of the tree: seconds and calls, summed. Written by one thread; others may read.

    A hot loop keeps the timer at hand and calls `add` with a difference of `time.perf_counter()`; elsewhere
    `with timer:` measures a block. A timer cannot be entered twice at once.
    """

    __slots__ = ("_entered_at", "children", "count", "is_parallel", "name", "total")

    def __init__(self, name: str, *, is_parallel: bool = False):
        self.name = name
        self.total = 0.0
        self.count = 0
        self.is_parallel = is_parallel
        self.children: dict[str, Timer] = {}
        self._entered_at = 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        """Count `count` more calls that took `seconds` together."""
        self.total += seconds
        self.count += count

    def node(self, name: str) -> Timer:
        """The child of that name, made when it is new."""
        if name not in self.children:
            self.children[name] = Timer(name, is_parallel=self.is_parallel)
        return self.children[name]

    def __enter__(self) -> Timer:
        self._entered_at = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.add(time.perf_counter() - self._entered_at)

    def merge(self, other: Timer) -> None:
        """Add another tree's times and calls to this one's, node by node; a parallel node makes its twin parallel."""
        self.add(other.total, other.count)
        self.is_parallel |= other.is_parallel
        for child in tuple(other.children.values()):
            self.node(child.name).merge(child)

    def as_json(self) -> dict[str, Json]:
        """The node as timers.json has it. self: the seconds that no child accounts for, never below zero."""
        children = tuple(self.children.values())
        body: dict[str, Json] = {"total": self.total, "count": self.count}
        if self.is_parallel:
            body["is_parallel"] = True
        body["self"] = max(0.0, self.total - sum(child.total for child in children))
        if children:
            body["children"] = {child.name: child.as_json() for child in children}
        return body


class Timers:
    """One thread's tree. Written by the thread that owns it; any thread may write it out as JSON.

    name: under which another thread's tree appears in the run's. The root counts from the moment of its making, or as
    much as its nodes together where a tree is filled in afterwards.
    """

    def __init__(self, name: str = "root"):
        self.name = name
        self.started_at = time.time()
        self._began = time.perf_counter()
        self._root = Timer(name)

    def node(self, *path: str) -> Timer:
        """The timer at that path below the root, made when it is new."""
        timer = self._root
        for name in path:
            timer = timer.node(name)
        return timer

    def as_json(
        self,
        metadata: Mapping[str, str],
        gauges: Mapping[str, Gauge] | None = None,
        parallel: Iterable[Timers] = (),
    ) -> dict[str, Json]:
        """The whole of timers.json. Trees in `parallel`, of other threads, stand under "trainer_threads" by their name.

        The trees themselves stay as they are: this may be called again and again while a run goes on.
        """
        root = self._snapshot()
        for tree in parallel:
            _merge_parallel(root.node("trainer_threads").node(tree.name), tree._snapshot())
        head: dict[str, Json] = {
            "name": self.name,
            "gauges": {name: gauge.as_json() for name, gauge in (gauges or {}).items()},
            "metadata": dict(metadata),
        }
        return head | root.as_json()

    def _snapshot(self) -> Timer:
        copy = Timer(self.name)
        copy.merge(self._root)
        told = sum(child.total for child in copy.children.values())
        copy.total, copy.count = max(time.perf_counter() - self._began, told), 1
        return copy


def _merge_parallel(target: Timer, source: Timer) -> None:
    """Merge and mark every node: its seconds ran beside those of the root's thread."""
    target.merge(source)
    pending = [target]
    while pending:
        timer = pending.pop()
        timer.is_parallel = True
        pending.extend(timer.children.values())


def run_metadata(started_at: float, command_line: Iterable[str] | None = None) -> dict[str, str]:
    """The metadata of timers.json as of now, all of it text. started_at: wall time at which the run began."""
    return {
        "timer_format_version": TIMER_FORMAT_VERSION,
        "start_time_seconds": str(int(started_at)),
        "python_version": sys.version.replace("\n", " "),
        "command_line_arguments": " ".join(sys.argv if command_line is None else command_line),
        "rl_tui_version": VERSION,
        "pytorch_version": _version("torch"),
        "numpy_version": _version("numpy"),
        "end_time_seconds": str(int(time.time())),
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


@dataclass(slots=True)
class Gauge:
    """The newest value of one statistic, with its extremes and how often it was set."""

    value: float
    min: float
    max: float
    count: int = 1

    def set(self, value: float) -> None:
        """Take the newest value in."""
        self.value, self.min, self.max = value, min(self.min, value), max(self.max, value)
        self.count += 1

    def as_json(self) -> dict[str, Json]:
        """The gauge as timers.json has it."""
        return {"value": self.value, "min": self.min, "max": self.max, "count": self.count}


class GaugeWriter:
    """Keeps the gauges of timers.json. Written by one thread; others may read `gauges`.

    Names are ML-Agents': `<behavior>.<tag>.mean` with dots for slashes and without spaces. `.sum` stands only where a
    summary carries one: the step, whether it trains, returns and lengths of episodes. A value that is not finite is
    left out.
    """

    def __init__(self) -> None:
        self._gauges: dict[str, Gauge] = {}

    @property
    def gauges(self) -> dict[str, Gauge]:
        """Gauges by name, in order of appearance."""
        return dict(self._gauges)

    def write(self, envelope: Envelope) -> None:
        """Take a summary in; every other event sets no gauge."""
        event = envelope.event
        if not isinstance(event, MetricsReported):
            return
        single = {"Step": float(event.step), "Is Training": float(event.is_training)}
        for tag, value in {**event.metrics, **single}.items():
            self._set(event.behavior, tag, "mean", value)
        for tag, value in single.items():
            self._set(event.behavior, tag, "sum", value)
        if event.returns is not None:
            self._set(event.behavior, "Environment/Cumulative Reward", "sum", event.returns.total)
            if EPISODE_LENGTH in event.metrics:
                self._set(event.behavior, EPISODE_LENGTH, "sum", event.metrics[EPISODE_LENGTH] * event.returns.count)

    def close(self) -> None:
        """Nothing is held open."""

    def _set(self, behavior: str, tag: str, aggregate: str, value: float) -> None:
        if not math.isfinite(value):
            return
        name = f"{behavior}.{tag}.{aggregate}".replace("/", ".").replace(" ", "")
        gauge = self._gauges.get(name)
        if gauge is None:
            self._gauges[name] = Gauge(value, value, value)
        else:
            gauge.set(value)
