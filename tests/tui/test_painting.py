"""What is painted past Textual's compositor stays off what covers it, and every size has its picture."""

from __future__ import annotations

from rl_tui.engine.session.messages import Envelope, EpisodesFinished, WarningRaised
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.drawing.painting import NOWHERE, spots
from rl_tui.tui.textual_private import Toast
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.snapshots import settled_text

SIZES = [(200, 60), (20, 5), (120, 40), (59, 14), (80, 24), (39, 9), (1, 1), (200, 60), (40, 10), (120, 40)]


async def test_a_pane_below_a_toast_paints_nothing_itself() -> None:
    view, session = scenes.healthy(2).view(), FakeSession()
    app = TrainerApp(session, view, clock=lambda: view.now)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        app.tick()
        await settled_text(pilot)
        assert all(clip != NOWHERE for _, clip in spots(app.screen).values())
        session.bus.publish(WarningRaised("entropy", "Walker", "entropy 0.003", "raise beta"))
        app.tick()
        await settled_text(pilot)
        (toast,) = app.screen.query(Toast)
        covered = {type(widget).__name__ for widget, (_, clip) in spots(app.screen).items() if clip == NOWHERE}
        assert {"CurvesPane", "Toast"} <= covered
        assert "BehaviorsPane" not in covered
        view.apply(Envelope(view.last_number + 1, view.now + 1, EpisodesFinished("Walker", 161_000, 1, 9.0, 9, 9, 9.0)))
        parts = app.screen.draw(app._frame())
        assert parts
        assert not any(toast.region.contains(part.x, part.y) for part in parts)


async def test_every_size_has_its_picture_and_none_is_left_over() -> None:
    """From 200x60 down to one cell and back: the picture of a size does not depend on those before."""
    view = scenes.healthy(3, gpus=2).view()
    pictures: dict[tuple[int, int], str] = {}
    for size in dict.fromkeys(SIZES):
        app = TrainerApp(FakeSession(), view, clock=lambda: view.now)
        async with app.run_test(size=size) as pilot:
            app.tick()
            await settled_text(pilot)
            app.tick()
            pictures[size] = await settled_text(pilot)
    app = TrainerApp(FakeSession(), view, clock=lambda: view.now)
    async with app.run_test(size=SIZES[0]) as pilot:
        for size in SIZES:
            await pilot.resize_terminal(*size)
            app.tick()
            await settled_text(pilot)
            app.tick()
            assert await settled_text(pilot) == pictures[size], size


async def test_sizes_may_change_faster_than_they_are_drawn() -> None:
    view = scenes.healthy(3, gpus=2).view()
    app = TrainerApp(FakeSession(), view, clock=lambda: view.now)
    async with app.run_test(size=(120, 40)) as pilot:
        app.tick()
        expected = await settled_text(pilot)
        for size in SIZES * 3:
            app._driver._size = size  # type: ignore[union-attr]  # as a terminal that changes before the app has looked
            app.redraw()
            await pilot.resize_terminal(*size)
            app.redraw()
        await pilot.resize_terminal(120, 40)
        app.tick()
        await settled_text(pilot)
        app.tick()
        assert await settled_text(pilot) == expected
