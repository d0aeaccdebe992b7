"""Numbers, times and paths stay short whatever they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rl_tui.tui.drawing.text import (
    count,
    duration,
    fit,
    fit_message,
    fit_path,
    left,
    number,
    percent,
    right,
    round_count,
    size,
    wrapped,
)


def test_wrapped_code_keeps_its_indentation() -> None:
    code = "    raise ValueError(one, two)\nplain words that wrap too"
    assert wrapped(code, 22) == ["    raise", "      ValueError(one,", "      two)", "plain words that wrap", "too"]
    assert wrapped(" " * 30 + "x", 8) == ["    x"], "no deeper than half of the width"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (987, "987"),
        (999.6, "1000"),
        (9_870, "9.87k"),
        (999_950, "1.00M"),
        (12_345_678, "12.3M"),
        (1e12, "1.00T"),
    ],
)
def test_count_has_three_digits_and_a_unit(value: float, text: str) -> None:
    assert count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.0, "0"), (0.02134, "0.021"), (-12.4, "-12.40"), (412.345, "412.3"), (9.99996, "10.00"),
     (1234.5, "1234"), (12_345, "12.3k"), (1.2e-5, "1.2e-5"), (float("nan"), "nan"), (float("-inf"), "-inf"),
     (1.2345e12, "1.23T")],
)  # fmt: skip
def test_number_has_four_digits(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.9, "59s"), (727, "12m07"), (6127, "1h42"), (360_000, "4d04"), (float("inf"), "-"), (-3, "0s")],
)
def test_duration_names_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds).rstrip("h") == text


def test_round_count_drops_trailing_zeros() -> None:
    assert [round_count(v) for v in (50_000, 1e6, 1.5e6, 100, 1_230_000)] == ["50k", "1M", "1.5M", "100", "1.23M"]


def test_size_is_in_powers_of_1024() -> None:
    assert [size(v) for v in (0, 512, 1536, 12 * 2**20, 139 * 2**30)] == ["0B", "512B", "1.5K", "12M", "139G"]


def test_percent_is_a_hundred_only_when_nothing_is_missing() -> None:
    assert [percent(999_999, 1_000_000), percent(5, 5), percent(1, 0), percent(-1, 5)] == [99, 100, 0, 0]


@given(st.floats())
def test_no_number_is_wider_than_its_column(value: float) -> None:
    assert len(number(value)) <= 8


@given(st.floats(-1e18, 1e18))
def test_no_count_is_wider_than_its_column(value: float) -> None:
    assert len(count(value)) <= 7


@given(st.text(), st.integers(0, 40))
def test_cutting_never_exceeds_the_width(text: str, width: int) -> None:
    assert cell_len(fit(text, width)) <= width
    assert cell_len(fit_path(text, width)) <= width
    assert cell_len(fit_message(text, width)) <= width
    assert cell_len(left(text, width)) == width
    assert cell_len(right(text, width)) == width


def test_path_keeps_its_end_and_whole_folder_names_where_it_can() -> None:
    path = "results/walker/Walker/checkpoints/Walker-000150000"
    assert fit_path(path, 40) == "…/Walker/checkpoints/Walker-000150000"
    assert fit_path(path, 10) == "…000150000"
    assert fit_message(f"saved to {path}", 35) == "saved to …/Walker-000150000"
