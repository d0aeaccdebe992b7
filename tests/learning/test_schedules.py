"""ML-Agents' two schedules."""

from __future__ import annotations

import pytest

from rl_tui.engine.learning.schedules import scheduled


def test_a_constant_never_moves() -> None:
    assert [scheduled("constant", 0.3, 0.1, step, 100) for step in (0, 50, 100, 1000)] == [0.3] * 4


def test_a_line_goes_from_start_to_end_and_stays_there() -> None:
    found = [scheduled("linear", 0.3, 0.1, step, 100) for step in (0, 50, 75, 100, 1000)]
    assert found == pytest.approx([0.3, 0.2, 0.15, 0.1, 0.1])
