"""The screen of checkpoints: what it reports of each, and going back to one."""

from __future__ import annotations

import re

import pytest

from rl_tui.engine.session.messages import (
    BehaviorStateChanged,
    CheckpointRemoved,
    CheckpointSaved,
    CommandFinished,
    ExportPolicy,
    PolicyExported,
    RollBack,
    RunStateChanged,
    SaveCheckpoint,
)
from rl_tui.tui.screens.checkpoints import CheckpointsScreen
from rl_tui.tui.screens.confirm import ConfirmScreen
from tests.tui import scenes
from tests.tui.driver import Driven

SIZES = [(80, 24), (120, 40), (200, 60)]
MIDDLE = "results/walker-ppo/Walker/checkpoints/Walker-000100000"


def several() -> scenes.Story:
    """Checkpoints at 50k, 100k and 150k, the last the best; the middle one was exported."""
    story = scenes.healthy(2)
    story.publish(PolicyExported("Walker", 100_000, "results/walker-ppo/Walker/Walker-100000.onnx", 1e-6, 0.9))
    return story


async def test_roll_back_of_a_run_that_is_over_says_that_it_is_over() -> None:
    async with Driven(scenes.finished().view(), (120, 40)) as overview:
        text = await overview.press("R")
        assert "roll back Walker: not possible, the run is over" in text


async def test_behavior_that_diverged_is_rolled_back_by_a_key_of_the_overview() -> None:
    story = scenes.healthy(1)
    async with Driven(story.view(), (120, 40)) as overview:
        assert "has not diverged" in await overview.press("R")
        text = await overview.publish(BehaviorStateChanged("Walker", "failed", "the loss is nan", can_roll_back=True))
        good = overview.view.behaviors["Walker"].checkpoints[-1][1]
        assert "R rolls it back to step 150k" in text
        await overview.publish(CheckpointSaved("Walker", 163_000, "results/w/163000", "error", None, False, 9, 0.1))
        assert "Roll Walker back to step 150k?" in await overview.press("R")
        await overview.press("y")
        (command,) = overview.session.commands
        assert isinstance(command, RollBack)
        assert command.path == good.path


@pytest.mark.parametrize("size", SIZES)
async def test_each_checkpoint_is_reported_newest_first_and_the_best_has_a_star(size: tuple[int, int]) -> None:
    async with Driven(several().view(), size) as screen:
        text = await screen.press("k")
        rows = [line for line in text.splitlines() if "Walker-000" in line and "path  " not in line]
        assert [row.split("k ")[0].split()[-1] for row in rows] == ["150", "100", "50.0"]
        assert ["★" in row for row in rows] == [True, False, False]
        assert "Checkpoints of Walker · 3" in text


@pytest.mark.parametrize("size", SIZES)
async def test_details_show_rank_export_and_what_going_back_would_cost(size: tuple[int, int]) -> None:
    async with Driven(several().view(), size, opened="checkpoints") as screen:
        text = await screen.press("down")
        assert "274.7, rank 2 of 3 on disk" in text
        assert "Walker-100000.onnx (max difference" in text
        assert "the 60.0k steps of the " in text
        await screen.press("down")
        assert "not exported at this step" in await screen.text()


@pytest.mark.parametrize("size", SIZES)
async def test_one_saved_by_the_clock_says_that_the_next_one_replaces_it(size: tuple[int, int]) -> None:
    async with Driven(several().view(), size, opened="checkpoints") as screen:
        path = "results/walker-ppo/Walker/checkpoints/Walker-160000"
        text = await screen.publish(CheckpointSaved("Walker", 160_000, path, "clock", 100.0, False, 9, 0.1))
        assert len([line for line in text.splitlines() if "160k" in line and " clock " in line]) == 1
        await screen.press("up")
        words = " ".join((await screen.text()).split())
        assert "clock, until the next one by the clock" in words
        assert "Walker-160000" not in await screen.publish(CheckpointRemoved("Walker", 160_000, path))


async def test_small_terminal_leaves_room_for_more_than_one_checkpoint() -> None:
    async with Driven(several().view(), (60, 15), opened="checkpoints") as screen:
        text = await screen.text()
        assert "50.0k" in text
        assert "Details" in text


async def test_enter_hides_and_shows_the_details() -> None:
    async with Driven(several().view(), opened="checkpoints") as screen:
        assert "on disk" not in await screen.press("enter")
        assert "on disk" in await screen.press("enter")


