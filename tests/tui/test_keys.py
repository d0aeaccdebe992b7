"""Every key, as a user presses it: what is sent, and what is shown of it."""

from __future__ import annotations

import re

import pytest

from engine.session.messages import (
    BehaviorStateChanged,
    CheckpointSaved,
    CommandFinished,
    ExportPolicy,
    Pause,
    ProgressReported,
    Resume,
    RunStateChanged,
    SaveCheckpoint,
    Stop,
)
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.snapshots import settled_text
from tui.app import TrainerApp
from tui.screens.help import HelpScreen
from tui.screens.leave import LeaveScreen

SIZES = [(80, 24), (120, 40), (200, 60)]


class Screen:
    """An app over a fake session, at a time that stands still."""

    def __init__(self, story: scenes.Story, size: tuple[int, int] = (80, 24), answers: bool = True) -> None:
        self.session = FakeSession(answers)
        view = story.view()
        self.app = TrainerApp(self.session, view, clock=lambda: view.now + 2)
        self._running = self.app.run_test(size=size)

    async def __aenter__(self) -> Screen:
        self.pilot = await self._running.__aenter__()
        await self.pilot.pause()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._running.__aexit__(*error)

    async def press(self, *keys: str) -> str:
        """The screen after the keys and one tick."""
        await self.pilot.press(*keys)
        self.app.tick()
        return await settled_text(self.pilot)


COMMAND_KEYS = {
    "p": (Pause, "Walker", "pause Walker"),
    "P": (Pause, None, "pause all"),
    "c": (SaveCheckpoint, "Walker", "checkpoint Walker"),
    "C": (SaveCheckpoint, None, "checkpoint all"),
    "e": (ExportPolicy, "Walker", "export Walker"),
    "E": (ExportPolicy, None, "export all"),
}


@pytest.mark.parametrize("size", SIZES)
async def test_key_sends_its_command_and_shows_it_done_with_its_path(size: tuple[int, int]) -> None:
    async with Screen(scenes.healthy(3), size) as screen:
        for key, (kind, behavior, words) in COMMAND_KEYS.items():
            text = await screen.press(key)
            command = screen.session.commands[-1]
            assert (type(command), command.behavior) == (kind, behavior)
            assert f"✓ {words}: done" in text
            assert f"results/fake/{behavior or 'all'}-000123456" in text
        assert len(screen.session.commands) == len(COMMAND_KEYS)


async def test_key_is_shown_as_asked_before_the_run_answers() -> None:
    async with Screen(scenes.healthy(3), answers=False) as screen:
        assert "◌ checkpoint Walker: asked" in await screen.press("c")
        assert "◌ export Walker: asked (2 open)" in await screen.press("e")


async def test_failure_is_shown_with_its_reason() -> None:
    async with Screen(scenes.healthy(1), answers=False) as screen:
        await screen.press("c")
        command = screen.session.commands[0]
        screen.session.bus.publish(CommandFinished(command.id, False, "No space left on device: results/a/b"))
        text = await screen.press("left")
        assert re.search(r"✗ checkpoint Walker: failed in \d\.\ds  No space left on device: results/a/b", text)


async def test_paused_behavior_is_resumed_by_the_same_key() -> None:
    async with Screen(scenes.paused()) as screen:
        await screen.press("2", "p")
        assert isinstance(screen.session.commands[-1], Resume)
        assert screen.session.commands[-1].behavior == "Crawler"
        await screen.press("P")
        assert isinstance(screen.session.commands[-1], Pause)  # two of three still train


async def test_behavior_is_selected_by_number_and_by_arrows() -> None:
    async with Screen(scenes.healthy(3)) as screen:
        steps = {("2",): 1, ("9",): 1, ("1",): 0, ("down", "down"): 2, ("k",): 1, ("j",) * 4: 2, ("up",) * 5: 0}
        for keys, selected in steps.items():
            text = await screen.press(*keys)
            name = ("Walker", "Crawler", "Hopper")[selected]
            assert f"▸ {selected + 1} {name}" in text
            assert f"Mean reward · {name}" in text


@pytest.mark.parametrize(("size", "close"), list(zip(SIZES, ("escape", "enter", "question_mark"), strict=True)))
async def test_help_opens_and_closes(size: tuple[int, int], close: str) -> None:
    async with Screen(scenes.healthy(1), size) as screen:
        for _ in range(2):
            assert "select the behavior with that number" in await screen.press("question_mark")
            assert isinstance(screen.app.screen, HelpScreen)
            assert "Mean reward" in await screen.press(close)


