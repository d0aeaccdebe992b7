"""Several ranks of one run: how fast each was over the last minute of training, how long it waited, which is slow."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rl_tui.engine.session.messages import DevicesSampled, RanksReported, RankStatus

WINDOW_SECONDS = 60.0  # covers several updates: ranks that wait in turns are equally fast
LEAST_REPORTS = 5  # from which means say something: ten seconds of a run, most of a minute of its recording
SLOW = 0.25  # by so much of the time more than the slowest the others wait for it
Figures: TypeAlias = tuple[float, float]  # steps per second, and the share of waiting


@dataclass(frozen=True, slots=True)
class SlowestRank:
    """The rank that waits least: whatever the others wait for is not ready there.

    waiting: of the others, the mean share of their time. excess: how much of the time they wait more than it does.
    """

    status: RankStatus
    waiting: float
    excess: float
    num_others: int

    def words(self, host: str) -> str:
        """What is slow, and how much that costs. host: its name, "" where that is the same for all."""
        where = f" on {host}" if host else ""
        others = "the others wait" if self.num_others > 1 else "the other waits"
        return f"rank {self.status.rank}{where} is slow: {others} {self.waiting:.0%} of the time"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, the ranks on it, and its devices."""

    host: str
    ranks: tuple[int, ...]
    devices: DevicesSampled


@dataclass(slots=True)
class RanksView:
    """The ranks of a run that has several; none of any other run.

    statuses: the newest, with the means of the last minute of training as figures. recent: the figures of each rank in
    the reports of that minute, and when these came.
    """

    statuses: tuple[RankStatus, ...] = ()
    recent: deque[tuple[float, tuple[Figures, ...]]] = field(default_factory=lambda: deque(maxlen=60))

    def apply(self, event: RanksReported, time: float) -> None:
        """The newest report. One in which no rank does anything, as in a pause, does not count in the means."""
        if [each.rank for each in event.ranks] != [each.rank for each in self.statuses]:
            self.recent.clear()
        while self.recent and not time - WINDOW_SECONDS < self.recent[0][0] <= time:
            self.recent.popleft()
        figures = tuple((each.steps_per_second, each.waiting) for each in event.ranks)
        if any(speed or waiting for speed, waiting in figures):
            self.recent.append((time, figures))
        number = len(self.recent)
        self.statuses = tuple(
            replace(
                status,
                steps_per_second=sum(report[at][0] for _, report in self.recent) / number,
                waiting=sum(report[at][1] for _, report in self.recent) / number,
            )
            if number
            else status
            for at, status in enumerate(event.ranks)
        )

    @property
    def steps_per_second(self) -> float:
        """Of all ranks together."""
        return sum(each.steps_per_second for each in self.statuses)

    @property
    def waiting(self) -> float:
        """The mean share of the time in which a rank waits."""
        return sum(each.waiting for each in self.statuses) / max(1, len(self.statuses))

    @property
    def has_hosts(self) -> bool:
        """Whether they are on several machines."""
        return len({each.host for each in self.statuses}) > 1

    @property
    def seconds(self) -> float:
        """From the oldest report that counts to the newest."""
        return self.recent[-1][0] - self.recent[0][0] if self.recent else 0.0

    @property
    def slowest(self) -> SlowestRank | None:
        """The rank that waits least, however little the others wait; None while too little is known."""
        if len(self.statuses) < 2 or len(self.recent) < LEAST_REPORTS:
            return None
        least = min(self.statuses, key=lambda each: each.waiting)
        others = [each.waiting for each in self.statuses if each.rank != least.rank]
        mean = sum(others) / max(1, len(others))
        return SlowestRank(least, mean, mean - least.waiting, len(others))

    @property
    def slow(self) -> SlowestRank | None:
        """The rank that the others wait for a large share of the time; None where that is none."""
        slowest = self.slowest
        return slowest if slowest is not None and slowest.excess >= SLOW else None

    @property
    def other_machines(self) -> list[Machine]:
        """All but that of rank 0, whose devices are those of the run."""
        return [
            Machine(each.host, self._ranks_on(each.host), each.devices)
            for each in self.statuses
            if each.devices is not None
        ]

    def machines(self, first: DevicesSampled) -> list[Machine]:
        """All of them. first: the devices of rank 0's."""
        host = self.statuses[0].host if self.statuses else ""
        return [Machine(host, self._ranks_on(host), first), *self.other_machines]

    def _ranks_on(self, host: str) -> tuple[int, ...]:
        return tuple(each.rank for each in self.statuses if each.host == host)
