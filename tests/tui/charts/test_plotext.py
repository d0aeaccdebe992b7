"""Figures as plain text."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rl_tui.tui.charts.curve import Curve, plain_curve
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.charts.plotext_figure import plotext_text
from rl_tui.tui.charts.window import Viewport
from rl_tui.tui.drawing.glyphs import ASCII, UNICODE, Glyphs

VIEWPORT = Viewport((0.0, 200.0), (0.0, 200.0), 199.0)
anything = arrays.arrays(np.float64, st.integers(1, 80), elements=st.floats(width=64))
glyph_sets = st.sampled_from([UNICODE, ASCII])


def a_figure(*curves: Curve, smoothing: float = 0.0, is_log: bool = False) -> Figure:
    xs = np.arange(200.0)
    rising = plain_curve(xs, np.where((xs > 90) & (xs < 110), np.nan, 50 + xs / 4), metric="m")
    return Figure(curves or (rising,), VIEWPORT, smoothing=smoothing, is_log=is_log)


@settings(max_examples=40, deadline=None)
@given(st.lists(anything, min_size=1, max_size=4), st.integers(40, 150), st.integers(10, 50), glyph_sets,
       st.sampled_from([0.0, 0.9]), st.booleans())  # fmt: skip
def test_any_values_fit_the_size(
    values: list[np.ndarray], width: int, height: int, glyphs: Glyphs, smoothing: float, is_log: bool
) -> None:
    curves = [plain_curve(np.arange(len(ys)) * 2.5, ys, label=str(at), metric=str(at)) for at, ys in enumerate(values)]
    text = plotext_text(a_figure(*curves, smoothing=smoothing, is_log=is_log), "title", "y", width, height, glyphs)
    rows = text.split("\n")
    if text:
        assert len(rows) == height
        assert max(map(len, rows)) <= width
        assert "\x1b" not in text
    else:
        assert not any(np.isfinite(ys).any() for ys in values)


def test_title_and_labels_of_the_axes_stand_once() -> None:
    text = plotext_text(a_figure(), "Entropy of Walker", "Entropy", 90, 24, UNICODE)
    assert "Entropy of Walker" in text.splitlines()[0]
    assert text.splitlines()[-1].split() == ["Entropy", "steps"]
    assert text.count("Entropy of Walker") == 1


@pytest.mark.parametrize("height", [10, 17, 24, 41])
def test_numbers_of_the_value_axis_stand_at_equal_distances(height: int) -> None:
    rows = plotext_text(a_figure(), "title", "y", 90, height, UNICODE).splitlines()
    ticks = [at for at, row in enumerate(rows) if re.match(r" *\d+┤", row)]
    assert len({after - before for before, after in pairwise(ticks)}) == 1


@pytest.mark.parametrize("smoothing", [0.0, 0.6])
def test_gap_is_left_open(smoothing: float) -> None:
    rows = plotext_text(a_figure(smoothing=smoothing), "title", "y", 90, 24, UNICODE).splitlines()[2:-3]
    middle = len(rows[0]) // 2 + 1
    assert all(row[middle] == " " for row in rows)
    assert sum(char > chr(0x2800) for row in rows for char in row) > 40


def test_curves_have_signs_of_their_own_and_labels_at_their_ends() -> None:
    curves = [plain_curve(np.arange(150.0), np.arange(150.0) * at, label=str(at), metric="m") for at in (1, 2)]
    text = plotext_text(a_figure(*curves), "title", "y", 90, 24, UNICODE)
    assert "+" in text
    assert re.search(r"[⠁-⣿]1 ", text)
    assert "+2 " in text


def test_without_unicode_it_is_ascii() -> None:
    assert plotext_text(a_figure(), "title", "y", 90, 24, ASCII).isascii()


def test_plotext_is_imported_for_text_alone() -> None:
    script = "import sys, rl_tui.tui.app, rl_tui.tui.screens.chart; sys.exit('plotext' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], env=os.environ, check=False).returncode == 0
