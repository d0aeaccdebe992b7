"""The names under which an environment reports statistics of its own, which stand beside those of rl-tui."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rl_tui.engine.config.diagnostics import visible
from rl_tui.engine.config.run import is_our_tag
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.specs import GatheredStatistic


class ReportedNames:
    """Leaves out what has a name of rl-tui's own, or one of `taken`; each name is warned of once."""

    def __init__(self, behavior: str, taken: Collection[str], bus: EventBus) -> None:
        self._behavior = behavior
        self._taken = frozenset(taken)
        self._bus = bus
        self._warned: set[tuple[str, str]] = set()

    def admit(self, statistics: Mapping[str, GatheredStatistic]) -> dict[str, GatheredStatistic]:
        """Those with a name of the environment's own, and with a finite value."""
        for name in statistics:
            if self._is_refused(name):
                self._warn(name, "is left out: rl-tui has a statistic of that name. Rename it in the environment")
            elif statistics[name].num_not_finite:
                self._warn(name, "was not finite; only its finite values count")
        return {name: values for name, values in statistics.items() if values.count and not self._is_refused(name)}

    def _is_refused(self, name: str) -> bool:
        return name in self._taken or is_our_tag(name)

    def _warn(self, name: str, text: str) -> None:
        if (name, text) not in self._warned:
            self._warned.add((name, text))
            self._bus.log("warning", self._behavior, f"the environment's statistic {visible(name)} {text}")
