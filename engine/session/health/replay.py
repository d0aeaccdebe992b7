"""Rules about trainers with Q functions and a replay buffer. docs/warnings.md explains the limits."""

from __future__ import annotations

from rl_tui.engine.session.health.behavior_history import BehaviorHistory
from rl_tui.engine.session.health.rules import Explosion, Finding, Verdict, metric, metrics, short_count
from rl_tui.engine.session.messages import BehaviorStarted, Event, ProgressReported

Q_LOSSES = ("Losses/Q1 Loss", "Losses/Q2 Loss")


class QDivergence:
    """The larger Q loss is far above all its earlier values, and the returns are not near their best."""

    def __init__(self) -> None:
        self._loss = Explosion()

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries."""
        loss = max(metrics(event, Q_LOSSES), default=None)
        if loss is None:
            return None
        has_exploded, highest = self._loss.add(loss, history.returns.are_good), self._loss.highest
        if has_exploded:
            value = metric(event, "Policy/Extrinsic Value")
            values = "" if value is None else f", values of {value:.3g}"
            return Finding(
                f"Q loss {loss:.4g}, {loss / highest:.0f}x the highest it was before ({highest:.3g}){values}",
                "lower learning_rate or tau, set normalize_reward: true, or roll back to an earlier checkpoint",
            )
        return None if has_exploded is None else "fine"


class NoUpdates:
    """Experience is stored, but there are no updates."""

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge the settings first, then progress."""
        started = history.started
        if started is None or not started.replay_steps or started.step >= started.max_steps > 0:
            return None
        first = started.first_update_step
        if isinstance(event, BehaviorStarted) and first >= started.max_steps > 0:
            return Finding(
                f"updates start at step {short_count(first)}, training ends at step {short_count(started.max_steps)}",
                "lower buffer_init_steps, or raise max_steps",
            )
        if not isinstance(event, ProgressReported):
            return None
        if event.num_updates > 0:
            return "fine"
        if event.step < max(first, started.step) + started.replay_steps:
            return None
        return Finding(
            f"no update at step {short_count(event.step)}, though the replay buffer is full",
            "check that buffer_size is at least batch_size, and lower steps_per_update",
        )
