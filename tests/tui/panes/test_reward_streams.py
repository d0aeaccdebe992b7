"""A line for each reward stream, where there are several."""

from __future__ import annotations

import pytest

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.tui.drawing.glyphs import ASCII
from rl_tui.tui.panes.detail import metric_pairs
from rl_tui.tui.panes.reward_streams import Stream, stream_lines, streams_of

ESTIMATES = {
    "Policy/Extrinsic Reward": 382.1,
    "Policy/Curiosity Reward": 0.132,
    "Policy/Extrinsic Value Estimate": 80.95,
    "Policy/Curiosity Value Estimate": -0.227,
    "Policy/Entropy": 0.5,
    "Losses/Curiosity Forward Loss": 0.016,
}


def texts(metrics: dict[str, float]) -> list[str]:
    return ["".join(span.text for span in row) for row in stream_lines(metrics, ASCII, 11, 8)]


@pytest.mark.parametrize("what", ["Value Estimate", "Value"])
def test_a_stream_has_what_it_pays_beside_what_is_expected_of_it(what: str) -> None:
    metrics = {tag.replace("Value Estimate", what): figure for tag, figure in ESTIMATES.items()}
    assert streams_of(metrics) == {"Extrinsic": Stream(382.1, 80.95), "Curiosity": Stream(0.132, -0.227)}
    head, extrinsic, curiosity = texts(metrics)
    assert head.split() == ["stream", "reward", "value"]
    assert extrinsic.split() == ["extrinsic", "382.1", "80.95"]
    assert curiosity.split() == ["curiosity", "0.132", "-0.227"]
    assert len({len(row) for row in (head, extrinsic, curiosity)}) == 1


def test_what_is_in_these_lines_is_not_listed_again() -> None:
    behavior = BehaviorView("Walker")
    behavior.metrics = ESTIMATES
    assert [name for name, _ in metric_pairs(behavior)] == ["entropy", "forward err"]


def test_a_single_stream_needs_no_table() -> None:
    behavior = BehaviorView("Walker")
    behavior.metrics = {tag: figure for tag, figure in ESTIMATES.items() if "Extrinsic" in tag}
    assert texts(behavior.metrics) == []
    assert [name for name, _ in metric_pairs(behavior)] == ["value", "extrinsic"]


def test_a_long_name_is_cut_and_an_unknown_value_says_so() -> None:
    metrics = {"Policy/Extrinsic Reward": 1.0, "Policy/Novelty of What It Sees Reward": 2.0}
    _, _, novelty = texts(metrics)
    assert novelty.split()[-2:] == ["2.000", "-"]
    assert len(novelty) == 1 + 11 + 8 + 10
