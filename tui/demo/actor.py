"""One behavior of the demo: it steps, learns, saves, and reports what a learner would report."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointReason,
    CheckpointRemoved,
    CheckpointSaved,
    EpisodeGroup,
    EpisodesFinished,
    EvaluationReported,
    Event,
    HyperparameterChanged,
    HyperparametersReported,
    MetricsReported,
    PolicyExported,
    ProgressReported,
    TimeSplit,
)
from rl_tui.engine.session.states import ENDS, BehaviorState
from rl_tui.tui.demo.policy import Policy, episode_steps, histogram, spread, summary
from rl_tui.tui.demo.script import EVALUATION_EPISODES, FIRST_UPDATE_STEP, REPLAY_ROW_BYTES, REPLAY_STEPS, Role

KEPT = 5  # checkpoints, besides the best
STEPS_PER_UPDATE = 20_480
GROUP_STEPS = 10_000  # of the episodes that are a point of a curve, as in a real run


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a made-up checkpoint holds."""

    path: str
    step: int
    policy: Policy
    values: dict[str, float]
    mean_return: float


class Actor:
    """Owns one behavior's policy, counters and checkpoints. Returns events; the story publishes them.

    folder: what paths begin with; nothing is ever written there.
    """

    def __init__(self, role: Role, folder: str, chance: Random) -> None:
        self.role = role
        self.state: BehaviorState = "training"
        self.values = dict(role.hyperparameters)
        self.step = 0
        self.checkpoints: list[Snapshot] = []  # oldest first
        self._folder = folder
        self._chance = chance
        self._policy = Policy()
        self._fraction = 0.0  # of an episode and of a step that are not whole yet
        self._split = [0.0] * 5
        self._reported_split = 0.0

    @property
    def share(self) -> float:
        """Of max_steps, what is behind it."""
        return self.step / self.role.max_steps

    @property
    def is_over(self) -> bool:
        """Whether it will never train again."""
        return self.state in ENDS

    def begin(self) -> Iterator[Event]:
        """It is there, and trains."""
        role = self.role
        replay = (REPLAY_STEPS, REPLAY_STEPS * REPLAY_ROW_BYTES, FIRST_UPDATE_STEP) if role.trainer.has_replay else ()
        yield BehaviorStarted(
            role.name, role.trainer.name, role.environment, self.step, role.max_steps, role.num_agents,
            role.num_parameters, True, *replay,
        )  # fmt: skip
        yield HyperparametersReported(role.name, dict(self.values))
        yield from self.enter("training")

    def enter(self, state: BehaviorState, reason: str = "") -> Iterator[Event]:
        """It is in that state now."""
        self.state = state
        yield BehaviorStateChanged(self.role.name, state, reason)

    def train(self, seconds: float, elapsed_seconds: float) -> Iterator[Event]:
        """That many seconds of training, up to max_steps. elapsed_seconds: since the start of the run."""
        role, before = self.role, self.step
        rate = role.steps_per_second * self._chance.uniform(0.97, 1.03)
        self.step = min(role.max_steps, before + max(1, round(rate * seconds)))
        self._policy.practice(role, self.values, (self.step - before) / role.max_steps, self._chance)
        for number, part in enumerate(role.trainer.split):
            self._split[number] += seconds * part
        yield self._progress(rate)
        yield from self._episodes(self.step - before)
        if self.step // role.summary_freq > before // role.summary_freq:
            yield self._summary(elapsed_seconds)
        if role.is_evaluated and self.step // role.evaluation_interval > before // role.evaluation_interval:
            yield self._evaluation()
        spent = sum(self._split)
        if spent - self._reported_split >= min(60.0, 0.1 * spent):
            self._reported_split = spent
            yield TimeSplit(role.name, *self._split)

    def _progress(self, rate: float) -> ProgressReported:
        sampled = self.step + round(0.05 * self.role.steps_per_second)
        return ProgressReported(self.role.name, self.step, sampled, rate, self.step // STEPS_PER_UPDATE)

    def _episodes(self, steps: int) -> Iterator[Event]:
        """In groups of as many steps as a real run has, however many steps have passed at once."""
        length = episode_steps(self.role, self._policy, self._chance)
        before = self.step - steps
        groups = []
        for done in range(0, steps, GROUP_STEPS):
            share = min(GROUP_STEPS, steps - done)
            self._fraction += share / length
            count = int(self._fraction)
            if count:
                self._fraction -= count
                groups.append(self._group(before + done + share, count, length))
        if groups:
            yield self._finished(groups)

    def _finished(self, groups: list[EpisodeGroup]) -> EpisodesFinished:
        count = sum(group.count for group in groups)
        mean = sum(group.count * group.mean_return for group in groups) / count
        lowest, highest = min(group.min_return for group in groups), max(group.max_return for group in groups)
        length = groups[-1].mean_length
        return EpisodesFinished(self.role.name, self.step, count, mean, lowest, highest, length, tuple(groups))

    def _group(self, step: int, count: int, length: float) -> EpisodeGroup:
        mean, deviation = self._policy.expected_return(self.role), spread(self.role, self._policy)
        mean += self._chance.gauss(0, deviation / math.sqrt(count))
        reach = deviation * math.sqrt(2 * math.log(count + 1))  # what the extremes of so many are about
        return EpisodeGroup(step, count, mean, mean - reach, mean + reach, length)

    def _summary(self, elapsed_seconds: float) -> MetricsReported:
        role = self.role
        step = self.step // role.summary_freq * role.summary_freq
        metrics = summary(role, self._policy, self.values, self.share, self._chance)
        mean, deviation = metrics["Environment/Cumulative Reward"], spread(role, self._policy)
        count = max(1, round(role.summary_freq / metrics["Environment/Episode Length"]))
        returns = histogram(mean, deviation, count)
        return MetricsReported(role.name, step, elapsed_seconds, metrics, mean, deviation, returns, True)

    def _evaluation(self) -> EvaluationReported:
        """Of the policy without its noise, which is a little better."""
        role, policy, chance = self.role, self._policy, self._chance
        first, best = role.returns
        deviation, length = spread(role, policy) / 2, episode_steps(role, policy, chance)
        mean = policy.expected_return(role) + 0.06 * (best - first) * policy.skill
        mean += chance.gauss(0, deviation / math.sqrt(EVALUATION_EPISODES))
        return EvaluationReported(role.name, self.step, mean, deviation, EVALUATION_EPISODES, length, 2.1)

    def save(self, reason: CheckpointReason, seconds: float) -> Iterator[Event]:
        """A checkpoint of what it is now; the oldest beyond KEPT go, never the best."""
        role = self.role
        path = f"{self._folder}/{role.name}/checkpoints/{role.name}-{self.step}"
        mean = self._policy.expected_return(role)
        kept = [snapshot for snapshot in self.checkpoints if snapshot.path != path]
        self.checkpoints = [*kept, Snapshot(path, self.step, replace(self._policy), dict(self.values), mean)]
        best = max(self.checkpoints, key=lambda snapshot: snapshot.mean_return)
        yield CheckpointSaved(
            role.name, self.step, path, reason, mean, best.path == path, self.checkpoint_bytes, round(seconds, 2)
        )
        for old in self.checkpoints[:-KEPT]:
            if old is not best:
                self.checkpoints.remove(old)
                yield CheckpointRemoved(role.name, old.step, old.path)

    @property
    def checkpoint_bytes(self) -> int:
        """Of one checkpoint: parameters and the two moments of Adam, of 4 bytes each."""
        return 12 * self.role.num_parameters

    def export(self, seconds: float) -> PolicyExported:
        """The policy as a file that does not exist."""
        path = f"{self._folder}/{self.role.name}/{self.role.name}-{self.step}.onnx"
        return PolicyExported(self.role.name, self.step, path, 1.2e-6, round(seconds, 2))

    def set(self, name: str, value: float) -> Iterator[Event]:
        """Another value from this step on."""
        old, self.values[name] = self.values[name], value
        if old != value:
            yield HyperparameterChanged(self.role.name, self.step, name, old, value)
        yield HyperparametersReported(self.role.name, dict(self.values))

    def roll_back(self, snapshot: Snapshot) -> Iterator[Event]:
        """Go on from one of its checkpoints; newer ones are set aside."""
        at = self.checkpoints.index(snapshot)
        for newer in self.checkpoints[at + 1 :]:
            yield CheckpointRemoved(self.role.name, newer.step, newer.path)
        from_step, before = self.step, self.values
        self.checkpoints = self.checkpoints[: at + 1]
        self.step, self._policy, self.values = snapshot.step, replace(snapshot.policy), dict(snapshot.values)
        yield BehaviorRolledBack(self.role.name, self.step, from_step, snapshot.path)
        for name, value in self.values.items():
            if value != before[name]:
                yield HyperparameterChanged(self.role.name, self.step, name, before[name], value)
        yield HyperparametersReported(self.role.name, dict(self.values))
