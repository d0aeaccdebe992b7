"""Warnings in words, folded from the events of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from rl_tui.engine.session.health.behavior_history import BehaviorHistory
from rl_tui.engine.session.health.learning import (
    ClippedUpdates,
    DivergenceSpike,
    EntropyCollapse,
    LossNotFinite,
    ReturnDrop,
    ValueLossExplosion,
)
from rl_tui.engine.session.health.machine import DiskFilling, DiskNearlyFull, GpuHot, MachineRule, MemoryNearlyFull
from rl_tui.engine.session.health.progress import CheckpointTrouble, NoEpisodes, NoSteps
from rl_tui.engine.session.health.rules import Rule, Verdict
from rl_tui.engine.session.health.sac import EntropyCoefficient, NoUpdates, QDivergence
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointFailed,
    CheckpointSaved,
    DevicesSampled,
    Envelope,
    EpisodesFinished,
    Event,
    HyperparametersReported,
    LessonChanged,
    MetricsReported,
    ProgressReported,
    RunStarted,
    RunStateChanged,
    WarningCleared,
    WarningRaised,
)

HEARD_SECONDS = 15.0  # a run is heard from every second, in its file every ten: longer, and the machine was asleep
LONGEST_MESSAGE = 200
BEHAVIOR_RULES: tuple[type[Rule], ...] = (
    EntropyCollapse,
    DivergenceSpike,
    ClippedUpdates,
    LossNotFinite,
    ValueLossExplosion,
    QDivergence,
    EntropyCoefficient,
    ReturnDrop,
    NoUpdates,
    NoEpisodes,
    NoSteps,
    CheckpointTrouble,
)
MACHINE_RULES: tuple[type[MachineRule], ...] = (DiskFilling, DiskNearlyFull, MemoryNearlyFull, GpuHot)
_OF_A_BEHAVIOR = (
    BehaviorStarted,
    BehaviorStateChanged,
    BehaviorRolledBack,
    ProgressReported,
    EpisodesFinished,
    MetricsReported,
    CheckpointSaved,
    CheckpointFailed,
    HyperparametersReported,
    LessonChanged,
)


@dataclass(slots=True)
class _WatchedBehavior:
    """One behavior under watch."""

    history: BehaviorHistory = field(default_factory=BehaviorHistory)
    rules: list[Rule] = field(default_factory=lambda: [rule() for rule in BEHAVIOR_RULES])


class HealthWatch:
    """Apply envelopes in order; each answers with the warnings that begin or end with it.

    Knows no clock but the times of the events, so that the same events give the same warnings again. A warning is told
    once, and may be told again after it was cleared.
    """

    def __init__(self) -> None:
        self._machine: list[MachineRule] = [rule() for rule in MACHINE_RULES]
        self._behaviors: dict[str, _WatchedBehavior] = {}
        self._raised: dict[tuple[str, str], None] = {}  # kinds and behaviors, in the order in which they were raised
        self._heard_at: float | None = None
        self._now = 0.0  # seconds in which the run was heard from

    def apply(self, envelope: Envelope) -> list[WarningRaised | WarningCleared]:
        """What begins or ends with this event."""
        self._pass_time(envelope.time)
        match envelope.event:
            case RunStarted():
                self._behaviors.clear()
                self._machine = [rule() for rule in MACHINE_RULES]
                return self._clear(list(self._raised))
            case BehaviorStarted() | BehaviorRolledBack() as event:
                return [*self._begin_anew(event.behavior), *self._ask(event)]
            case (
                RunStateChanged(
                    state="stopping" | "finished" | "stopped" | "unsaved" | "failed" | "interrupted"
                ) as event
            ):
                for watched in self._behaviors.values():
                    watched.history.is_training = False
                return self._ask(event)
            case event:
                return self._ask(event)

    def _pass_time(self, time: float) -> None:
        """Let the time since the event before pass, for the behaviors that train."""
        if not math.isfinite(time):
            return
        seconds = 0.0 if self._heard_at is None else min(max(time - self._heard_at, 0.0), HEARD_SECONDS)
        self._heard_at = time
        self._now += seconds
        for watched in self._behaviors.values():
            if watched.history.is_training:
                watched.history.seconds += seconds

    def _ask(self, event: Event) -> list[WarningRaised | WarningCleared]:
        """Every rule that this event concerns; what belongs to no behavior lets time pass for each."""
        told: list[WarningRaised | WarningCleared] = []
        concerned = self._behaviors
        if isinstance(event, _OF_A_BEHAVIOR):
            if event.behavior not in self._behaviors:
                self._behaviors[event.behavior] = _WatchedBehavior()
            watched = self._behaviors[event.behavior]
            watched.history.follow(event)
            concerned = {event.behavior: watched}
        for name, watched in concerned.items():
            for rule in watched.rules:
                told += self._settle(rule.kind, name, rule.judge(event, watched.history))
        if isinstance(event, DevicesSampled):
            for machine_rule in self._machine:
                told += self._settle(machine_rule.kind, "", machine_rule.judge(event, self._now))
        return told

    def _begin_anew(self, behavior: str) -> list[WarningRaised | WarningCleared]:
        """The behavior's policy is another one: what was said of the old one is no longer so."""
        before = self._behaviors.get(behavior, _WatchedBehavior()).history
        self._behaviors[behavior] = _WatchedBehavior(before.renewed())
        return self._clear([key for key in self._raised if key[1] == behavior and key[0] != CheckpointTrouble.kind])

    def _clear(self, keys: list[tuple[str, str]]) -> list[WarningRaised | WarningCleared]:
        for key in keys:
            del self._raised[key]
        return [WarningCleared(*key) for key in keys]

    def _settle(self, kind: str, behavior: str, verdict: Verdict) -> list[WarningRaised | WarningCleared]:
        key = kind, behavior
        if verdict is None or (verdict == "fine") != (key in self._raised):
            return []
        if verdict == "fine":
            return self._clear([key])
        self._raised[key] = None
        return [WarningRaised(kind, behavior, verdict.message[:LONGEST_MESSAGE], verdict.advice)]
