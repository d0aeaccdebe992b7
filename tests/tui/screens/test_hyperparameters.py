"""The screen of hyperparameters: changing them live, what is reported of it, and taking it back."""

from __future__ import annotations

import math

import pytest

from rl_tui.engine.session.messages import (
    CommandFinished,
    HyperparameterChanged,
    HyperparametersReported,
    MetricsReported,
    Range,
    RunStateChanged,
    SetHyperparameter,
)
from rl_tui.tui.screens.confirm import ConfirmScreen
from rl_tui.tui.screens.hyperparameters import HyperparametersScreen, new_value, newest_standing
from rl_tui.tui.screens.prompt import PromptScreen
from tests.tui import scenes
from tests.tui.driver import Driven

SIZES = [(80, 24), (120, 40), (200, 60)]
RANGES = {"learning_rate": Range(0.0, above_minimum=True), "num_epoch": Range(1.0, is_whole=True)}
VALUES = {"learning_rate": 3e-4, "beta": 0.005, "epsilon": 0.2, "num_epoch": 3.0}


def tuned() -> scenes.Story:
    """Walker's learning rate was lowered once."""
    story = scenes.healthy(2)
    story.publish(HyperparametersReported("Walker", VALUES, RANGES))
    summarize(story, 100_000, 1e-3)
    story.publish(HyperparameterChanged("Walker", 120_000, "learning_rate", 1e-3, 3e-4), after=10)
    summarize(story, 125_000, 5e-4)
    summarize(story, 150_000, 2e-4)
    return story


def summarize(story: scenes.Story, step: int, learning_rate: float) -> None:
    """The next summary has that learning rate."""
    moved = {"Policy/Learning Rate": learning_rate}
    story.publish(MetricsReported("Walker", step, 99.0, moved, None, None, None, True), after=0)


@pytest.mark.parametrize("size", SIZES)
async def test_value_schedule_and_last_change_stand_side_by_side(size: tuple[int, int]) -> None:
    async with Driven(tuned().view(), size) as screen:
        rows = (await screen.press("u")).splitlines()
        row = next(row for row in rows if "learning_rate" in row)
        assert row.strip("│ ").split()[:4] == ["▸", "learning_rate", "0.0003", "0.0002"]
        assert "0.001 -> 0.0003, 2s ago" in row
        assert any("beta" in row and "0.005" in row for row in rows)
        assert any("learning_rate 0.001 -> 0.0003  at step 120k" in row for row in rows)


@pytest.mark.parametrize("size", SIZES)
async def test_change_is_checked_asked_and_then_sent(size: tuple[int, int]) -> None:
    async with Driven(tuned().view(), size, opened="hyperparameters") as screen:
        assert "learning_rate of Walker" in await screen.press("enter")
        text = await screen.press("1", "e", "minus", "4")
        assert "0.0003 -> 0.0001, from the next update on" in text
        assert screen.session.commands == []
        text = " ".join((await screen.press("enter")).replace("│", " ").split())
        assert "Change learning_rate of Walker?" in text
        assert "learning_rate 0.0003 -> 0.0001, applies from the next update." in text
        assert "The schedule has moved it to 0.0002;" in text
        text = await screen.press("y")
        (command,) = screen.session.commands
        assert isinstance(command, SetHyperparameter)
        assert (command.behavior, command.name, command.value) == ("Walker", "learning_rate", 1e-4)
        assert "✓ change learning_rate of Walker: done" in text


async def test_change_that_is_not_confirmed_is_said_to_be_none() -> None:
    async with Driven(tuned().view(), (120, 40), opened="hyperparameters") as screen:
        text = await screen.press("enter", "1", "e", "minus", "4", "enter", "enter")  # no is the first choice
        assert "learning_rate stays 0.0003" in text
        assert screen.session.commands == []


async def test_no_schedule_is_spoken_of_while_summaries_may_be_of_the_value_before() -> None:
    story = tuned()
    story.publish(HyperparameterChanged("Walker", 151_000, "learning_rate", 3e-4, 1e-4), after=1)
    story.publish(HyperparametersReported("Walker", {**VALUES, "learning_rate": 1e-4}, RANGES))
    async with Driven(story.view(), opened="hyperparameters") as screen:
        text = await screen.press("z")
        assert "0.0001 -> 0.0003" in text
        assert "schedule" not in text
        await screen.press("escape")
    summarize(story, 175_000, 1.5e-4)
    summarize(story, 200_000, 1e-4)
    async with Driven(story.view(), opened="hyperparameters") as screen:
        assert "schedule" not in await screen.press("z")


