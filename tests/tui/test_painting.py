"""What is painted past Textual's compositor stays off what covers it, and every size has its picture."""

from __future__ import annotations

from rl_tui.tui.app import TrainerApp
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.snapshots import settled_text

SIZES = [(200, 60), (20, 5), (120, 40), (59, 14), (80, 24), (39, 9), (1, 1), (200, 60), (40, 10), (120, 40)]


async def test_every_size_has_its_picture_and_none_is_left_over() -> None:
    """From 200x60 down to one cell and back: the picture of a size does not depend on those before."""
    view = scenes.healthy(3, gpus=2).view()
    pictures: dict[tuple[int, int], str] = {}
    for size in dict.fromkeys(SIZES):
        app = TrainerApp(FakeSession(view), clock=lambda: view.now)
        async with app.run_test(size=size) as pilot:
            app.tick()
            await settled_text(pilot)
            app.tick()
            pictures[size] = await settled_text(pilot)
    app = TrainerApp(FakeSession(view), clock=lambda: view.now)
    async with app.run_test(size=SIZES[0]) as pilot:
        for size in SIZES:
            await pilot.resize_terminal(*size)
            app.tick()
            await settled_text(pilot)
            app.tick()
            assert await settled_text(pilot) == pictures[size], size


async def test_sizes_may_change_faster_than_they_are_drawn() -> None:
    view = scenes.healthy(3, gpus=2).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now)
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
