"""The warnings of a run's health, folded from its events."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

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
from rl_tui.engine.session.states import ENDS

LONGEST_GAP_SECONDS = 15.0  # a run reports every second, its file every ten: in a longer gap the machine slept
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


Change: TypeAlias = WarningRaised | WarningCleared


@dataclass(slots=True)
class _WatchedBehavior:
    """One behavior with its rules."""

    history: BehaviorHistory = field(default_factory=BehaviorHistory)
    rules: list[Rule] = field(default_factory=lambda: [rule() for rule in BEHAVIOR_RULES])


class HealthMonitor:
    """Apply envelopes in order; each returns the warnings that it raises or clears.

    The only clock is the times of the events, so that the same events give the same warnings again. A warning is raised
    once, and again only after it was cleared.
    """

    def __init__(self) -> None:
        self._machine: list[MachineRule] = [rule() for rule in MACHINE_RULES]
        self._behaviors: dict[str, _WatchedBehavior] = {}
        self._raised: dict[tuple[str, str], None] = {}  # kinds and behaviors, in the order in which they were raised
        self._last_event_at: float | None = None
        self._now = 0.0  # seconds in which the run reported events

    def apply(self, envelope: Envelope) -> list[Change]:
        """The warnings that this event raises or clears."""
        self._advance_clock(envelope.time)
        match envelope.event:
            case RunStarted():
                self._behaviors.clear()
                self._machine = [rule() for rule in MACHINE_RULES]
                return self._clear(list(self._raised))
            case BehaviorStarted() | BehaviorRolledBack() as event:
                return [*self._restart(event.behavior), *self._judge(event)]
            case RunStateChanged() as event if event.state in ENDS | {"stopping"}:
                for behavior in self._behaviors.values():
                    behavior.history.is_training = False
                return self._judge(event)
            case event:
                return self._judge(event)

    def _advance_clock(self, time: float) -> None:
        """Add the time since the previous event, also for each behavior that trains."""
        if not math.isfinite(time):
            return
        seconds = 0.0 if self._last_event_at is None else min(max(time - self._last_event_at, 0.0), LONGEST_GAP_SECONDS)
        self._last_event_at = time
        self._now += seconds
        for behavior in self._behaviors.values():
            if behavior.history.is_training:
                behavior.history.seconds += seconds

    def _judge(self, event: Event) -> list[Change]:
        """Apply every rule that the event concerns; an event of no behavior concerns all of them, as time passes."""
        changes: list[Change] = []
        concerned = self._behaviors
        if isinstance(event, _OF_A_BEHAVIOR):
            if event.behavior not in self._behaviors:
                self._behaviors[event.behavior] = _WatchedBehavior()
            behavior = self._behaviors[event.behavior]
            behavior.history.apply(event)
            concerned = {event.behavior: behavior}
        for name, behavior in concerned.items():
            for rule in behavior.rules:
                changes += self._update(rule.kind, name, rule.judge(event, behavior.history))
        if isinstance(event, DevicesSampled):
            for machine_rule in self._machine:
                changes += self._update(machine_rule.kind, "", machine_rule.judge(event, self._now))
        return changes

    def _restart(self, behavior: str) -> list[Change]:
        """The behavior has another policy: warnings about the old one no longer hold."""
        before = self._behaviors.get(behavior, _WatchedBehavior()).history
        self._behaviors[behavior] = _WatchedBehavior(before.restarted())
        return self._clear([key for key in self._raised if key[1] == behavior and key[0] != CheckpointTrouble.kind])

    def _clear(self, keys: list[tuple[str, str]]) -> list[Change]:
        for key in keys:
            del self._raised[key]
        return [WarningCleared(*key) for key in keys]

    def _update(self, kind: str, behavior: str, verdict: Verdict) -> list[Change]:
        key = kind, behavior
        if verdict is None or (verdict == "fine") != (key in self._raised):
            return []
        if verdict == "fine":
            return self._clear([key])
        self._raised[key] = None
        return [WarningRaised(kind, behavior, verdict.message[:LONGEST_MESSAGE], verdict.advice)]
