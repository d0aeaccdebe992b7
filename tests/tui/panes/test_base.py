"""What panes send to the terminal: only what changed."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from rl_tui.engine.session.messages import Envelope, EpisodesFinished, Event, ProgressReported
from rl_tui.engine.session.view import RunView
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.drawing.lines import Span, cells, clip, flush, line, pack, wrap
from rl_tui.tui.drawing.painting import exact_console
from rl_tui.tui.panes.base import changed_cells
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.snapshots import settled_text


def test_only_the_differing_cells_of_a_line_are_painted() -> None:
    old, new = line("steps ", Span("12.3k", "strong"), " on"), line("steps ", Span("12.9k", "strong"), " on")
    assert changed_cells(old, new, 20) == (9, 10)
    assert changed_cells(old, old, 20) == (0, 0)
    assert changed_cells((), new, 20) == (0, 14)


def test_change_of_tone_alone_is_a_change() -> None:
    assert changed_cells(line("ab", Span("c", "good")), line("ab", Span("c", "bad")), 5) == (2, 3)


def test_line_with_wide_characters_is_painted_whole() -> None:
    assert changed_cells(line("日本 1"), line("日本 2"), 12) == (0, 12)


def test_lines_never_exceed_their_width() -> None:
    spans = line("behavior ", Span("日本日本日本", "strong"), " end")
    assert [cells(clip(spans, width)) <= width for width in range(25)] == [True] * 25


def test_right_end_goes_where_there_is_no_room_for_both() -> None:
    assert flush(line("abc"), line("xyz"), 6) == line("abc")
    assert "".join(span.text for span in flush(line("abc"), line("xyz"), 8)) == "abc  xyz"


def test_less_important_parts_go_first() -> None:
    assert "".join(span.text for span in pack([line("aaaa"), line("bb"), line("cccc")], 9, gap=1)) == "aaaa bb"


def test_long_words_are_wrapped_and_cut() -> None:
    assert wrap("one two three four five", 9, 2) == ["one two", "three fo…"]
    assert wrap("x" * 30, 10, 3) == ["x" * 9 + "…"]


async def test_nothing_is_painted_when_nothing_changed() -> None:
    view = scenes.healthy(3).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.tick()
        await pilot.pause()
        assert app.overview.draw(app._frame()) == []
        assert not any(pane._repaint_regions for pane in app.screen.walk_children())


async def test_new_progress_paints_few_cells() -> None:
    view = scenes.healthy(3).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.tick()
        await pilot.pause()
        happen(view, ProgressReported("Walker", 161_000, 161_000, 667.0, 80), after=1.0)
        happen(view, EpisodesFinished("Walker", 161_000, 1, 410.0, 1.0, 2.0, 500.0))
        painted = sum(len(without_escapes(part.text)) for part in app.overview.draw(app._frame()))
        assert 0 < painted < 700  # of 4800; the curve, whose newest step moves its axis, is most of it
        assert not any(pane._repaint_regions for pane in app.screen.walk_children())


async def test_panes_of_the_same_pace_never_show_different_steps() -> None:
    view = scenes.healthy(2).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now)
    async with app.run_test(size=(150, 40)) as pilot:
        await pilot.pause()
        app.tick()
        for after in (0.25, 0.25, 0.25, 0.25, 0.25):
            happen(view, ProgressReported("Walker", view.behaviors["Walker"].step + 1000, 170_000, 667.0, 80), after)
            await pilot.press("s")  # the chart changes at once, and with it all that reports the same steps
            app.tick()
            text = await settled_text(pilot)
            steps = re.search(r"1 Walker +PPO +(\d+k)", text), re.search(r"step (\d+k) of", text)
            assert steps[0] is not None
            assert steps[1] is not None
            assert steps[0][1] == steps[1][1]


async def test_figures_stand_still_between_two_beats() -> None:
    view = scenes.healthy(3).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.tick()
        await pilot.pause()
        happen(view, ProgressReported("Walker", 161_000, 161_000, 667.0, 80), after=0.3)
        assert app.overview.draw(app._frame()) == []
        happen(view, ProgressReported("Walker", 162_000, 162_000, 667.0, 80), after=0.7)
        assert app.overview.draw(app._frame())


def happen(view: RunView, event: Event, after: float = 0.0) -> None:
    """The view learns of it, `after` seconds after the newest before."""
    view.apply(Envelope(view.position[1] + 1, view.now + after, event))


def without_escapes(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_colors_are_exact_among_the_256(tmp_path: object) -> None:
    console = exact_console(Console(file=io.StringIO(), force_terminal=True, color_system="truecolor"))
    assert console.color_system == "256"
    plain = Console(file=io.StringIO(), force_terminal=True, color_system="standard")
    assert exact_console(plain) is plain


async def test_no_color_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    view = scenes.healthy(1).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.tick()
        await pilot.pause()
        colors = {
            color.name
            for strip in app.screen._compositor.render_strips()
            for segment in strip.apply_filter(app._filters[-1], app.screen.background_colors[1])
            if segment.style
            for color in (segment.style.color, segment.style.bgcolor)
            if color is not None
        }
        assert colors <= {"default"}
        happen(view, ProgressReported("Walker", 171_000, 171_000, 667.0, 80), after=5.0)
        parts = app.overview.draw(app._frame())
        assert parts
        assert not any("38;" in part.text or "48;" in part.text for part in parts)
