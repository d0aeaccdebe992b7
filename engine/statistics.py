"""Statistics that environments report under names of their own, gathered over steps and blocks of experience."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from rl_tui.engine.specs import GatheredStatistic, Statistic


def gather(gathered: dict[str, GatheredStatistic], statistics: Iterable[Statistic]) -> None:
    """Add what one step reports. A name with another method begins anew; a value that is not finite is only counted."""
    for statistic in statistics:
        known = gathered.get(statistic.name)
        if known is None or known.method != statistic.method:
            known = gathered[statistic.name] = GatheredStatistic(statistic.method)
        _count(known, float(statistic.value))


def merge(gathered: dict[str, GatheredStatistic], later: Mapping[str, GatheredStatistic]) -> None:
    """Add what was gathered later, which stays as it is."""
    for name, more in later.items():
        known = gathered.get(name)
        if known is None or known.method != more.method:
            gathered[name] = replace(more, values=more.values.copy())
            continue
        known.total += more.total
        known.count += more.count
        known.last = more.last if more.count else known.last
        known.values.extend(more.values)
        known.num_not_finite += more.num_not_finite


def _count(known: GatheredStatistic, value: float) -> None:
    if not math.isfinite(value):
        known.num_not_finite += 1
        return
    known.total += value
    known.count += 1
    known.last = value
    if known.method == "histogram":
        known.values.append(value)