async def test_frozen_view_stands_still_while_the_run_goes_on() -> None:
    async with Screen(scenes.healthy(1)) as screen:
        assert "VIEW FROZEN" in await screen.press("space")
        screen.session.bus.publish(ProgressReported("Walker", 333_000, 333_000, 1.0, 1))
        frozen = await screen.press("left")
        assert "160k" in frozen
        assert "333k" not in frozen
        text = await screen.press("space")
        assert "VIEW FROZEN" not in text
        assert "333k" in text


@pytest.mark.parametrize("size", SIZES)
async def test_leaving_asks_and_says_what_stopping_now_costs(size: tuple[int, int]) -> None:
    async with Screen(scenes.healthy(3), size) as screen:
        text = await screen.press("q")
        assert "3 behaviors are training" in text
        assert "loses 10m07 since the last checkpoint" in text
        assert "Mean reward" in await screen.press("escape")
        assert screen.session.commands == []


async def test_question_how_to_leave_is_gone_when_the_run_ends_meanwhile() -> None:
    async with Screen(scenes.healthy(1)) as screen:
        assert "1 behavior is training" in await screen.press("q")
        screen.session.bus.publish(BehaviorStateChanged("Walker", "finished"))
        assert "Nothing trains any more" in await screen.press("left")
        screen.session.bus.publish(RunStateChanged("finished", exit_code=0))
        text = await screen.press("left")
        assert "✓ finished after" in text
        assert "the run has ended by itself; q leaves" in text
        assert screen.app.is_running


async def test_second_quit_and_plain_answers_do_no_harm() -> None:
    async with Screen(scenes.healthy(1)) as screen:
        for key in ("q", "ctrl+q", "enter", "n"):
            await screen.press("q", key)
            assert screen.session.commands == []
            assert screen.app.is_running


async def test_checkpoint_and_stop_waits_for_the_end_of_the_run() -> None:
    async with Screen(scenes.healthy(2)) as screen:
        text = await screen.press("q", "s")
        assert "Saving and stopping" in text
        assert [(c.mode, c.exit_code) for c in screen.session.commands if isinstance(c, Stop)] == [("checkpoint", 0)]
        saved = CheckpointSaved("Walker", 161_000, "results/w", "interrupted", 1.0, False, 1, 0.1)
        screen.session.bus.publish(saved)
        assert "saved at step 161k" in await screen.press("s")
        assert len(screen.session.commands) == 1
        screen.session.bus.publish(RunStateChanged("finished", exit_code=0))
        await screen.press("left")
        assert screen.app.return_value == "stop"


async def test_slow_stop_can_be_looked_at_and_cut_short() -> None:
    async with Screen(scenes.healthy(1)) as screen:
        await screen.press("q", "s")
        assert "Mean reward" in await screen.press("escape")
        await screen.press("q", "k")
        assert [c.mode for c in screen.session.commands if isinstance(c, Stop)] == ["checkpoint", "now"]
        assert screen.app.return_value == "now"


async def test_stop_now_leaves_at_once() -> None:
    async with Screen(scenes.healthy(1)) as screen:
        await screen.press("q", "k")
        assert screen.app.return_value == "now"
        assert isinstance(screen.session.commands[0], Stop)


async def test_ctrl_c_asks_then_saves_then_stops() -> None:
    async with Screen(scenes.healthy(1)) as screen:
        await screen.press("ctrl+c")
        assert isinstance(screen.app.screen, LeaveScreen)
        assert screen.session.commands == []
        await screen.press("ctrl+c")
        await screen.press("ctrl+c")
        assert [c.mode for c in screen.session.commands if isinstance(c, Stop)] == ["checkpoint", "now"]
        assert screen.app.return_value == "now"


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_finished_run_is_left_at_once(key: str) -> None:
    async with Screen(scenes.finished()) as screen:
        await screen.press(key)
        assert screen.app.return_value == "finished"


async def test_screen_stays_after_the_end_and_says_why_keys_do_nothing() -> None:
    async with Screen(scenes.healthy(1)) as screen:
        screen.session.bus.publish(BehaviorStateChanged("Walker", "finished"))
        screen.session.bus.publish(RunStateChanged("finished", exit_code=0))
        assert "✓ finished after" in await screen.press("left")
        assert "checkpoint Walker: not possible, the run is over" in await screen.press("c")
        assert screen.session.commands == []


async def test_keys_before_the_engine_is_up_are_not_sent() -> None:
    async with Screen(scenes.empty()) as screen:
        assert "export all: not yet, the engine is starting" in await screen.press("E")
        assert screen.session.commands == []
