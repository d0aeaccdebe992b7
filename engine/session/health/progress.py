"""Rules about a behavior's progress: missing episodes, steps and checkpoints."""

from __future__ import annotations

from rl_tui.engine.session.health.behavior_history import BehaviorHistory
from rl_tui.engine.session.health.rules import Finding, Verdict, short_count
from rl_tui.engine.session.messages import (
    CheckpointFailed,
    CheckpointSaved,
    EnvironmentAwaits,
    EpisodesFinished,
    Event,
    ProgressReported,
)

LONG_WAIT = 30_000  # steps of all agents without the end of an episode
LONG_EPISODE = 3_000  # steps of each agent, longer than nearly all episodes in practice


class NoEpisodes:
    """Steps are made, but no episode ends."""

    def __init__(self) -> None:
        self._ended_at: int | None = None  # the step of the newest end, or the first step
        self._longest = 0

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge by the steps since the last end, with more patience after longer episodes."""
        if self._ended_at is None:
            self._ended_at = history.learned
        if isinstance(event, EpisodesFinished):
            self._longest, self._ended_at = max(self._longest, event.step - self._ended_at), event.step
            return "fine"
        if not history.is_training or history.learns_offline:
            return "fine"
        quiet = history.learned - self._ended_at
        if isinstance(event, ProgressReported) and quiet >= max(_long_wait(history), 3 * self._longest):
            text = f"no episode has ended in {short_count(quiet)} steps"
            return Finding(text, f"check that the environment ends its episodes, or {_time_limit(history)}")
        return None


class RareEpisodes:
    """A policy that has not learned yet goes on for thousands of steps in each episode."""

    def __init__(self) -> None:
        self._began_at: int | None = None
        self._is_first = True
        self._count = 0

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge the first steps of a training by how many episodes have ended, and later ones only if that is fine."""
        if self._began_at is None:
            self._began_at = history.learned
            self._is_first = history.learned == 0
        if isinstance(event, EpisodesFinished):
            self._count += event.count
        steps = history.learned - self._began_at
        if not history.is_training or not isinstance(event, ProgressReported) or steps < _long_wait(history):
            return None
        count, is_first = self._count, self._is_first
        self._began_at, self._is_first, self._count = history.learned, False, 0
        if count * LONG_EPISODE >= steps:
            return "fine"
        if not is_first or count == 0:  # for none at all there is a warning of its own
            return None
        ended = "1 episode has" if count == 1 else f"{count} episodes have"
        text = f"only {ended} ended in {short_count(steps)} steps: too few to learn from and to show progress"
        return Finding(text, f"end episodes that lead nowhere, or {_time_limit(history)}")


def _long_wait(history: BehaviorHistory) -> int:
    """Steps of all agents in which some episodes should have ended."""
    return max(LONG_WAIT, LONG_EPISODE * history.num_agents)


def _time_limit(history: BehaviorHistory) -> str:
    """How to give its environment a time limit."""
    environment = "it" if history.started is None else history.started.environment
    how = (
        "max_episode_steps in env_kwargs for an id of Gymnasium, in env_settings.wrappers gymnasium.wrappers:TimeLimit"
    )
    return f"give {environment} a time limit ({how} for another, Max Step for an Agent of Unity)"


class NoSteps:
    """No step is made, although training is not paused and no environment waits for the user."""

    def __init__(self) -> None:
        self._advanced_at = 0.0
        self._longest = 0.0
        self._is_excused = False
        self._excused_until = 0.0

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge the time since the last step, with more patience after longer gaps."""
        if isinstance(event, EnvironmentAwaits) and _is_of(event, history):
            self._is_excused = bool(event.text)
        if self._is_excused:
            self._excused_until = history.seconds
        if history.advanced_at > self._advanced_at:
            self._longest = max(self._longest, history.advanced_at - max(self._advanced_at, self._excused_until))
            self._advanced_at = history.advanced_at
        quiet = history.seconds - max(history.advanced_at, self._excused_until)
        if not history.is_training or quiet == 0:
            return "fine"
        if quiet < min(max(30.0, 3 * self._longest), 300.0):
            return None
        return Finding(
            f"no step for {quiet:.0f} seconds, at step {short_count(history.step)}",
            "check whether the environment hangs (env_settings.timeout_wait ends it) or an update takes that long",
        )


def _is_of(event: EnvironmentAwaits, history: BehaviorHistory) -> bool:
    return history.started is not None and history.started.environment == event.environment


class CheckpointTrouble:
    """The newest checkpoint could not be saved."""

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge attempts to save."""
        if isinstance(event, CheckpointSaved):
            return "fine"
        if not isinstance(event, CheckpointFailed):
            return None
        return Finding(
            f"no checkpoint at step {short_count(event.step)}: {event.message}",
            "free space on the disk, or make the run's folder writable",
        )
