"""What an environment reports besides rewards: statistics under names of its own, and numbers in `info`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rl_tui.engine.config.diagnostics import visible
from rl_tui.engine.config.run import is_our_tag, metric_tag
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.specs import GatheredStatistic, Measured


class ReportedStatistics:
    """What may be recorded of the statistics that an environment reports, and what is said of the others, once of each.

    metrics: keys of `info` whose numbers are statistics, too.
    """

    def __init__(self, behavior: str, metrics: Collection[str], bus: EventBus) -> None:
        self._behavior, self._bus = behavior, bus
        self._tags = {key: metric_tag(key) for key in metrics}
        self._taken = frozenset(self._tags.values())
        self._missing = set(metrics)
        self._warned: set[tuple[str, str]] = set()

    def admit(self, statistics: Mapping[str, GatheredStatistic]) -> dict[str, GatheredStatistic]:
        """Those with a name of the environment's own, and with a finite value."""
        for name in statistics:
            if self._is_refused(name):
                self._warn(name, "is left out: rl-tui has a statistic of that name. Rename it in the environment")
            elif statistics[name].num_not_finite:
                self._warn(name, "was not finite; only its finite values count")
        return {name: values for name, values in statistics.items() if values.count and not self._is_refused(name)}

    def measured(self, measured: Measured) -> Measured:
        """What was measured of `metrics`, by tag."""
        self._missing -= measured.keys()
        return {tag: measured[key] for key, tag in self._tags.items() if key in measured}

    def warn_of_missing(self) -> None:
        """Name the metrics that were never measured so far."""
        for key in sorted(self._missing):
            text = f"env_settings.metrics: no info had a number under {key!r} so far"
            self._bus.log("warning", self._behavior, text)
        self._missing.clear()

    def _is_refused(self, name: str) -> bool:
        return name in self._taken or is_our_tag(name)

    def _warn(self, name: str, text: str) -> None:
        if (name, text) not in self._warned:
            self._warned.add((name, text))
            self._bus.log("warning", self._behavior, f"the environment's statistic {visible(name)} {text}")