async def test_taking_back_waits_for_the_change_that_was_asked_for() -> None:
    async with Driven(tuned().view(), (120, 40), opened="hyperparameters", answers=False) as screen:
        await screen.press("enter", "1", "e", "minus", "4", "enter", "y")
        assert "undo: the last change has not been applied yet" in await screen.press("z")
        (command,) = screen.session.commands
        await screen.publish(
            HyperparameterChanged("Walker", 160_000, "learning_rate", 3e-4, 1e-4),
            CommandFinished(command.id, True, ""),
        )
        assert "Change learning_rate of Walker?" in await screen.press("z")


async def test_bad_number_is_reported_and_nothing_is_lost() -> None:
    async with Driven(tuned().view(), opened="hyperparameters") as screen:
        text = await screen.press("enter", "3", "e", "x", "enter")
        assert "type a number, such as 0.0003" in text
        assert "3ex" in text
        assert isinstance(screen.app.screen, PromptScreen)
        await screen.press("backspace", "minus", "3", "enter")
        assert isinstance(screen.app.screen, ConfirmScreen)
        await screen.press("escape")
        assert isinstance(screen.app.screen, HyperparametersScreen)
        assert screen.session.commands == []


async def test_value_that_a_file_could_not_hold_is_refused_while_it_is_typed() -> None:
    async with Driven(tuned().view(), (120, 40), opened="hyperparameters") as screen:
        text = await screen.press("enter")
        assert "learning_rate of Walker, greater than 0" in text
        text = await screen.press("minus", "1", "enter")
        assert "must be greater than 0, got -1" in text
        assert isinstance(screen.app.screen, PromptScreen)
        await screen.press("escape", "end")
        assert "num_epoch of Walker, a whole number of at least 1" in await screen.press("enter")
        assert "must be a whole number of at least 1, got 2.5" in await screen.press("2", "full_stop", "5", "enter")
        assert screen.session.commands == []


@pytest.mark.parametrize(("typed", "factor"), [("1e9", "3.33e+12 times"), ("*0.001", "0.001 times")])
async def test_change_by_more_than_a_hundred_times_is_asked_again(typed: str, factor: str) -> None:
    async with Driven(tuned().view(), (120, 40), opened="hyperparameters") as screen:
        keys = [{"*": "asterisk", ".": "full_stop"}.get(letter, letter) for letter in typed]
        text = await screen.press("enter", *keys, "enter", "y")
        assert screen.session.commands == []
        assert f"That is {factor} what it is" in " ".join(text.replace("│", " ").split())
        await screen.press("escape")
        assert screen.session.commands == []
        await screen.press("enter", *keys, "enter", "y", "y")
        assert len(screen.session.commands) == 1


async def test_refusal_of_the_engine_is_shown_with_its_reason() -> None:
    async with Driven(tuned().view(), (120, 40), opened="hyperparameters", answers=False) as screen:
        assert "◌ change num_epoch of Walker: requested" in await screen.press("end", "enter", "9", "enter", "y")
        reason = "num_epoch: 0 is too small; at least 1"
        text = await screen.publish(CommandFinished(screen.session.commands[0].id, False, reason))
        assert "✗ change num_epoch of Walker: failed in" in text
        assert reason in text


async def test_newest_change_is_taken_back_after_asking() -> None:
    async with Driven(tuned().view(), opened="hyperparameters") as screen:
        text = await screen.press("z")
        assert "learning_rate 0.0003 -> 0.001, applies from the next" in text
        await screen.press("y")
        (command,) = screen.session.commands
        assert isinstance(command, SetHyperparameter)
        assert (command.name, command.value) == ("learning_rate", 1e-3)


def test_taking_back_goes_back_through_all_changes() -> None:
    published = [
        HyperparameterChanged("W", 1, "a", 1.0, 2.0),
        HyperparameterChanged("W", 2, "b", 5.0, 6.0),
        HyperparameterChanged("W", 3, "b", 6.0, 5.0),
    ]
    assert newest_standing(published) == published[0]
    assert newest_standing(published[:2]) == published[1]
    assert newest_standing([*published, HyperparameterChanged("W", 4, "a", 2.0, 1.0)]) is None
    assert newest_standing([]) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("3e-4", 3e-4), ("0.0003", 3e-4), ("*0.5", 0.5), ("/ 2", 0.5), (" * 2 ", 2.0), ("-1", -1.0), ("/-4", -0.25)],
)
def test_numbers_are_typed_as_people_write_them(text: str, value: float) -> None:
    assert new_value(text, 1.0) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "1e999", "/0", "*", "1 2", "1", "*1", "+", "0x10", "*1e400"])
