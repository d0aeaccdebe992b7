"""A rule about environments whose workers fail again and again."""

from __future__ import annotations

from collections import deque

from rl_tui.engine.session.environment_view import bare_reason
from rl_tui.engine.session.health.behavior_history import BehaviorHistory
from rl_tui.engine.session.health.rules import Finding, Verdict
from rl_tui.engine.session.messages import EnvironmentRestarting, Event

RESTARTS = 3  # within WINDOW_SECONDS, from which they are no accident
WINDOW_SECONDS = 1800.0
LONGEST_REASON = 120


class FrequentRestarts:
    """Workers of the behavior's environment are restarted often."""

    def __init__(self) -> None:
        self._restarted_at: deque[float] = deque(maxlen=RESTARTS)  # seconds of training
        self._num_restarts = 0

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge the newest restarts; half an hour of training without any is fine."""
        if isinstance(event, EnvironmentRestarting) and _concerns(event, history):
            self._num_restarts += 1
            self._restarted_at.append(history.seconds)
            if len(self._restarted_at) == RESTARTS and history.seconds - self._restarted_at[0] <= WINDOW_SECONDS:
                return Finding(
                    f"{self._num_restarts} restarts of its environment's workers, the last: {_short(event)}",
                    "look at the logs in run_logs; each restart ends episodes, and after"
                    " env_settings.max_lifetime_restarts of a worker its environment fails",
                )
        elif self._restarted_at and history.seconds - self._restarted_at[-1] > WINDOW_SECONDS:
            return "fine"
        return None


def _concerns(event: EnvironmentRestarting, history: BehaviorHistory) -> bool:
    return history.started is not None and history.started.behavior in event.behaviors


def _short(event: EnvironmentRestarting) -> str:
    reason = bare_reason(event)
    return reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 3]}..."
