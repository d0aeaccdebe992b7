"""Where the time went: the tree and the gauges of run_logs/timers.json, in ML-Agents' shape and under its names."""

from __future__ import annotations

import importlib.metadata
import math
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rl_tui.engine.session.messages import Envelope, MetricsReported, TimeSplit
from rl_tui.engine.specs import Json
from rl_tui.engine.version import VERSION

TIMER_FORMAT_VERSION = "0.1.0"  # of the files that mlagents-learn writes
Node = dict[str, Json]


def timers_json(
    seconds: float, splits: Mapping[str, TimeSplit], gauges: Mapping[str, Gauge], metadata: Mapping[str, str]
) -> Node:
    """The whole file. seconds: what the run took. splits: the last one of each behavior.

    Behaviors train beside each other: their trees stand under "trainer_threads", parallel as ML-Agents' workers.
    """
    behaviors = {name: _behavior_node(split) for name, split in splits.items()}
    threads = {"trainer_threads": _node(0.0, behaviors)} if behaviors else {}
    return {
        "name": "root",
        "gauges": {name: gauge.as_json() for name, gauge in gauges.items()},
        "metadata": dict(metadata),
        **_node(seconds, threads),
    }


def _behavior_node(split: TimeSplit) -> Node:
    """ML-Agents' names where it measures the same."""
    acting = split.environment_seconds + split.inference_seconds
    parts = {
        "env_step": _node(acting, {"TorchPolicy.evaluate": _node(split.inference_seconds, is_parallel=True)}, True),
        "trainer_advance": _node(split.update_seconds, is_parallel=True),
        "waiting": _node(split.waiting_seconds, is_parallel=True),
        "other": _node(split.other_seconds, is_parallel=True),
    }
    return _node(acting + split.update_seconds + split.waiting_seconds + split.other_seconds, parts, True)


def _node(seconds: float, children: Mapping[str, Node] | None = None, is_parallel: bool = False) -> Node:
    """self: the seconds that no child accounts for, never below zero: parallel children take more than there are."""
    parallel: Node = {"is_parallel": True} if is_parallel else {}
    below: Node = {"children": dict(children)} if children else {}
    own = seconds - sum(float(str(child["total"])) for child in (children or {}).values())
    return {"total": seconds, "count": 1, **parallel, "self": max(0.0, own), **below}


def run_metadata(started_at: float, command_line: Iterable[str] | None = None) -> dict[str, str]:
    """The metadata of timers.json as of now, all of it text. started_at: wall time at which the run began."""
    return {
        "timer_format_version": TIMER_FORMAT_VERSION,
        "start_time_seconds": str(int(started_at)),
        "python_version": sys.version.replace("\n", " "),
        "command_line_arguments": " ".join(sys.argv if command_line is None else command_line),
        "rl_tui_version": VERSION,
        "mlagents_version": _version("mlagents"),
        "mlagents_envs_version": _version("mlagents_envs"),
        "communication_protocol_version": "not used",
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

    Names are ML-Agents': `<behavior>.<tag>.mean` and `.sum` with dots for slashes and without spaces. A value that is
    not finite is left out.
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
            self._set(event.behavior, tag, "sum", value * event.counts.get(tag, 1))

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
