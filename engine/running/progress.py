"""What a source tells a few times a second: episodes, progress, where the time goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import EpisodesFinished, ProgressReported, TimeSplit

EPISODES_HZ, PROGRESS_HZ, TIME_SPLIT_HZ = 10.0, 4.0, 1.0  # a terminal shows no more


class Throttle:
    """True at most `hz` times a second."""

    def __init__(self, hz: float):
        self._period = 1 / hz
        self._next = time.monotonic()

    def restart(self) -> None:
        """A whole period passes before the next True."""
        self._next = time.monotonic() + self._period

    def ticks(self) -> bool:
        """Whether a period has passed since the last True."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + self._period
        return True


class ProgressReporter:
    """What a source tells a few times a second. Lives in its thread."""

    def __init__(
        self,
        behaviors: Mapping[str, Behavior],
        collector: Collector,
        bus: EventBus,
        waiting_seconds: Callable[[], float],
    ):
        self._behaviors = behaviors
        self._waiting_seconds = waiting_seconds
        self._collector = collector
        self._bus = bus
        self._start = self._last = time.monotonic()
        self._offsets = {name: behavior.learner.step for name, behavior in behaviors.items()}  # step minus sampled
        self._first_versions = {name: behavior.learner.first_version for name, behavior in behaviors.items()}
        self._sampled = dict.fromkeys(behaviors, 0)
        self._throttles = Throttle(EPISODES_HZ), Throttle(PROGRESS_HZ), Throttle(TIME_SPLIT_HZ)

    def tick(self) -> None:
        """Tell what is due."""
        episodes, progress, time_split = self._throttles
        if episodes.ticks():
            self.follow_rollbacks()
            self._tell_episodes()
            if progress.ticks():
                self._tell_progress()
            if time_split.ticks():
                self._tell_time_split()

    def publish_all(self) -> None:
        """Tell everything as it stands now."""
        self.follow_rollbacks()
        self._tell_episodes()
        self._tell_progress()
        self._tell_time_split()

    def resume(self) -> None:
        """A pause is over: speeds are not measured across it. Nothing was sampled since `publish_all` at its start."""
        self._last = time.monotonic()
        self._throttles[1].restart()

    def follow_rollbacks(self) -> None:
        """Steps count on from where a behavior was rolled back to; what its given-up policy did is not told.

        Called before agents act with the weights gone back to, so that each of their steps counts.
        """
        for name, behavior in self._behaviors.items():
            first_version = behavior.learner.first_version
            if first_version != self._first_versions[name]:
                self._first_versions[name] = first_version
                self._offsets[name] = behavior.learner.step - self._collector.num_sampled[name]
                self._collector.take_fresh_episodes(name)

    def _tell_episodes(self) -> None:
        for name in self._behaviors:
            returns, lengths = self._collector.take_fresh_episodes(name)
            if len(returns):
                self._bus.publish(
                    EpisodesFinished(
                        behavior=name,
                        step=self._offsets[name] + self._collector.num_sampled[name],
                        count=len(returns),
                        mean_return=float(returns.mean()),
                        min_return=float(returns.min()),
                        max_return=float(returns.max()),
                        mean_length=float(lengths.mean()),
                    )
                )

    def _tell_progress(self) -> None:
        now = time.monotonic()
        seconds, self._last = max(now - self._last, 1e-9), now
        for name, behavior in self._behaviors.items():
            sampled = self._collector.num_sampled[name]
            rate = (sampled - self._sampled[name]) / seconds
            self._sampled[name] = sampled
            learner = behavior.learner
            total = self._offsets[name] + sampled
            self._bus.publish(ProgressReported(name, learner.step, total, rate, learner.num_updates))

    def _tell_time_split(self) -> None:
        waiting = self._waiting_seconds()
        elapsed = time.monotonic() - self._start - waiting
        environment, inference = self._collector.environment_seconds, self._collector.inference_seconds
        for name, behavior in self._behaviors.items():
            update = behavior.learner.update_seconds
            own = update if behavior.inbox is None else 0.0  # a threaded update runs beside all of this
            other = max(0.0, elapsed - environment - inference - own)
            self._bus.publish(TimeSplit(name, environment, inference, update, waiting, other))