@pytest.mark.parametrize("size", SIZES)
async def test_rolling_back_says_exactly_what_happens_and_asks(size: tuple[int, int]) -> None:
    async with Driven(several().view(), size, opened="checkpoints") as screen:
        text = " ".join((await screen.press("down", "R")).replace("│", " ").split())
        assert "Roll Walker back to step 100k?" in text
        assert "Walker continues from step 100k (return 274.7)." in text
        assert "The 60.0k steps of the " in text
        assert "since then are lost; the newer checkpoint is set aside, the best of all at step 150k" in text
        await screen.press("y")
        (command,) = screen.session.commands
        assert isinstance(command, RollBack)
        assert (command.behavior, command.path) == ("Walker", MIDDLE)
        assert "✓ roll back Walker: done" in await screen.text()


@pytest.mark.parametrize("key", ["enter", "escape", "n", "q"])
async def test_every_other_answer_leaves_all_as_it_is(key: str) -> None:
    async with Driven(several().view(), opened="checkpoints") as screen:
        await screen.press("R")
        assert isinstance(screen.app.screen, ConfirmScreen)
        await screen.press(key)
        assert isinstance(screen.app.screen, CheckpointsScreen)
        assert screen.session.commands == []


async def test_rolling_back_is_asked_at_once_and_a_failure_has_its_reason() -> None:
    async with Driven(several().view(), opened="checkpoints", answers=False) as screen:
        assert "◌ roll back Walker: requested" in await screen.press("R", "y")
        command = screen.session.commands[0]
        text = await screen.publish(CommandFinished(command.id, False, "manifest.json: checksum differs"))
        assert "✗ roll back Walker: failed in" in text
        assert "checksum differs" in text


async def test_click_on_an_answer_gives_it() -> None:
    async with Driven(several().view(), opened="checkpoints") as screen:
        rows = (await screen.press("R")).splitlines()
        line = next(number for number, row in enumerate(rows) if "y    roll back" in row)
        await screen.pilot.click(offset=(rows[line].index("roll back"), line))
        await screen.text()
        assert [type(command) for command in screen.session.commands] == [RollBack]


async def test_checkpoint_that_has_gone_while_the_view_was_frozen_is_not_gone_back_to() -> None:
    async with Driven(several().view(), opened="checkpoints") as screen:
        await screen.press("down", "space")
        await screen.publish(CheckpointRemoved("Walker", 100_000, MIDDLE))
        assert "roll back: this checkpoint is no longer on disk" in await screen.press("R")
        assert screen.session.commands == []


async def test_path_is_copied_and_said() -> None:
    async with Driven(several().view(), (120, 40), opened="checkpoints") as screen:
        text = await screen.press("down", "y")
        assert screen.clipboard == MIDDLE
        assert "copied" in text
        assert MIDDLE in text


async def test_policy_can_be_exported_and_saved_from_here() -> None:
    async with Driven(several().view(), opened="checkpoints") as screen:
        await screen.press("e", "c")
        assert [type(command) for command in screen.session.commands] == [ExportPolicy, SaveCheckpoint]


async def test_cursor_stays_on_its_checkpoint_when_a_newer_one_comes() -> None:
    async with Driven(several().view(), opened="checkpoints") as screen:
        await screen.press("down")
        saved = CheckpointSaved("Walker", 160_000, "results/Walker-000160000", "asked", None, False, 1, 0.1)
        text = await screen.publish(saved)
        assert "160k        -" in text
        assert "rank 2 of 3" in text


async def test_other_behavior_has_its_own_checkpoints() -> None:
    async with Driven(several().view(), opened="checkpoints") as screen:
        text = await screen.press("2")
        assert "Checkpoints of Crawler · 3" in text
        assert "Walker-000" not in text


async def test_nowhere_to_roll_back_to_below_a_filter_is_said() -> None:
    async with Driven(several().view(), opened="checkpoints") as screen:
        await screen.press("slash", "x", "x", "enter")
        assert "roll back: no checkpoint matches the filter; esc shows all" in await screen.press("R")
        assert screen.session.commands == []


async def test_behavior_without_checkpoints_says_so() -> None:
    async with Driven(scenes.warming_up().view(), opened="checkpoints") as screen:
        text = await screen.text()
        assert "none on disk yet; c saves one now" in text
        assert "no checkpoint is selected" in text
        assert re.search(r"roll back: \w+ has no checkpoint to roll back to yet; c saves one", await screen.press("R"))
        assert "copy: nothing is selected" in await screen.press("y")


