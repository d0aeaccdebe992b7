"""What an environment's worker publishes a few times a second: episodes, progress, where the time goes."""

from __future__ import annotations

import time
from collections.abc import Callable

from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.episode_groups import EpisodeGroups
from rl_tui.engine.running.speed import Speed
from rl_tui.engine.running.triggers import Trigger
from rl_tui.engine.running.worker_sampler import WorkerSampler
from rl_tui.engine.sampling.collecting.remote_collector import RemoteCollector
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import EpisodeGroup, EpisodesFinished, ProgressReported, TimeSplit

EPISODES_SECONDS, PROGRESS_SECONDS = 0.1, 0.25  # a terminal shows no more
TIME_SPLIT_SECONDS = WORKERS_SECONDS = 1.0


class ProgressReporter:
    """Used in the collector's thread."""

    def __init__(
        self,
        collector: Collector | RemoteCollector,
        bus: EventBus,
        waiting_seconds: Callable[[], float],
        workers: WorkerSampler | None = None,
    ):
        """workers: of the environments; None where they are in this process."""
        self._workers = workers
        self._behaviors: dict[str, Behavior] = {}
        self._waiting_seconds = waiting_seconds
        self._collector = collector
        self._bus = bus
        self._start = self._last = time.monotonic()
        self._offsets: dict[str, int] = {}  # by behavior: step minus steps to learn from that its agents made here
        self._sampled_before: dict[str, int] = {}  # by behavior: all steps of its agents before those made here
        self._first_versions: dict[str, int] = {}
        self._episodes: dict[str, EpisodeGroups] = {}
        self._speeds: dict[str, Speed] = {}
        self._seconds = 0.0  # without pauses
        self._warned_of_departures: set[str] = set()
        self._due = Trigger(EPISODES_SECONDS, by_clock=True)
        self._progress = Trigger(PROGRESS_SECONDS, by_clock=True)
        self._time_split = Trigger(TIME_SPLIT_SECONDS, by_clock=True)
        self._sample = Trigger(WORKERS_SECONDS, by_clock=True)

    def add(self, name: str, behavior: Behavior) -> None:
        """Report on this behavior, too, which the collector has by the next call of another method."""
        self._behaviors[name] = behavior
        offline = behavior.learner.num_offline_rows  # before a roll back
        self._offsets[name], self._sampled_before[name] = behavior.learner.step - offline, behavior.learner.num_sampled
        self._speeds[name] = Speed(self._seconds)
        self._first_versions[name] = behavior.learner.weights.first_version
        self._episodes[name] = EpisodeGroups()

    def publish_due(self) -> None:
        """Publish what is due."""
        self._due.fire(time.monotonic(), self._publish)

    def _publish(self, now: float) -> None:
        self._count_time(now)
        self.follow_rollbacks()
        self._publish_groups(are_cut=False)
        self._progress.fire(now, self._publish_progress)
        self._time_split.fire(now, self._publish_time_split)
        self._sample.fire(now, self._publish_workers)

    def publish_all(self, is_over: bool = False) -> None:
        """Publish everything as of now. is_over: no more comes; else episodes whose group may grow are left out."""
        now = time.monotonic()
        self._count_time(now)
        self.follow_rollbacks()
        self._publish_groups(are_cut=is_over)
        self._publish_progress(now)
        self._publish_time_split(now)
        self._publish_workers(now)

    def resume(self) -> None:
        """A pause is over, and does not count in speeds. Nothing was sampled since `publish_all` at its start."""
        self._last = time.monotonic()
        self._progress.restart(self._last)
        if self._workers is not None:
            self._workers.resume()

    def _count_time(self, now: float) -> None:
        self._seconds += now - self._last
        self._last = now

    def follow_rollbacks(self) -> None:
        """Count steps from where a behavior was rolled back to, and drop the episodes of the abandoned policy.

        Called before agents act with the restored weights, so that each of their steps counts.
        """
        for name, behavior in self._behaviors.items():
            first_version = behavior.learner.weights.first_version
            if first_version != self._first_versions[name]:
                self._first_versions[name] = first_version
                self._offsets[name] = behavior.learner.step - self._num_learned(name)
                self._sampled_before[name] = behavior.learner.num_sampled - self._num_sampled(name)
                self._collector.drain_new_episodes(name)
                self._episodes[name] = EpisodeGroups()

    def publish_episodes(self) -> None:
        """Publish all that have ended by now. Called where an equal run calls it at the same step: it ends a group."""
        self._publish_groups(are_cut=True)

    def _publish_groups(self, are_cut: bool) -> None:
        for name in self._behaviors:
            episodes, offset = self._episodes[name], self._offsets[name]
            returns, lengths, ends = self._collector.drain_new_episodes(name)
            episodes.add(returns, lengths, self._behaviors[name].learner.of_all(ends) + offset)
            step = self._num_learned(name) + offset
            groups = episodes.take_all(step) if are_cut else episodes.take(step)
            if groups:
                self._bus.publish(_finished(name, groups))

    def _publish_progress(self, _: float) -> None:
        for name, behavior in self._behaviors.items():
            learner, num_learned = behavior.learner, self._num_learned(name)
            self._bus.publish(
                ProgressReported(
                    behavior=name,
                    step=learner.step,
                    sampled=self._sampled_before[name] + self._num_sampled(name),
                    steps_per_second=self._speeds[name].measure(self._seconds, num_learned),
                    num_updates=learner.num_updates,
                    learned=self._offsets[name] + num_learned,
                )
            )
            self._warn_of_departures(name, self._collector.num_departed(name))

    def _num_learned(self, name: str) -> int:
        """Steps to learn from of all ranks, of which this one has sampled about its share."""
        learner = self._behaviors[name].learner
        return learner.of_all(self._collector.num_learned(name) + learner.num_offline_rows)

    def _num_sampled(self, name: str) -> int:
        """The same of all steps."""
        return self._behaviors[name].learner.of_all(self._collector.num_sampled[name])

    def _warn_of_departures(self, name: str, num_agents: int) -> None:
        """Only once: where agents leave like that, they do so all the time. A block may never come."""
        if not num_agents or name in self._warned_of_departures:
            return
        self._warned_of_departures.add(name)
        what = "1 agent has" if num_agents == 1 else f"{num_agents} agents have"
        text = f"{what} left without the end of an episode; their unfinished steps were dropped"
        self._bus.log("warning", name, text)

    def _publish_time_split(self, now: float) -> None:
        waiting = self._waiting_seconds()
        elapsed = now - self._start - waiting
        environment, inference = self._collector.environment_seconds, self._collector.inference_seconds
        for name, behavior in self._behaviors.items():
            update = behavior.learner.update_seconds
            own = 0.0 if behavior.is_threaded else update  # a threaded update runs in parallel
            other = max(0.0, elapsed - environment - inference - own)
            self._bus.publish(TimeSplit(name, environment, inference, update, waiting, other))

    def _publish_workers(self, _: float) -> None:
        if self._workers is not None and self._behaviors:
            self._bus.publish(self._workers.sample(self._behaviors, self._seconds))


def _finished(behavior: str, groups: tuple[EpisodeGroup, ...]) -> EpisodesFinished:
    count = sum(group.count for group in groups)
    return EpisodesFinished(
        behavior=behavior,
        step=groups[-1].step,
        count=count,
        mean_return=sum(group.mean_return * (group.count / count) for group in groups),
        min_return=min(group.min_return for group in groups),
        max_return=max(group.max_return for group in groups),
        mean_length=sum(group.mean_length * (group.count / count) for group in groups),
        groups=groups if len(groups) > 1 else (),
    )