def test_what_is_no_new_number_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"type|too large"):
        new_value(text, 1.0)


def test_relative_value_that_leaves_the_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        new_value("*1e300", 1e300)
    assert math.isfinite(new_value("/1e300", 1e-300))


async def test_other_pane_shows_the_changes_and_is_filtered_by_itself() -> None:
    async with Driven(tuned().view(), opened="hyperparameters") as screen:
        await screen.press("tab", "slash", "x", "x", "enter")
        text = await screen.text()
        assert "no line matches /xx/" in text
        assert "epsilon" in text


async def test_states_without_anything_to_change_say_why() -> None:
    async with Driven(scenes.warming_up().view(), opened="hyperparameters") as screen:
        text = await screen.text()
        assert "no hyperparameter of this behavior can be changed now" in text
        assert "none in this run" in text
        assert "change: no hyperparameter is selected" in await screen.press("enter")
        assert "undo: no hyperparameter of Walker has been changed" in await screen.press("z")
    async with Driven(scenes.empty().view(), opened="hyperparameters") as screen:
        assert "available once training starts" in await screen.text()


async def test_run_that_is_over_and_read_only_screen_refuse_before_asking() -> None:
    async with Driven(tuned().view(), opened="hyperparameters", refuses="the screen is read-only") as screen:
        for key in ("enter", "z"):
            words = "change learning_rate of Walker: not possible, the screen is read-only"
            assert words in await screen.press(key)
    async with Driven(tuned().view(), opened="hyperparameters") as screen:
        await screen.publish(RunStateChanged("finished", exit_code=0))
        assert "change learning_rate of Walker: not possible, the run is over" in await screen.press("enter")
        assert screen.session.commands == []


async def test_hostile_name_cannot_drive_the_terminal() -> None:
    story = scenes.healthy(1)
    story.publish(HyperparametersReported("Walker", {"\x1b[2Jevil\x07" + "x" * 90: 1.0}))
    async with Driven(story.view(), opened="hyperparameters") as screen:
        text = await screen.press("enter", "2", "enter")
        assert "evilxxx" in text
        assert "\x1b" not in text


@pytest.mark.parametrize(("size", "has_chart"), [((80, 24), False), ((120, 40), True), ((200, 60), True)])
async def test_course_of_the_one_below_the_cursor_is_drawn_where_there_is_room(
    size: tuple[int, int], has_chart: bool
) -> None:
    async with Driven(tuned().view(), size) as screen:
        text = await screen.press("u")
        assert ("Learning Rate" in text) is has_chart
        assert ("0.0010" in text) is has_chart
        text = await screen.press("end")
        assert "Learning Rate" not in text
        assert ("mean of 100 episodes" in text) is has_chart


@pytest.mark.parametrize("size", SIZES)
async def test_numbers_of_a_reward_signal_have_room_and_keep_their_whole_name_in_commands(
    size: tuple[int, int],
) -> None:
    story, name = tuned(), "reward_signals.curiosity.learning_rate"
    values, ranges = VALUES | {name: 2e-4}, RANGES | {name: Range(0.0, above_minimum=True)}
    story.publish(HyperparametersReported("Walker", values, ranges))
    story.publish(HyperparameterChanged("Walker", 150_000, name, 1e-4, 2e-4))
    async with Driven(story.view(), size, opened="hyperparameters") as screen:
        text = await screen.press("end")
        row = next(row for row in text.splitlines() if "▸ curiosity" in row)
        assert row.strip("│ ").split()[:4] == ["▸", "curiosity.learning_rate", "0.0002", "-"]
        assert "0.0001 -> 0.0002" in row
        assert "curiosity.learning_rate 0.0001 -> 0.0002  at step 150k" in text
        assert f"{name} of Walker" in await screen.press("enter")
        await screen.press("1", "e", "minus", "3", "enter", "y")
        (command,) = screen.session.commands
        assert isinstance(command, SetHyperparameter)
        assert (command.name, command.value) == (name, 1e-3)