async def test_run_without_behaviors_yet_breaks_nothing() -> None:
    async with Driven(scenes.empty().view(), opened="checkpoints") as screen:
        assert "Checkpoints of no behavior yet" in await screen.text()


async def test_long_and_hostile_path_neither_breaks_nor_drives_the_terminal() -> None:
    story = scenes.healthy(1)
    path = "results/" + "x" * 300 + "\x1b[31m/\x07Walker-1"
    story.publish(CheckpointSaved("Walker", 160_000, path, "asked", float("nan"), False, 10**15, 99999.0))
    for size in SIZES:
        async with Driven(story.view(), size, opened="checkpoints") as screen:
            text = await screen.text()
            assert "\x1b" not in text
            assert "\x07" not in text
            assert "nan" in text
            await screen.press("y")
            assert screen.clipboard == path.replace("\x1b[31m", "").replace("\x07", "")


async def test_finished_run_and_read_only_screen_refuse_in_words() -> None:
    async with Driven(several().view(), opened="checkpoints", refuses="the screen is read-only") as screen:
        assert "roll back Walker: not possible, the screen is read-only" in await screen.press("R")
    async with Driven(several().view(), opened="checkpoints") as screen:
        await screen.publish(RunStateChanged("finished", exit_code=0))
        assert "roll back Walker: not possible, the run is over" in await screen.press("R")
        assert screen.session.commands == []


async def test_run_that_ends_while_it_is_asked_is_left_alone() -> None:
    async with Driven(several().view(), opened="checkpoints") as screen:
        await screen.press("R")
        await screen.publish(RunStateChanged("finished", exit_code=0))
        assert "roll back Walker: not possible, the run is over" in await screen.press("y")
        assert screen.session.commands == []


async def test_question_keeps_its_answers_in_sight_on_the_smallest_screen() -> None:
    async with Driven(several().view(), (40, 10), opened="checkpoints") as screen:
        text = await screen.press("R")
        assert "y    roll back" in text
        assert "esc  no" in text


async def test_checkpoint_has_its_lessons_and_is_ranked_among_those_of_the_same() -> None:
    story = scenes.healthy(1)
    for number, lesson in enumerate((1, 2, 2), start=1):
        path, reward = f"results/Walker-{160 + number}000", 1000.0 / number
        saved = CheckpointSaved("Walker", 160_000 + number, path, "asked", reward, False, 1, 0.1, {"wall": lesson})
        story.publish(saved)
    unknown = CheckpointSaved("Walker", 164_000, "results/Walker-164000", "asked", None, False, 1, 0.1, {"wall": 3})
    async with Driven(story.view(), (120, 40), opened="checkpoints") as screen:
        text = await screen.text()
        assert "wall 2" in text
        assert "rank 2 of 2 of its lessons on disk" in text
        await screen.publish(unknown)
        text = await screen.press("home")
        assert "none: no episode of its lessons had ended" in text
        assert "wall 3" in text
        best = story.view().behaviors["Walker"].best_checkpoint
        assert best is not None
        assert best.step == 160_002


@pytest.mark.parametrize(
    ("size", "has_chart"), [((80, 24), False), ((80, 40), True), ((120, 40), True), ((200, 60), True)]
)
async def test_returns_stand_below_where_there_is_room(size: tuple[int, int], has_chart: bool) -> None:
    async with Driven(several().view(), size) as screen:
        text = await screen.press("k")
        assert ("mean of 100 episodes" in text) is has_chart
        axis = [row for row in text.splitlines() if "└0" in row and "▴" in row and "★" in row]
        assert len(axis) == has_chart
        assert "roll back" in text


async def test_without_returns_checkpoints_are_ranked_by_what_is_held_out() -> None:
    story = scenes.warming_up()
    for number, loss in enumerate((0.5, 0.25, 0.3), start=1):
        path = f"results/Walker-{number}000"
        saved = CheckpointSaved("Walker", 1000 * number, path, "asked", None, False, 1, 0.1, held_out_loss=loss)
        story.publish(saved)
    async with Driven(story.view(), (120, 40), opened="checkpoints") as screen:
        text = await screen.press("down", "down")
        assert "0.500 of what is held out, rank 3 of 3 on disk" in text
        text = " ".join(text.replace("│", " ").split())
        assert "the best of all at step 2.00k, held-out loss 0.250" in text
