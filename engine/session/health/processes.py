"""Rules about processes of a run that take ever more memory or descriptors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from rl_tui.engine.session.health.machine import SAMPLES, Moment, gib
from rl_tui.engine.session.health.rules import Finding, Streak, Verdict
from rl_tui.engine.session.messages import DevicesSampled, RunProcess

WARM_UP_SECONDS = 60.0  # of a process, in which it gets its buffers and caches
POINT_SECONDS = 10.0  # between two values that are kept at first
MOST_POINTS = 64  # then every other one goes
LEAST_POINTS = 16
MOST_KNOWN = 64  # processes
Point: TypeAlias = tuple[float, int, float]  # seconds, steps, value
LEAST_BYTES, LEAST_DESCRIPTORS = 32 << 20, 64  # that count as growth


@dataclass(frozen=True, slots=True)
class Growth:
    """How much a process grows; 0 where it does not. Its last sample is `process`."""

    process: RunProcess
    per_1000_steps: float
    per_second: float


def _growth(process: RunProcess, points: list[Point], least: float) -> Growth | None:
    """Where a quantity has grown steadily, by `least` or more, or grows no more; None in between.

    What it never falls below counts: it goes up and down as garbage is collected. A cache that fills grows ever less:
    the last of four parts must bring half of what each brought on average. One leap is no growth, as where libraries
    are loaded for the first export: every part must bring a fourth of that.
    """
    quarter = len(points) // 4
    if 4 * quarter < LEAST_POINTS:
        return None
    parts = [points[at * quarter : (at + 1) * quarter] for at in range(4)]
    floors = [min(value for _, _, value in part) for part in parts]
    rises = [after - before for before, after in pairwise(floors)]
    total, newest = sum(rises), rises[1] + rises[2]  # it may have begun in the first part
    seconds, steps = parts[3][0][0] - parts[1][0][0], parts[3][0][1] - parts[1][0][1]
    if rises[-1] < total / 12 or total <= 0:
        return Growth(process, 0.0, 0.0)
    if total < least or min(rises) < total / 12 or rises[-1] < total / 6 or steps <= 0:
        return None
    return Growth(process, 1000 * newest / steps, newest / seconds)


@dataclass(slots=True)
class _Series:
    """A quantity of one process over all its time, ever more rarely."""

    began_at: float
    interval: float = POINT_SECONDS
    points: list[Point] = field(default_factory=list)

    def add(self, at: Moment, value: float) -> None:
        """Keep the value if it is time for one."""
        if self.points and at.steps < self.points[-1][1]:  # it was rolled back
            self.points.clear()
        if at.seconds - self.began_at < WARM_UP_SECONDS:
            return
        if not self.points or at.seconds - self.points[-1][0] >= self.interval:
            self.points.append((at.seconds, at.steps, value))
        if len(self.points) > MOST_POINTS:
            self.points, self.interval = self.points[::2], 2 * self.interval

    @property
    def spans(self) -> tuple[list[Point], ...]:
        """All of it, and once there is enough of that the newer half: growth may begin late."""
        half = self.points[len(self.points) // 2 :]
        return (self.points, half) if len(half) >= LEAST_POINTS else (self.points,)


class Grows:
    """A process of the run takes ever more of something: what is not needed any more is kept.

    value_of: what is measured. least: that counts as growth. finding: what is said of the process that grows most.
    """

    def __init__(
        self,
        value_of: Callable[[RunProcess], float],
        least: float,
        finding: Callable[[Growth, DevicesSampled], Finding],
    ):
        self._value_of, self._least, self._finding = value_of, least, finding
        self._series: dict[int, _Series] = {}  # by process id

    def judge(self, sample: DevicesSampled, at: Moment) -> Verdict:
        """Judge by all samples so far. While a replay buffer fills, nothing grows."""
        if at.is_filling:
            self._series.clear()
            return None
        if len(self._series) > MOST_KNOWN:
            pids = {process.pid for process in sample.processes}
            self._series = {pid: series for pid, series in self._series.items() if pid in pids}
        found: list[Growth | None] = []
        for process in sample.processes:
            series = self._series.setdefault(process.pid, _Series(at.seconds))
            series.add(at, self._value_of(process))
            found += (_growth(process, points, self._least) for points in series.spans)
        known = [growth for growth in found if growth is not None]
        fastest = max(known, key=lambda growth: growth.per_second, default=None)
        if fastest is not None and fastest.per_second > 0:
            return self._finding(fastest, sample)
        return "fine" if len(known) == len(found) else None


def memory_grows() -> Grows:
    """The rule about memory."""
    return Grows(lambda process: process.memory_bytes, LEAST_BYTES, _of_memory)


def descriptors_grow() -> Grows:
    """The rule about files, pipes and connections that are not closed."""
    return Grows(lambda process: process.num_descriptors, LEAST_DESCRIPTORS, _of_descriptors)


def _of_memory(growth: Growth, sample: DevicesSampled) -> Finding:
    minutes = max(0, sample.memory_total_bytes - sample.memory_used_bytes) / growth.per_second / 60
    end = f": memory is full in about {minutes:.0f} minutes" if minutes < 24 * 60 else ""
    return Finding(
        f"{growth.process.name} grows by {growth.per_1000_steps / 1e6:.3g} MB per 1,000 steps,"
        f" {gib(growth.process.memory_bytes)} GiB now{end}",
        "find what is kept after each step or episode; until then, a resumed run has fresh processes",
    )


def _of_descriptors(growth: Growth, sample: DevicesSampled) -> Finding:
    limit = f" of {sample.max_descriptors:,}" if sample.max_descriptors else ""
    return Finding(
        f"{growth.process.name} opens {growth.per_1000_steps:.3g} descriptors per 1,000 steps that stay open,"
        f" {growth.process.num_descriptors:,}{limit} now",
        "find files, pipes or connections that are not closed; until then, a resumed run has fresh processes",
    )


class DescriptorsNearlyUsed:
    """A process of the run has nearly as many descriptors open as it may."""

    def __init__(self) -> None:
        self._is_high = Streak(SAMPLES)

    def judge(self, sample: DevicesSampled, at: Moment) -> Verdict:
        """Judge the one with the most by 80 % of the limit."""
        most = max(sample.processes, key=lambda process: process.num_descriptors, default=None)
        limit = sample.max_descriptors
        if most is None or limit <= 0:
            return None
        if self._is_high.add(most.num_descriptors > 0.8 * limit):
            return Finding(
                f"{most.name} has {most.num_descriptors:,} of {limit:,} descriptors open",
                "close files, pipes and connections that are not needed, or raise the limit (ulimit -n)",
            )
        return "fine" if most.num_descriptors < 0.7 * limit else None
