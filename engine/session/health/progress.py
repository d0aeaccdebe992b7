"""What can be wrong with how a behavior gets on: episodes, steps and checkpoints that do not come."""

from __future__ import annotations

from typing import ClassVar

from rl_tui.engine.session.health.behavior_history import BehaviorHistory
from rl_tui.engine.session.health.rules import Finding, Verdict, short_count
from rl_tui.engine.session.messages import CheckpointFailed, CheckpointSaved, EpisodesFinished, Event, ProgressReported

LONG_WAIT = 30_000  # steps of all agents without the end of an episode
LONG_EPISODE = 3_000  # steps of each agent, longer than nearly all episodes that are learned from


class NoEpisodes:
    """Steps go on, and no episode ends."""

    kind: ClassVar[str] = "no_episodes"

    def __init__(self) -> None:
        self._ended_at: int | None = None  # step, of the newest end or of the beginning
        self._longest = 0

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge by the steps since the last end; longer episodes are waited for where they were seen."""
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
                "look whether the environment ends its episodes, or give it a time limit (a Gymnasium environment by"
                " max_episode_steps in env_settings.env_kwargs)",
            )
        return None


class NoSteps:
    """Nothing goes on, though nobody has paused it."""

    kind: ClassVar[str] = "no_steps"

    def __init__(self) -> None:
        self._advanced_at = 0.0
        self._longest = 0.0

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge the time since the last step; longer pauses are waited for where they were seen."""
        if history.advanced_at > self._advanced_at:
            self._longest = max(self._longest, history.advanced_at - self._advanced_at)
            self._advanced_at = history.advanced_at
        quiet = history.seconds - history.advanced_at
        if not history.is_training or quiet == 0:
            return "fine"
        if quiet < min(max(30.0, 3 * self._longest), 300.0):
            return None
        return Finding(
            f"no step for {quiet:.0f} seconds, at step {short_count(history.step)}",
            "look whether the environment hangs (env_settings.timeout_wait ends it) or an update takes that long",
        )


class CheckpointTrouble:
    """The newest checkpoint could not be saved."""

    kind: ClassVar[str] = "checkpoint_failed"

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
