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
            self._ended_at = history.sampled
        if isinstance(event, EpisodesFinished):
            self._longest, self._ended_at = max(self._longest, event.step - self._ended_at), event.step
            return "fine"
        if not history.is_training:
            return "fine"
        num_agents = 1 if history.started is None else history.started.num_agents
        quiet = history.sampled - self._ended_at
        if isinstance(event, ProgressReported) and quiet >= max(
            LONG_WAIT, LONG_EPISODE * num_agents, 3 * self._longest
        ):
            return Finding(
                f"no episode has ended in {short_count(quiet)} steps",
                "check that the environment ends its episodes, or give it a time limit (for Gymnasium environments"
                " max_episode_steps in env_settings.env_kwargs)",
            )
        return None


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
