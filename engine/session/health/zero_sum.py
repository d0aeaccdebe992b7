"""Whether what one team wins is what another loses, judged by the returns of all teams together."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rl_tui.engine.session.messages import Histogram

ENOUGH_EPISODES = 200  # of a sample
SAMPLES = 3  # in a row; by chance alone, that would be so in one of a hundred games whose mean is 0
NEAR, FAR = 0.25, 4.0  # standard errors of the mean
LEAST_DECIDED = 0.1  # of all episodes


@dataclass(slots=True)
class Sample:
    """Episodes of all teams. won, lost: those with a return above and below 0; the others were drawn, or
    nearly, for what is in the bins around 0 is not known better."""

    count: int = 0
    total: float = 0.0
    total_squares: float = 0.0
    won: float = 0.0
    lost: float = 0.0

    def add(self, returns: Histogram) -> None:
        """Add those of a summary."""
        self.count += returns.count
        self.total += returns.total
        self.total_squares += returns.total_squares
        edges = (returns.minimum, *returns.limits)
        slack = 1e-9 * (abs(returns.minimum) + abs(returns.maximum))  # limits are sums of floats
        for low, high, count in zip(edges, returns.limits, returns.counts, strict=False):
            self.won += count if low > slack else 0.0
            self.lost += count if high < -slack else 0.0

    @property
    def mean(self) -> float:
        """Their mean return."""
        return self.total / self.count

    @property
    def standard_errors(self) -> float:
        """How far the mean is from 0; NaN where all returns are the same or not finite."""
        variance = self.total_squares / self.count - self.mean * self.mean
        return abs(self.mean) / math.sqrt(variance / self.count) if variance > 0 else math.nan

    @property
    def is_balanced(self) -> bool:
        """Whether about as many episodes were won as lost, and not nearly all drawn."""
        decided = self.won + self.lost
        return decided >= LEAST_DECIDED * self.count and abs(self.won - self.lost) <= 2 * math.sqrt(decided)


class ZeroSum:
    """Judges the returns of a behavior with several teams, sample by sample. episodes, mean: of the newest samples in
    a row whose mean is 0, but for chance. is_excluded: that of a sample was clearly another."""

    def __init__(self) -> None:
        self.episodes, self.mean = 0, 0.0
        self.is_excluded = False
        self._sample = Sample()
        self._num_samples = 0

    @property
    def is_certain(self) -> bool:
        """Whether there were enough such samples."""
        return self._num_samples >= SAMPLES

    def add(self, returns: Histogram) -> None:
        """Judge the returns of a summary, once there are enough."""
        if returns.count < 1 or not math.isfinite(returns.total) or not math.isfinite(returns.total_squares):
            return
        self._sample.add(returns)
        if self._sample.count >= ENOUGH_EPISODES:
            self._judge(self._sample)
            self._sample = Sample()

    def _judge(self, sample: Sample) -> None:
        distance = sample.standard_errors
        self.is_excluded |= distance >= FAR
        if not (distance <= NEAR and sample.is_balanced):
            self.episodes, self.mean, self._num_samples = 0, 0.0, 0
            return
        total = self.mean * self.episodes + sample.total
        self.episodes += sample.count
        self.mean = total / self.episodes
        self._num_samples += 1
