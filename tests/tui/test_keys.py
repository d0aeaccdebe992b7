"""The keys that act on the run and the ways to leave it, as a user presses them: what is sent, and what is shown."""

from __future__ import annotations

import re

import pytest

from rl_tui.engine.session.messages import (
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
from rl_tui.engine.session.view import RunView
from rl_tui.tui.screens.help import HelpScreen
from rl_tui.tui.screens.leave import LeaveScreen
from tests.tui import scenes
from tests.tui.driver import Driven

SIZES = [(80, 24), (120, 40), (200, 60)]
COMMAND_KEYS = {
    "p": (Pause, "Walker", "pause Walker"),
    "P": (Pause, None, "pause all"),
    "c": (SaveCheckpoint, "Walker", "checkpoint Walker"),
    "C": (SaveCheckpoint, None, "checkpoint all"),
    "e": (ExportPolicy, "Walker", "export Walker"),
    "E": (ExportPolicy, None, "export all"),
}


def stops(screen: Driven) -> list[str]:
    """The modes of the stops that were sent, oldest first."""
    return [command.mode for command in screen.session.commands if isinstance(command, Stop)]


def losing_steps() -> RunView:
    """A run that is 12,300 steps past its checkpoint."""
    story = scenes.healthy(1)
    story.publish(ProgressReported("Walker", 162_300, 162_300, 300.0, 80))
    return story.view()


@pytest.mark.parametrize("size", SIZES)
async def test_key_sends_its_command_and_shows_it_done_with_its_path(size: tuple[int, int]) -> None:
    async with Driven(scenes.healthy(3).view(), size) as screen:
        for key, (kind, behavior, words) in COMMAND_KEYS.items():
            text = await screen.press(key)
            command = screen.session.commands[-1]
            assert isinstance(command, kind)
            assert command.behavior == behavior
            assert f"✓ {words}: done" in text
            assert f"results/fake/{behavior or 'all'}-000123456" in text
        assert len(screen.session.commands) == len(COMMAND_KEYS)


async def test_key_is_shown_as_asked_before_the_run_answers() -> None:
    async with Driven(scenes.healthy(3).view(), answers=False) as screen:
        assert "◌ checkpoint Walker: requested" in await screen.press("c")
        assert "◌ export Walker: requested (2 pending)" in await screen.press("e")


async def test_failure_is_shown_with_its_reason() -> None:
    async with Driven(scenes.healthy(1).view(), answers=False) as screen:
        await screen.press("c")
        command = screen.session.commands[0]
        text = await screen.publish(CommandFinished(command.id, False, "No space left on device: results/a/b"))
        assert re.search(r"✗ checkpoint Walker: failed in \d\.\ds  No space left on device: results/a/b", text)


async def test_paused_behavior_is_resumed_by_the_same_key() -> None:
    async with Driven(scenes.paused().view()) as screen:
        await screen.press("2", "p")
        assert isinstance(screen.session.commands[-1], Resume)
        assert screen.session.commands[-1].behavior == "Crawler"
        await screen.press("P")
        assert isinstance(screen.session.commands[-1], Pause)  # two of three still train


async def test_behavior_is_selected_by_number_and_by_arrows() -> None:
    async with Driven(scenes.healthy(3).view()) as screen:
        steps = {("2",): 1, ("9",): 1, ("1",): 0, ("down", "down"): 2, ("up",): 1, ("down",) * 4: 2, ("up",) * 5: 0}
        for keys, selected in steps.items():
            text = await screen.press(*keys)
            name = ("Walker", "Crawler", "Hopper")[selected]
            assert f"▸ {selected + 1} {name}" in text
            assert f"Return · {name}" in text


async def test_number_without_a_behavior_says_so() -> None:
    async with Driven(scenes.healthy(3).view()) as screen:
        assert "there is no behavior 9" in await screen.press("9")


@pytest.mark.parametrize(("size", "close"), list(zip(SIZES, ("escape", "q", "enter"), strict=True)))
async def test_help_begins_with_the_focused_pane_and_closes(size: tuple[int, int], close: str) -> None:
    async with Driven(scenes.healthy(1).view(), size) as screen:
        before = await screen.text()
        assert "Keys for" not in before
        for _ in range(2):
            text = await screen.press("question_mark")
            assert "Keys for the overview: behaviors pane" in text
            assert text.count("Keys for") == 1
            assert isinstance(screen.app.screen, HelpScreen)
            assert await screen.press(close) == before
        assert screen.app.is_running


@pytest.mark.parametrize("opened", ["", "log", "chart", "checkpoints", "configuration"])
@pytest.mark.parametrize("size", SIZES)
async def test_help_is_at_most_twelve_lines_of_what_works_here(size: tuple[int, int], opened: str) -> None:
    async with Driven(scenes.healthy(3).view(), size, opened=opened) as screen:
        text = await screen.press("question_mark")
        rows = text[text.index("Keys for") :].splitlines()
        frame = next(index for index, row in enumerate(rows) if "esc close" in row)
        assert frame - 1 <= 12
        assert "On this screen" in text
        assert re.search(r"\bc +checkpoint\b", text)
        assert "slower" not in text, "this is no replay"


async def test_help_leaves_out_what_has_no_use_now() -> None:
    async with Driven(scenes.healthy(1).view(), opened="log") as screen:
        assert "behaviors" not in await screen.press("question_mark"), "there is a single one"
    async with Driven(scenes.healthy(2).view(), opened="log", refuses="the screen is read-only") as screen:
        text = await screen.press("question_mark")
        assert "behaviors" in text
        assert "pause" not in text


async def test_help_shows_all_keys_on_demand_and_searches_them() -> None:
    async with Driven(scenes.healthy(1).view(), opened="checkpoints") as screen:
        text = await screen.press("question_mark")
        assert "Keys for the checkpoints screen" in text
        assert re.search(r"R +roll back ", text)
        text = await screen.press("question_mark")
        assert "roll back to the selected checkpoint" in text
        assert "back to the previous screen" in await screen.press("end")
        assert "On this screen" in await screen.press("question_mark")
        text = await screen.press("slash", "o", "n", "n", "x")
        assert "export the selected behavior's policy as ONNX" in text
        assert "slower" not in text
        await screen.press("escape", "slash", "q", "enter", "escape")
        assert screen.screen.name == "checkpoints"
        assert "q quit" in await screen.text()
        assert "On this screen" in await screen.press("question_mark"), "it begins with what works there"


async def test_frozen_view_stands_still_while_the_run_goes_on() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        assert "VIEW FROZEN" in await screen.press("space")
        frozen = await screen.publish(ProgressReported("Walker", 333_000, 333_000, 1.0, 1))
        assert "160k" in frozen
        assert "333k" not in frozen
        text = await screen.press("space")
        assert "VIEW FROZEN" not in text
        assert "333k" in text


async def test_frozen_view_shows_the_outcome_of_a_command_nevertheless() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        await screen.press("space")
        text = await screen.press("c")
        assert "VIEW FROZEN" in text
        assert "✓ checkpoint Walker: done" in text


@pytest.mark.parametrize("size", SIZES)
async def test_leaving_asks_and_says_what_stopping_now_costs(size: tuple[int, int]) -> None:
    async with Driven(scenes.healthy(3).view(), size) as screen:
        text = await screen.press("q")
        assert "3 behaviors are training" in text
        assert "loses 51.0k steps (33s of" in text
        assert "Return · Walker" in await screen.press("escape")
        assert screen.session.commands == []


async def test_question_how_to_leave_is_gone_when_the_run_ends_meanwhile() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        assert "1 behavior is training" in await screen.press("q")
        assert "Nothing is training any more" in await screen.publish(BehaviorStateChanged("Walker", "finished"))
        text = await screen.publish(RunStateChanged("finished", exit_code=0))
        assert "✓ finished after" in text
        assert "the run has ended by itself; q leaves" in text
        assert screen.app.is_running


async def test_second_quit_and_plain_answers_do_no_harm() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        for key in ("q", "ctrl+q", "enter", "n"):
            await screen.press("q", key)
            assert screen.session.commands == []
            assert screen.app.is_running


async def test_checkpoint_and_stop_waits_for_the_end_of_the_run() -> None:
    async with Driven(scenes.healthy(2).view()) as screen:
        assert "Saving and stopping" in await screen.press("q", "s")
        assert [(c.mode, c.exit_code) for c in screen.session.commands if isinstance(c, Stop)] == [("checkpoint", 0)]
        await screen.publish(CheckpointSaved("Walker", 161_000, "results/w", "interrupted", 1.0, False, 1, 0.1))
        assert "saved at step 161k" in await screen.press("s")
        assert len(screen.session.commands) == 1
        await screen.publish(RunStateChanged("finished", exit_code=0))
        assert screen.app.return_value == "stop"


async def test_slow_stop_can_be_looked_at_and_cut_short_after_another_question() -> None:
    async with Driven(losing_steps()) as screen:
        assert "Return · Walker" in await screen.press("q", "s", "escape")
        assert "loses 12.3k steps" in await screen.press("q", "k")
        assert stops(screen) == ["checkpoint"]
        await screen.pilot.press("y")
        assert stops(screen) == ["checkpoint", "now"]
        assert screen.app.return_value == "now"


async def test_stop_now_says_what_is_lost_and_leaves_at_another_key() -> None:
    async with Driven(losing_steps()) as screen:
        assert "Stop without saving?" in await screen.press("q", "y", "k")
        assert "loses 12.3k steps" in await screen.press("k", "k")
        assert stops(screen) == []
        await screen.pilot.press("y")
        assert stops(screen) == ["now"]
        assert screen.app.return_value == "now"


@pytest.mark.parametrize("key", ["escape", "enter", "n", "q"])
async def test_stop_now_is_thought_better_of_by_what_stays_elsewhere(key: str) -> None:
    async with Driven(losing_steps()) as screen:
        assert "Return · Walker" in await screen.press("q", "k", key)
        assert "checkpoint and stop" in await screen.press("q")
        assert stops(screen) == []


async def test_stop_now_leaves_at_once_where_nothing_is_lost() -> None:
    story = scenes.healthy(1)
    story.save("Walker", 160_000, 400.0)
    async with Driven(story.view()) as screen:
        await screen.pilot.press("q", "k")
        assert stops(screen) == ["now"]
        assert screen.app.return_value == "now"


async def test_ctrl_c_asks_then_saves_then_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("rl_tui.tui.screens.exit_policy.monotonic", lambda: now[0])
    async with Driven(losing_steps()) as screen:
        await screen.pilot.press("ctrl+c")
        assert isinstance(screen.app.screen, LeaveScreen)
        assert stops(screen) == []
        now[0] += 1.1
        await screen.pilot.press("ctrl+c")
        assert stops(screen) == ["checkpoint"]
        now[0] += 1.1
        await screen.pilot.press("ctrl+c")
        assert stops(screen) == ["checkpoint", "now"]
        assert screen.app.return_value == "now"


async def test_a_burst_of_ctrl_c_or_a_held_key_is_one_press(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("rl_tui.tui.screens.exit_policy.monotonic", lambda: now[0])
    async with Driven(losing_steps()) as screen:
        for _ in range(8):
            await screen.pilot.press("ctrl+c")
            now[0] += 0.5
        assert stops(screen) == []
        assert "repeats within 1 s count once" in await screen.text()


def asked(screen: Driven) -> list[tuple[str, str | None]]:
    """What was asked of the run, and of whom."""
    return [(type(c).__name__, c.behavior) for c in screen.session.commands if isinstance(c, Pause | Resume)]


async def test_second_key_takes_back_what_the_first_asked_though_the_run_has_not_answered() -> None:
    async with Driven(scenes.healthy(2).view(), answers=False) as screen:
        await screen.press("p", "p", "p")
        assert asked(screen) == [("Pause", "Walker"), ("Resume", "Walker"), ("Pause", "Walker")]
        await screen.press("P", "P", "p")
        assert asked(screen)[3:] == [("Pause", None), ("Resume", None), ("Pause", "Walker")]


async def test_once_the_run_has_answered_its_state_counts_again() -> None:
    async with Driven(scenes.healthy(1).view(), answers=False) as screen:
        await screen.press("p")
        await screen.publish(CommandFinished(screen.session.commands[0].id, False, "Walker went on"))
        await screen.press("p")
        assert asked(screen) == [("Pause", "Walker"), ("Pause", "Walker")]
        await screen.publish(
            BehaviorStateChanged("Walker", "paused"), CommandFinished(screen.session.commands[1].id, True, "")
        )
        await screen.press("p")
        assert asked(screen)[2:] == [("Resume", "Walker")]


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_finished_run_is_left_at_once(key: str) -> None:
    async with Driven(scenes.finished().view()) as screen:
        await screen.pilot.press(key)
        assert screen.app.return_value == "finished"


async def test_screen_stays_after_the_end_and_says_why_keys_do_nothing() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        text = await screen.publish(
            BehaviorStateChanged("Walker", "finished"), RunStateChanged("finished", exit_code=0)
        )
        assert "✓ finished after" in text
        assert "checkpoint Walker: not possible, the run is over" in await screen.press("c")
        assert screen.session.commands == []


async def test_keys_before_the_engine_is_up_are_not_sent() -> None:
    async with Driven(scenes.empty().view()) as screen:
        assert "export all: not possible, the engine is starting" in await screen.press("E")
        assert screen.session.commands == []
