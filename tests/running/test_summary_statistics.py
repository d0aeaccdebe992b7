"""What a summary reports."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from rl_tui.engine.running.summary_statistics import HISTOGRAM_BINS, SummaryStatistics, histogram
from rl_tui.engine.specs import Aggregation, GatheredStatistic, Statistic
from rl_tui.engine.statistics import gather


def returns(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array(values, np.float32)


def test_metrics_are_means_since_the_last_summary() -> None:
    statistics = SummaryStatistics()
    statistics.add({"Losses/Value Loss": 1.0, "Policy/Entropy": float("nan")})
    statistics.add({"Losses/Value Loss": 2.0})
    statistics.add_samples({"Policy/Extrinsic Reward": [3.0, 5.0]})
    statistics.add_samples({"Policy/Extrinsic Reward": [10.0]})
    statistics.add_episodes(returns(3.0, 5.0), np.array([10, 20]))
    statistics.add_episodes(returns(), np.array([], np.int64))
    statistics.add_episodes(returns(10.0), np.array([30]))
    summary = statistics.flush()
    assert summary.metrics == {
        "Losses/Value Loss": 1.5,
        "Policy/Extrinsic Reward": 6.0,
        "Environment/Cumulative Reward": 6.0,
        "Environment/Episode Length": 20.0,
    }
    assert summary.counts == {
        "Losses/Value Loss": 2,
        "Policy/Extrinsic Reward": 3,
        "Environment/Cumulative Reward": 3,
        "Environment/Episode Length": 3,
    }
    assert summary.returns.tolist() == [3.0, 5.0, 10.0]
    assert not summary.histograms
    empty = statistics.flush()
    assert (empty.metrics, empty.counts, len(empty.returns)) == ({}, {}, 0)


def test_statistics_of_the_environment_are_aggregated_as_each_asks() -> None:
    statistics = SummaryStatistics()
    for values in ((1.0, 2.0), (6.0,)):  # two blocks of experience
        reported: dict[str, GatheredStatistic] = {}
        for value in values:
            gather(reported, [Statistic(method, value, method) for method in get_args(Aggregation)])
        statistics.add_reported(reported)
    statistics.add({"average": 100.0})  # a trainer's metric of the same name stays what it is
    summary = statistics.flush()
    assert summary.metrics == {"average": 100.0, "last": 6.0, "sum": 9.0, "histogram": 3.0}
    assert summary.counts == {"average": 1, "histogram": 3}
    assert summary.histograms == {"histogram": histogram(np.array([1.0, 2.0, 6.0]))}
    empty = statistics.flush()
    assert (empty.metrics, empty.histograms) == ({}, {})


def test_histogram_counts_every_return_once() -> None:
    assert histogram(returns()) is None
    found = histogram(returns(-1, 0, 0, 4))
    assert found is not None
    assert (found.minimum, found.maximum, found.count, found.total, found.total_squares) == (-1, 4, 4, 3, 17)
    assert len(found.limits) == len(found.counts) == HISTOGRAM_BINS
    assert sum(found.counts) == 4
    assert found.limits[-1] == 4
    equal = histogram(returns(2, 2))
    assert equal is not None
    assert sum(equal.counts) == 2


def test_histogram_leaves_out_what_has_overflowed() -> None:
    drawn = histogram(returns(1.0, float("inf"), 3.0, float("nan")))
    assert drawn is not None
    assert (drawn.count, drawn.minimum, drawn.maximum, drawn.total) == (2, 1.0, 3.0, 4.0)
    assert histogram(returns(float("-inf"))) is None


@pytest.mark.parametrize("value", [0.0, 2.0, 1_076_956.5, 1e30, -1e30])
def test_returns_that_hardly_differ_have_a_histogram(value: float) -> None:
    """Their difference is too small for thirty bins of float32."""
    values = np.array([value, np.nextafter(np.float32(value), np.float32(np.inf))], np.float32)
    for pair in (values, values.astype(np.float64), np.array([value, np.nextafter(value, np.inf)])):
        found = histogram(pair)
        assert found is not None
        assert sum(found.counts) == 2
        assert len(set(found.limits)) == HISTOGRAM_BINS
