"""Of several screens that show a run, one controls it."""

from __future__ import annotations

from rl_tui.engine.session.messages import Attend, ControllerChanged, TakeControl
from tests.tui import scenes
from tests.tui.driver import Driven

OTHER = "pts/9 (process 5)"


async def test_screen_that_does_not_control_changes_nothing_and_asks_before_it_takes_over() -> None:
    async with Driven(scenes.healthy(1).view(), screen_name="pts/1 (process 2)") as screen:
        assert Attend(True, "pts/1 (process 2)") in screen.session.hints
        text = await screen.publish(ControllerChanged(OTHER))
        assert " VIEWER " in text
        assert f"{OTHER} controls the run; ! takes over" in text
        assert f"checkpoint Walker: not possible, {OTHER} controls the run" in await screen.press("c")
        assert screen.session.commands == []
        assert f"{OTHER} controls it now" in await screen.press("exclamation_mark")
        await screen.press("escape")
        assert not any(isinstance(hint, TakeControl) for hint in screen.session.hints)
        await screen.press("exclamation_mark", "y")
        assert TakeControl("pts/1 (process 2)") in screen.session.hints
        text = await screen.publish(ControllerChanged("pts/1 (process 2)"))
        assert "VIEWER" not in text
        assert "this screen controls the run" in text
        await screen.press("c")
        assert len(screen.session.commands) == 1


async def test_screen_of_a_run_of_its_own_controls_it() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        assert "VIEWER" not in await screen.publish(ControllerChanged(OTHER))  # as in a recording
        assert "control: this screen controls the run" in await screen.press("exclamation_mark")


async def test_screen_for_reading_never_controls() -> None:
    async with Driven(scenes.healthy(1).view(), screen_name="me", refuses="--readonly was given") as screen:
        assert not any(isinstance(hint, Attend) for hint in screen.session.hints)
        assert " READ ONLY " in await screen.text()
        await screen.publish(ControllerChanged(OTHER))
        assert "control: not possible, --readonly was given" in await screen.press("exclamation_mark")


async def test_dialog_before_leaving_lets_the_run_go_on() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        assert "leave it running" in await screen.press("q")
        await screen.press("l")
        assert screen.app.return_value == "detached"
    assert screen.session.commands == []


async def test_run_whose_process_cannot_leave_its_terminal_offers_no_such_answer() -> None:
    async with Driven(scenes.healthy(1).view(), why_not_leave="a debugger or a profiler runs this process") as screen:
        assert "leave it running" not in await screen.press("q")
        await screen.press("l")
        assert screen.app.return_value is None
