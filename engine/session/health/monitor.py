"""The warnings of a run's health, folded from its events."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from rl_tui.engine.session.health.behavior_history import BehaviorHistory
from rl_tui.engine.session.health.entropy import EntropyCollapse
from rl_tui.engine.session.health.environments import FrequentRestarts
from rl_tui.engine.session.health.learning import (
    ClippedUpdates,
    DivergenceSpike,
    LossNotFinite,
    ReturnDrop,
    ValueLossExplosion,
)
from rl_tui.engine.session.health.lessons import LessonDrop
from rl_tui.engine.session.health.machine import (
    DiskFilling,
    DiskNearlyFull,
    GpuHot,
    MachineRule,
    MemoryNearlyFull,
    Moment,
)
from rl_tui.engine.session.health.processes import DescriptorsNearlyUsed, descriptors_grow, memory_grows
from rl_tui.engine.session.health.progress import CheckpointTrouble, NoEpisodes, NoSteps, RareEpisodes
from rl_tui.engine.session.health.ranks import SlowRank
from rl_tui.engine.session.health.returns import DoesNothing, GreedyReturn, NoImprovement, SameReturns
from rl_tui.engine.session.health.rules import Finding, Rule, TrainerHealth, Verdict
from rl_tui.engine.session.health.self_play import RatingCycle, SharedPolicy
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointFailed,
    CheckpointSaved,
    DevicesSampled,
    Envelope,
    EpisodesFinished,
    EvaluationReported,
    Event,
    HyperparametersReported,
    LeagueReported,
    LessonChanged,
    LogEmitted,
    MetricsReported,
    ProgressReported,
    RanksReported,
    RunStarted,
    RunStateChanged,
    WarningCleared,
    WarningRaised,
)
from rl_tui.engine.session.states import ENDS
from rl_tui.engine.session.text import excerpt

LONGEST_GAP_SECONDS = 15.0  # a run reports every second, its file every ten: in a longer gap the machine slept
LONGEST_MESSAGE = 200
OF_RANKS = "slow_rank"
OF_FILES = "checkpoint_failed"  # is about files, so that another policy does not end it
COMMON_RULES: Mapping[str, Callable[[], Rule]] = {  # by kind of warning
    "entropy_collapse": EntropyCollapse,
    "kl_spike": DivergenceSpike,
    "clip_fraction": ClippedUpdates,
    "loss_not_finite": LossNotFinite,
    "value_loss_explosion": ValueLossExplosion,
    "return_drop": ReturnDrop,
    "lesson_drop": LessonDrop,
    "same_returns": SameReturns,
    "no_improvement": NoImprovement,
    "does_nothing": DoesNothing,
    "greedy_return": GreedyReturn,
    "shared_policy": SharedPolicy,
    "rating_cycle": RatingCycle,
    "no_episodes": NoEpisodes,
    "rare_episodes": RareEpisodes,
    "no_steps": NoSteps,
    "frequent_restarts": FrequentRestarts,
    OF_FILES: CheckpointTrouble,
}
OF_OPPONENTS = frozenset(  # not judged in self-play, where returns depend on who the opponents are
    {"return_drop", "lesson_drop", "no_improvement", "greedy_return"}
)
MACHINE_RULES: Mapping[str, Callable[[], MachineRule]] = {
    "disk_filling": DiskFilling,
    "disk_full": DiskNearlyFull,
    "memory_full": MemoryNearlyFull,
    "memory_growth": memory_grows,
    "descriptors_full": DescriptorsNearlyUsed,
    "descriptor_growth": descriptors_grow,
    "gpu_hot": GpuHot,
}
_OF_A_BEHAVIOR = (
    BehaviorStarted,
    BehaviorStateChanged,
    BehaviorRolledBack,
    ProgressReported,
    EpisodesFinished,
    EvaluationReported,
    MetricsReported,
    CheckpointSaved,
    CheckpointFailed,
    HyperparametersReported,
    LeagueReported,
)


Change: TypeAlias = WarningRaised | WarningCleared | LogEmitted


@dataclass(slots=True)
class _WatchedBehavior:
    """One behavior with its rules by kind of warning, and its trainer's advice."""

    history: BehaviorHistory = field(default_factory=BehaviorHistory)
    rules: dict[str, Rule] = field(default_factory=dict)
    advice: Mapping[str, str] = field(default_factory=dict)


