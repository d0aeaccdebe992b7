"""The sparkline of a long history is made again every few seconds, and at once where it must be."""

from __future__ import annotations

import pytest

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.tui.panes.row_trends import LONG, MOST_AT_ONCE, RENEWED_SECONDS, RowTrends

LEVELS = "abcdefgh"


def behavior(num_points: int = LONG, name: str = "Walker") -> BehaviorView:
    made = BehaviorView(name)
    for at in range(num_points):
        made.returns.append(float(at), float(at), float(at))
    return made


def test_long_history_keeps_its_sparkline_for_some_seconds() -> None:
    trends, walker = RowTrends(), behavior()
    first = trends.of(walker, 10, LEVELS, 100.0)
    walker.returns.append(LONG, LONG, -1e6)
    assert trends.of(walker, 10, LEVELS, 100.0 + RENEWED_SECONDS / 2) is first
    later = trends.of(walker, 10, LEVELS, 100.0 + RENEWED_SECONDS)
    assert first.direction == 1
    assert (first.cells[-1], later.cells[-1]) == ("h", "a")


@pytest.mark.parametrize(("width", "levels", "now"), [(9, LEVELS, 100.0), (10, "12345678", 100.0), (10, LEVELS, 99.0)])
def test_another_width_other_characters_and_an_earlier_time_count_at_once(width: int, levels: str, now: float) -> None:
    trends, walker = RowTrends(), behavior()
    first = trends.of(walker, 10, LEVELS, 100.0)
    assert trends.of(walker, width, levels, now) is not first


def test_a_history_that_was_cut_and_a_short_one_count_at_once() -> None:
    trends = RowTrends()
    first = trends.of(behavior(LONG + 50), 10, LEVELS, 100.0)
    assert trends.of(behavior(LONG), 10, LEVELS, 100.0) is not first
    short = behavior(LONG // 2)
    assert trends.of(short, 10, LEVELS, 100.0) is not trends.of(short, 10, LEVELS, 100.0)


def test_many_are_made_again_in_turns() -> None:
    trends, behaviors = RowTrends(), [behavior(name=f"Walker{index}") for index in range(3 * MOST_AT_ONCE)]
    before = [trends.of(each, 10, LEVELS, 100.0) for each in behaviors]
    for turn in range(3):
        after = [trends.of(each, 10, LEVELS, 100.0 + RENEWED_SECONDS + turn / 10) for each in behaviors]
        assert sum(old is not new for old, new in zip(before, after, strict=True)) == MOST_AT_ONCE
        before = after
    assert len({id(each) for each in before}) == len(behaviors)
