"""A pane that cannot be drawn costs no more than itself."""

from __future__ import annotations

import pytest
from textual.geometry import Size

from rl_tui.engine.session.messages import EpisodesFinished, ProgressReported
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.drawing.lines import Line, Span
from rl_tui.tui.panes.base import Frame, Pane, in_words
from rl_tui.tui.panes.chart import CurvesPane
from rl_tui.tui.panes.detail import DetailPane
from tests.tui import scenes
from tests.tui.driver import Driven

FAULT = "could not be drawn: ZeroDivisionError: a curve too far"


@pytest.fixture
def broken_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that needs the figure of the run works."""

    def figure(pane: CurvesPane, frame: Frame) -> Figure | None:
        raise ZeroDivisionError("a curve too far")

    monkeypatch.setattr(CurvesPane, "figure", figure)


def logged(driven: Driven) -> list[str]:
    return [line.message for line in driven.view.log if line.kind == "SCREEN"]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_pane_says_that_it_could_not_be_drawn_and_the_others_go_on(
    broken_curves: None, size: tuple[int, int]
) -> None:
    async with Driven(scenes.healthy(2).view(), size) as driven:
        text = await driven.text()
        assert FAULT in " ".join(text.replace("│", " ").split())
        assert "199k" not in text
        text = await driven.publish(ProgressReported("Walker", 199_000, 199_000, 600.0, 99))
        assert "199k" in text


async def test_log_has_the_traceback_once_and_the_keys_that_the_pane_names_show_it(broken_curves: None) -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40)) as driven:
        for step in range(5):
            await driven.publish(EpisodesFinished("Walker", 161_000 + step, 1, 1.0, 1.0, 1.0, 1.0))
        (message,) = logged(driven)
        assert "Traceback (most recent call last)" in message
        text = await driven.press("l", "enter")
        assert "Traceback (most recent call last)" in text


async def test_chart_keys_work_while_the_chart_cannot_be_drawn(broken_curves: None) -> None:
    async with Driven(scenes.healthy(2).view(), (120, 40)) as driven:
        for key in ("plus", "minus", "left_square_bracket", "x", "left", "t", "b", "s", "L", "m", "y", "f", "escape"):
            await driven.press(key)
        assert FAULT in await driven.text()
        await driven.pilot.click(CurvesPane, offset=(20, 5))
        assert "Checkpoints of Walker" in await driven.press("k")


async def test_pane_is_drawn_again_as_soon_as_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    working = DetailPane.lines
    is_broken = True

    def lines(pane: DetailPane, frame: Frame, width: int, height: int) -> list[Line]:
        if is_broken:
            raise ValueError("not yet")
        return working(pane, frame, width, height)

    monkeypatch.setattr(DetailPane, "lines", lines)
    async with Driven(scenes.healthy(1).view(), (120, 40)) as driven:
        assert "could not be drawn" in await driven.text()
        is_broken = False
        text = await driven.publish(ProgressReported("Walker", 199_000, 199_000, 600.0, 99))
        assert "✗ could not be drawn" not in text


@pytest.mark.parametrize("asked", ["heading", "inputs", "wanted_height"])
async def test_what_else_a_pane_is_asked_may_fail_too(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    def fail(pane: DetailPane, frame: Frame, *_: int) -> str:
        raise RuntimeError(f"no {asked}")

    monkeypatch.setattr(DetailPane, asked, fail)
    async with Driven(scenes.healthy(1).view(), (120, 40)) as driven:
        await driven.text()
        await driven.publish(ProgressReported("Walker", 199_000, 199_000, 600.0, 99))
        if asked != "wanted_height":
            assert len(logged(driven)) == 1
        assert "199k" in await driven.text()


async def test_one_line_is_enough_and_an_error_without_words_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    def lines(pane: DetailPane, frame: Frame, width: int, height: int) -> list[Line]:
        raise Silent

    monkeypatch.setattr("rl_tui.tui.panes.state_line.StateLine.lines", lines)
    async with Driven(scenes.healthy(1).view(), (80, 24)) as driven:
        first = (await driven.text()).splitlines()[0]
    assert "could not be drawn" in first
    assert "Silent" in first


async def test_lines_that_are_none_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DetailPane, "lines", lambda *_: [(Span("fine"),), None])
    async with Driven(scenes.healthy(1).view(), (120, 40)) as driven:
        assert "could not be drawn" in await driven.text()


@pytest.mark.parametrize("size", [Size(40, 0), Size(0, 5), Size(1, 1), Size(3, 2)])
async def test_pane_that_has_next_to_no_room_is_no_fault(size: Size) -> None:
    """As while a terminal is made smaller: a screen is laid out before some of its panes are hidden."""
    async with Driven(scenes.finished().view(), (200, 60)) as driven:
        await driven.text()
        panes = [pane for pane in driven.app.screen.walk_children() if isinstance(pane, Pane)]
        for pane in panes:
            pane._make_lines(driven.app._frame(), size)
        assert [(pane, fault) for pane in panes if (fault := pane.take_fault()) is not None] == []
        assert len(panes) > 9


def test_fault_with_notes_is_named_by_its_kind_and_message() -> None:
    fault = ValueError("a curve too far")
    fault.add_note("while it was drawn")
    assert in_words(fault) == "ValueError: a curve too far"
