"""run_logs/timers.json in ML-Agents' format: where the time of each behavior went, and gauges of its summaries."""

from __future__ import annotations

import importlib.metadata
import math
import sys
import time
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from rl_tui.engine.session.messages import Event, MetricsReported, TimeSplit
from rl_tui.engine.specs import Json
from rl_tui.engine.version import VERSION

TIMER_FORMAT_VERSION = "0.1.0"  # of the files that mlagents-learn writes
Node: TypeAlias = dict[str, Json]


class Timers:
    """Written by one thread, read once it has ended.

    A gauge is named as by ML-Agents: `<behavior>.<tag>.mean` and `.sum` with dots for slashes and without spaces. It
    has the newest value, the extremes, and how often it was set; values that are not finite are left out.
    """

    def __init__(self) -> None:
        self._splits: dict[str, TimeSplit] = {}
        self._gauges: dict[str, dict[str, float]] = {}

    def add(self, event: Event) -> None:
        """Keep the last time split of each behavior, and the metrics of its summaries."""
        match event:
            case TimeSplit():
                self._splits[event.behavior] = event
            case MetricsReported():
                single = {"Step": float(event.step), "Is Training": float(event.is_training)}
                for tag, value in {**event.metrics, **single}.items():
                    self._set(f"{event.behavior}.{tag}.mean", value)
                    self._set(f"{event.behavior}.{tag}.sum", value * event.counts.get(tag, 1))

    def _set(self, name: str, value: float) -> None:
        if not math.isfinite(value):
            return
        name = name.replace("/", ".").replace(" ", "")
        old = self._gauges.get(name, {"min": value, "max": value, "count": 0})
        low, high = min(old["min"], value), max(old["max"], value)
        self._gauges[name] = {"value": value, "min": low, "max": high, "count": old["count"] + 1}

    def as_json(self, seconds: float, metadata: Mapping[str, str]) -> Node:
        """The whole file. seconds: the duration of the run.

        Behaviors train in parallel: their nodes are under "trainer_threads", parallel as ML-Agents' workers are.
        """
        behaviors = {name: _behavior_node(split) for name, split in self._splits.items()}
        threads = {"trainer_threads": _node(0.0, 0.0, behaviors, is_parallel=False)} if behaviors else {}
        gauges: Node = {name: dict(gauge) for name, gauge in self._gauges.items()}
        tree = _node(seconds, seconds, threads, is_parallel=False)
        return {"name": "root", "gauges": gauges, "metadata": dict(metadata), **tree}


def _behavior_node(split: TimeSplit) -> Node:
    """Named as by ML-Agents where it measures the same."""
    environment, inference, update = split.environment_seconds, split.inference_seconds, split.update_seconds
    acting, waiting, other = environment + inference, split.waiting_seconds, split.other_seconds
    parts = {
        "env_step": _node(acting, environment, {"TorchPolicy.evaluate": _node(inference, inference)}),
        "trainer_advance": _node(update, update),
        "waiting": _node(waiting, waiting),
        "other": _node(other, other),
    }
    return _node(acting + update + waiting + other, 0.0, parts)


def _node(total: float, own: float, children: Mapping[str, Node] | None = None, is_parallel: bool = True) -> Node:
    """total: seconds. own: those of no child."""
    node: Node = {"total": total, "count": 1, **({"is_parallel": True} if is_parallel else {}), "self": own}
    return node | {"children": dict(children)} if children else node


def run_metadata(started_at: float, command_line: Iterable[str] | None = None) -> dict[str, str]:
    """The metadata of timers.json as of now, all of it text. started_at: Unix seconds at which the run began."""
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
