"""A rule about the ranks of a run, judged at each of their reports."""

from __future__ import annotations

from rl_tui.engine.session.health.rules import Finding, Verdict
from rl_tui.engine.session.messages import RanksReported
from rl_tui.engine.session.ranks_view import SLOW, RanksView

COVERED_SECONDS = 50.0  # about a minute, of which a recorded run has a report every ten seconds


class SlowRank:
    """One rank makes the others wait for it."""

    def __init__(self) -> None:
        self._ranks = RanksView()

    def judge(self, event: RanksReported, seconds: float) -> Verdict:
        """Judge by the last minute of training. seconds: when the report came, never decreasing."""
        self._ranks.apply(event, seconds)
        slowest = self._ranks.slowest
        if slowest is None:
            return None
        if slowest.excess >= SLOW and self._ranks.seconds >= COVERED_SECONDS:
            return Finding(
                slowest.words(slowest.status.host if self._ranks.has_hosts else ""),
                "look at what else runs there, try another env_settings.num_workers, or give the ranks equally fast"
                " machines: each has about as many environments",
            )
        return "fine" if slowest.excess < SLOW / 2 else None