class HealthMonitor:
    """Apply envelopes in order; each returns the warnings that it raises or clears.

    The only clock is the times of the events, so that the same events give the same warnings again. A warning is raised
    once, and again only after it was cleared. A rule that raises is reported once, with a log event, and left out.

    health_of: what is known of a trainer, by the algorithm of its BehaviorStarted.
    """

    def __init__(self, health_of: Callable[[str], TrainerHealth]) -> None:
        self._health_of = health_of
        self._machine = {kind: rule() for kind, rule in MACHINE_RULES.items()}
        self._slow_rank = SlowRank()
        self._behaviors: dict[str, _WatchedBehavior] = {}
        self._raised: dict[tuple[str, str], None] = {}  # kinds and behaviors, in the order in which they were raised
        self._left_out: set[str] = set()  # kinds whose rule has raised
        self._last_event_at: float | None = None
        self._now = 0.0  # seconds in which the run reported events

    def apply(self, envelope: Envelope) -> list[Change]:
        """The warnings that this event raises or clears."""
        self._advance_clock(envelope.time)
        match envelope.event:
            case RunStarted():
                self._behaviors.clear()
                self._machine = {kind: rule() for kind, rule in MACHINE_RULES.items()}
                self._slow_rank = SlowRank()
                return self._clear(list(self._raised))
            case BehaviorStarted() | BehaviorRolledBack() as event:
                return [*self._restart(event), *self._judge(event)]
            case RunStateChanged() as event if event.state in ENDS | {"stopping"}:
                for behavior in self._behaviors.values():
                    behavior.history.is_training = False
                return self._judge(event)
            case LessonChanged() as event:  # every behavior acts in the environment that it changes
                for behavior in self._behaviors.values():
                    behavior.history.apply(event)
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

    @property
    def _moment(self) -> Moment:
        histories = [behavior.history for behavior in self._behaviors.values()]
        return Moment(
            self._now, sum(each.learned for each in histories), any(each.is_filling_replay for each in histories)
        )

    def _judge(self, event: Event) -> list[Change]:
        """Apply every rule that the event concerns; an event of no behavior concerns all of them, as time passes."""
        changes: list[Change] = []
        concerned = self._behaviors
        if isinstance(event, _OF_A_BEHAVIOR):
            if event.behavior not in self._behaviors:
                changes += self._watch(event.behavior, BehaviorHistory(), None)
            behavior = self._behaviors[event.behavior]
            behavior.history.apply(event)
            concerned = {event.behavior: behavior}
        for name, behavior in concerned.items():
            for kind, rule in list(behavior.rules.items()):
                try:
                    verdict = _checked(rule.judge(event, behavior.history))
                except Exception as error:
                    changes += self._leave_out(kind, name, error)
                else:
                    changes += self._update(kind, name, verdict, behavior.advice.get(kind))
        if isinstance(event, DevicesSampled):
            for kind, machine_rule in self._machine.items():
                changes += self._update(kind, "", machine_rule.judge(event, self._moment))
        if isinstance(event, RanksReported):
            changes += self._update(OF_RANKS, "", self._slow_rank.judge(event, self._now))
        return changes

    def _restart(self, event: BehaviorStarted | BehaviorRolledBack) -> list[Change]:
        """The behavior has another policy: warnings about the old one no longer hold."""
        name, before = event.behavior, self._behaviors.get(event.behavior, _WatchedBehavior()).history
        started = event if isinstance(event, BehaviorStarted) else before.started
        cleared = self._clear([key for key in self._raised if key[1] == name and key[0] != OF_FILES])
        return [*cleared, *self._watch(name, before.restarted(), started)]

    def _watch(self, name: str, history: BehaviorHistory, started: BehaviorStarted | None) -> list[Change]:
        """Begin to judge a behavior by the common rules and those of its trainer."""
        health = self._health_of("" if started is None else started.algorithm)
        not_judged = OF_OPPONENTS if started is not None and started.plays_itself else frozenset()
        history.entropy_target = health.entropy_target
        behavior = self._behaviors[name] = _WatchedBehavior(history, advice=health.advice)
        changes: list[Change] = []
        for kind, make in {**COMMON_RULES, **health.rules}.items():
            if make is None or kind in self._left_out | not_judged:
                continue
            try:
                behavior.rules[kind] = make()
            except Exception as error:
                changes += self._leave_out(kind, name, error)
        return changes

    def _leave_out(self, kind: str, name: str, error: Exception) -> list[Change]:
        """End the judging of one kind, in every behavior; returns what clears its warnings and reports the error."""
        self._left_out.add(kind)
        for behavior in self._behaviors.values():
            behavior.rules.pop(kind, None)
        detail = excerpt("".join(traceback.format_exception(error)))
        message = f"the rule of the warning {kind} failed and is left out from now on: {type(error).__name__}: {error}"
        cleared = self._clear([key for key in self._raised if key[0] == kind])
        return [*cleared, LogEmitted("warning", name, f"{message}\n{detail}")]

    def _clear(self, keys: list[tuple[str, str]]) -> list[Change]:
        for key in keys:
            del self._raised[key]
        return [WarningCleared(*key) for key in keys]

    def _update(self, kind: str, behavior: str, verdict: Verdict, advice: str | None = None) -> list[Change]:
        """advice: of the trainer, in place of the rule's."""
        key = kind, behavior
        if verdict is None or (verdict == "fine") != (key in self._raised):
            return []
        if verdict == "fine":
            return self._clear([key])
        self._raised[key] = None
        return [WarningRaised(kind, behavior, verdict.message[:LONGEST_MESSAGE], advice or verdict.advice)]


def _checked(verdict: Verdict) -> Verdict:
    """The verdict of a rule that may be a plug-in's. Raises TypeError if it is none."""
    if verdict is None or verdict == "fine" or isinstance(verdict, Finding):
        return verdict
    raise TypeError(f'a verdict must be a Finding, "fine" or None, got {verdict!r}')
