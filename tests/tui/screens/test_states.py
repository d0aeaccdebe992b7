"""Every state of a run, drawn on purpose: the screen as text, at the sizes it was designed for."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from rl_tui.engine.session.messages import BehaviorStarted, BehaviorStateChanged, Envelope, ProgressReported
from rl_tui.engine.session.view import RunView
from rl_tui.tui.app import TrainerApp
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.snapshots import check, screen_text, settled_text

SIZES = [(80, 24), (120, 40)]
WIDE_SIZES = [(200, 60)]
WIDE_STATES = (
    "starting",
    "awaiting-editor",
    "restarting",
    "three-with-gpus",
    "twelve",
    "eventful",
    "finished-twelve",
    "failed",
)
STATES: dict[str, Callable[[], RunView]] = {
    "empty": RunView,
    "starting": scenes.starting_view,
    "warming-up": lambda: scenes.warming_up().view(),
    "one": lambda: scenes.healthy(1).view(),
    "three-with-gpus": lambda: scenes.healthy(3, gpus=2).view(),
    "twelve": lambda: scenes.healthy(12).view(),
    "eventful": lambda: scenes.eventful().view(),
    "hot-gpu-and-full-disk": lambda: scenes.hot_gpu().view(),
    "paused": lambda: scenes.paused().view(),
    "nan": lambda: scenes.nan().view(),
    "environment-failed": lambda: scenes.environment_failed().view(),
    "awaiting-editor": lambda: scenes.awaiting_editor().view(),
    "play-stopped": lambda: scenes.play_stopped().view(),
    "restarting": lambda: scenes.restarting().view(),
    "huge": lambda: scenes.huge().view(),
    "finished": lambda: scenes.finished().view(),
    "finished-twelve": lambda: scenes.finished(12).view(),
    "stopped": lambda: scenes.stopped().view(),
    "failed": lambda: scenes.failed().view(),
}


async def drawn(
    view: RunView, size: tuple[int, int], keys: tuple[str, ...] = (), *, ascii: bool = False, refuses: str = ""
) -> str:
    """The screen after some keys, two seconds after the last event."""
    (text,) = await drawn_at(view, [size], keys, ascii=ascii, refuses=refuses)
    return text


async def drawn_at(
    view: RunView, sizes: list[tuple[int, int]], keys: tuple[str, ...] = (), *, ascii: bool = False, refuses: str = ""
) -> list[str]:
    """The same on a terminal that changes its size: test_painting.py shows that each size has its own picture."""
    now = (view.now or scenes.START) + 2
    session = FakeSession(view, answers=False)
    app = TrainerApp(session, "config/ppo/Walker.yaml", clock=lambda: now, ascii=ascii, refuses=refuses)
    async with app.run_test(size=sizes[0]) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
        texts = []
        for size in sizes:
            if size != app.size:
                await pilot.resize_terminal(*size)
                app.tick()
                await pilot.pause()  # headings that count lines say how many the picture before had
            app.tick()
            texts.append(await settled_text(pilot))
        return texts


def check_all(name: str, sizes: list[tuple[int, int]], texts: list[str]) -> None:
    """Each text is that of its file, which a failure names."""
    for (columns, rows), text in zip(sizes, texts, strict=True):
        check(f"{name}-{columns}x{rows}", text)


@pytest.mark.parametrize("state", STATES)
async def test_state_looks_as_it_was_designed(state: str) -> None:
    sizes = [*SIZES, *WIDE_SIZES] if state in WIDE_STATES else SIZES
    check_all(state, sizes, await drawn_at(STATES[state](), sizes))


async def test_small_and_odd_terminals_have_their_layout() -> None:
    sizes = [(59, 24), (50, 12), (80, 14), (40, 10), (38, 9), (20, 5), (3, 1), (60, 15), (100, 24), (80, 50), (200, 40)]
    check_all("layout", sizes, await drawn_at(scenes.healthy(12).view(), sizes))


async def test_without_unicode_the_screen_is_plain_ascii() -> None:
    text = await drawn(scenes.finished(2).view(), (120, 40), ascii=True)
    assert text.isascii()
    check("ascii-120x40", text)


async def test_last_of_many_behaviors_is_scrolled_into_sight() -> None:
    text = await drawn(scenes.healthy(12).view(), (80, 24), keys=("down",) * 14)
    assert "▸12" in text.replace(" ", "")


async def test_dialogs_look_as_they_were_designed() -> None:
    view = scenes.healthy(3).view()
    check("help-80x24", await drawn(view, (80, 24), keys=("question_mark",)))
    check("leave-80x24", await drawn(view, (80, 24), keys=("q",)))
    check("stopping-80x24", await drawn(view, (80, 24), keys=("q", "s")))
    view = scenes.healthy(3).view()  # the one before was reported of the stop at the present time of day
    check("leave-readonly-80x24", await drawn(view, (80, 24), keys=("q",), refuses="--readonly was given"))


async def test_one_behavior_by_itself_looks_as_it_was_designed() -> None:
    sizes = [(80, 24), (120, 40), (200, 60), (60, 15), (100, 24)]
    check_all("detail", sizes, await drawn_at(scenes.eventful().view(), sizes, keys=("enter",)))


async def test_failed_behavior_by_itself_looks_as_it_was_designed() -> None:
    check("detail-failed-80x24", await drawn(scenes.environment_failed().view(), (80, 24), keys=("enter",)))


async def test_silent_engine_is_named_on_the_state_line() -> None:
    view = scenes.healthy(1).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now + 8)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.tick()
        await pilot.pause()
        assert "! no data for 8s" in screen_text(app)


async def test_hostile_names_reach_no_terminal() -> None:
    story = scenes.Story()
    story.begin("evil\x1b[2J\x07name\u202e\nline")
    text = await drawn(story.view(), (120, 40))
    assert "evilname line" in text
    assert not any(char in text for char in "\x1b\x07\u202e")


async def test_a_dialog_looks_the_same_when_textual_has_painted_it_before() -> None:
    """A busy machine gets there first; what is behind the dialog must not show in one of the two alone."""
    view = scenes.healthy(3).view()
    app = TrainerApp(FakeSession(view, answers=False), clock=lambda: view.now + 2)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.tick()
        await pilot.press("q")
        for _ in range(3):
            await pilot.pause()  # paints
        check("leave-80x24", await settled_text(pilot))


async def test_behavior_that_has_not_appeared_is_absent_and_gets_its_row_when_it_does() -> None:
    view = scenes.healthy(2).view()
    view.behavior("Late")  # as the configuration names it
    text = await drawn(view, (120, 40), keys=("down", "down"))
    assert re.search(r"3 Late .* absent", text)
    assert "not in the environment yet" in text
    number = view.position[1]
    view.apply(Envelope(number + 1, view.now, BehaviorStarted("Late", "ppo", "world:World", 0, 1000, 4, 500, False)))
    view.apply(Envelope(number + 2, view.now, BehaviorStateChanged("Late", "training")))
    view.apply(Envelope(number + 3, view.now, ProgressReported("Late", 8, 8, 99, 1)))
    assert re.search(r"3 Late .* training", await drawn(view, (120, 40)))
