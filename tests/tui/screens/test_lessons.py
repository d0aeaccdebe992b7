"""The screen of environment parameters: lessons, how far to the next one, and moving between them by hand."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from rl_tui.engine.session.messages import (
    BehaviorStateChanged,
    CommandFinished,
    LessonChanged,
    MetricsReported,
    ParametersReported,
    ParameterStatus,
    RunStateChanged,
    SetLesson,
)
from rl_tui.engine.session.view import RunView
from rl_tui.tui.charts.metrics import metric_title
from rl_tui.tui.panes.lesson_chart import LessonChart
from rl_tui.tui.panes.lesson_list import ending
from rl_tui.tui.panes.lesson_words import conditions, missing, share_of
from rl_tui.tui.screens.confirm import ConfirmScreen
from rl_tui.tui.screens.lessons import LessonsScreen
from rl_tui.tui.screens.prompt import PromptScreen
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.recorded import story_of
from tests.tui.snapshots import check

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60), "60x15": (60, 15), "50x12": (50, 12)}


def lessons(**changed: object) -> scenes.Story:
    """The scene, with other values of `terrain`."""
    story = scenes.lessons()
    if changed:
        terrain = replace(scenes.TERRAIN, **changed)  # type: ignore[arg-type]  # fields of it
        story.publish(ParametersReported({**scenes.PARAMETERS, "terrain": terrain}))
    return story


def words(text: str) -> str:
    """On one line, without frames."""
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize("size", SIZES)
async def test_screen_of_lessons_looks_as_it_was_designed(size: str) -> None:
    async with Driven(scenes.lessons().view(), SIZES[size]) as screen:
        check(f"lessons-{size}", await screen.press("h"))


async def test_screen_of_lessons_is_plain_ascii_without_unicode() -> None:
    async with Driven(scenes.lessons().view(), (80, 24), is_ascii=True, opened="lessons") as screen:
        assert (await screen.text()).isascii()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_each_parameter_has_its_lesson_its_value_and_what_is_missing(size: tuple[int, int]) -> None:
    async with Driven(scenes.lessons().view(), size, opened="lessons") as screen:
        rows = {row.strip("│▸ ").split()[0]: row for row in (await screen.text()).splitlines() if row.strip("│ ▸")}
        assert '3/5 "Hills"' in rows["terrain"]
        assert "uniform from 0.4 to 0.8" in rows["terrain"]
        assert "60%" in rows["terrain"]  # of the episodes, which is less than of the return
        assert "66%" in rows["wall_height"]
        assert "last lesson" in rows["obstacles"]
        assert "sampler" in rows["torso_mass"]
        assert "constant" in rows["gravity"]
        assert "9.81" in rows["gravity"]


async def test_details_say_when_the_lesson_ends_how_far_that_is_and_when_others_were_reached() -> None:
    async with Driven(scenes.lessons().view(), (120, 40), opened="lessons") as screen:
        text = words(await screen.text())
        condition = "once the mean return of Walker is greater than 450 and 100 episodes have ended"
        assert f"{condition}; all environments are then reset" in text
        assert "return 411.7 of 450.0" in text
        assert "91%" in text
        assert 'lesson 2 "Slopes" at step 90.0k of Walker' in text
        assert "lesson 3 ends above 450" in text
        text = words(await screen.press("down"))
        assert "once Crawler has made more than 50% of its max_steps" in text
        assert "progress 33.4% of 50% ━━" in text
        text = words(await screen.press("down"))
        assert '4 of 4 "Many", the last' in text
        text = words(await screen.press("down"))
        assert "normal, mean 3.5, st. dev. 0.4, drawn again for every episode" in text


async def test_chart_is_of_the_behavior_that_decides_and_shows_the_threshold() -> None:
    async with Driven(scenes.lessons().view(), (120, 40), opened="lessons") as screen:
        await screen.press("2")  # the selected behavior does not matter
        figure = screen.screen.query_one(LessonChart).drawn()
        assert figure is not None
        assert [curve.name for curve in figure.curves][1:] == ["threshold"]
        assert set(figure.curves[1].mean) == {450.0}
        assert [mark.text for mark in figure.marks if mark.word == "lesson"] == [
            "terrain lesson 2 Slopes",
            "terrain lesson 3 Hills",
            "obstacles lesson 4 Many",  # Crawler has ended the one before; Walker meets it, too
        ]
        text = await screen.press("down")
        assert "Return · Crawler" in text
        figure = screen.screen.query_one(LessonChart).drawn()
        assert figure is not None
        assert len(figure.curves) == 1  # progress has no threshold in returns


@pytest.mark.parametrize(("key", "lesson"), [("right_curly_bracket", 4), ("left_curly_bracket", 2)])
async def test_lesson_is_changed_by_hand_after_asking(key: str, lesson: int) -> None:
    async with Driven(scenes.lessons().view(), opened="lessons") as screen:
        text = words(await screen.press(key))
        assert f"Change terrain to lesson {lesson} of 5?" in text
        assert f'From lesson 3 "Hills" to lesson {lesson}' in text
        assert "from each agent's next episode on" in text
        assert "All environments are reset" in text
        assert ("By itself it would change once the mean return" in text) == (lesson == 4)
        assert ("It goes forward again by itself" in text) == (lesson == 2)
        assert screen.session.commands == []
        text = await screen.press("y")
        (command,) = screen.session.commands
        assert isinstance(command, SetLesson)
        assert (command.parameter, command.lesson, command.behavior) == ("terrain", lesson, None)
        assert f"✓ lesson {lesson} of terrain: done" in text


async def test_no_lesson_is_changed_without_a_yes() -> None:
    async with Driven(scenes.lessons().view(), opened="lessons") as screen:
        await screen.press("right_curly_bracket")
        assert isinstance(screen.app.screen, ConfirmScreen)
        await screen.press("enter")
        assert isinstance(screen.app.screen, LessonsScreen)
        assert screen.session.commands == []


async def test_any_lesson_can_be_typed_and_what_is_none_is_refused() -> None:
    async with Driven(scenes.lessons().view(), (120, 40), opened="lessons") as screen:
        text = await screen.press("enter")
        assert "Lesson of terrain, from 1 to 5" in text
        assert "it is at lesson 3 now" in text
        for typed in (["6"], ["0"], ["x"], ["minus", "1"]):
            assert "must be a lesson from 1 to 5" in await screen.press(*typed, "enter")
            assert isinstance(screen.app.screen, PromptScreen)
            await screen.press(*["backspace"] * len(typed))
        assert "lesson 3 -> 5" in await screen.press("5")
        assert "Change terrain to lesson 5 of 5?" in await screen.press("enter")
        await screen.press("y")
        assert [command.lesson for command in screen.session.commands if isinstance(command, SetLesson)] == [5]


async def test_last_lesson_first_lesson_and_parameters_without_lessons_say_why_they_stay() -> None:
    async with Driven(scenes.lessons().view(), (120, 40), opened="lessons") as screen:
        assert "lesson: wall_height is at its first lesson, 1 of 3" in await screen.press("down", "left_curly_bracket")
        assert "lesson: obstacles is at its last lesson, 4 of 4" in await screen.press("down", "right_curly_bracket")
        for key in ("right_curly_bracket", "left_curly_bracket", "enter"):
            await screen.press("home", "down", "down", "down")
            assert "lesson: torso_mass is drawn by a sampler; it has no lessons" in await screen.press(key)
            assert "lesson: gravity is constant; it has no lessons" in await screen.press("down", key)
        assert screen.session.commands == []


async def test_lesson_is_changed_while_the_run_is_paused() -> None:
    story = scenes.lessons()
    for name in ("Walker", "Crawler"):
        story.publish(BehaviorStateChanged(name, "paused"))
    story.publish(RunStateChanged("paused"))
    async with Driven(story.view(), opened="lessons") as screen:
        await screen.press("right_curly_bracket", "y")
        assert len(screen.session.commands) == 1


async def test_run_that_is_over_and_read_only_screen_show_lessons_and_refuse_to_change_them() -> None:
    async with Driven(
        scenes.lessons().view(), (120, 40), opened="lessons", refuses="the screen is read-only"
    ) as screen:
        for key in ("right_curly_bracket", "left_curly_bracket", "enter"):
            assert "lesson of terrain: not possible, the screen is read-only" in await screen.press(key)
    async with Driven(scenes.lessons().view(), (120, 40), opened="lessons") as screen:
        text = await screen.publish(RunStateChanged("finished", exit_code=0))
        assert '3/5 "Hills"' in text
        assert "next lesson" not in text.splitlines()[-1]
        assert "lesson of terrain: not possible, the run is over" in await screen.press("right_curly_bracket")
        assert screen.session.commands == []


async def test_refusal_of_the_engine_is_shown_with_its_reason() -> None:
    async with Driven(scenes.lessons().view(), (120, 40), opened="lessons", answers=False) as screen:
        assert "◌ lesson 4 of terrain: requested" in await screen.press("right_curly_bracket", "y")
        text = await screen.publish(CommandFinished(screen.session.commands[0].id, False, "terrain has no lessons"))
        assert "✗ lesson 4 of terrain: failed in" in text


async def test_advance_is_seen_at_once_and_a_lesson_before_is_named_in_the_question() -> None:
    async with Driven(scenes.lessons().view(), (120, 40), opened="lessons") as screen:
        reached = replace(scenes.TERRAIN, lesson=4, name="Mountains", current=None, episodes=0)
        changed = LessonChanged("Walker", 160_000, "terrain", 4, 5, "Mountains")
        text = await screen.publish(changed, ParametersReported({"terrain": reached}))
        assert '4/5 "Mountains"' in text
        assert "no episode yet" in text
        assert 'lesson 4 "Mountains" at step 160k of Walker' in text
        assert 'to lesson 3 "Hills"' in words(await screen.press("left_curly_bracket"))


async def test_run_without_environment_parameters_says_what_they_are() -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40), opened="lessons") as screen:
        text = await screen.text()
        assert "the file has no environment_parameters: numbers, samplers or lessons" in text
        for key in ("right_curly_bracket", "left_curly_bracket", "enter"):
            assert "lesson: the run has no environment parameters" in await screen.press(key)
    async with Driven(scenes.healthy(1).view(), (120, 40)) as overview:
        assert "h lessons" not in (await overview.text()).splitlines()[-1]
    async with Driven(RunView(), (120, 40), opened="lessons") as screen:
        assert "available once training starts" in await screen.text()


async def test_filter_that_finds_no_parameter_says_so() -> None:
    async with Driven(scenes.lessons().view(), (120, 40), opened="lessons") as screen:
        await screen.press("slash", "x", "x", "enter")
        assert "no parameter is selected" in await screen.text()
        assert "lesson: no parameter matches the filter; esc shows all" in await screen.press("right_curly_bracket")
        assert "terrain" in await screen.press("escape")


async def test_overview_and_detail_have_the_lesson_of_the_behavior_that_decides() -> None:
    async with Driven(scenes.lessons().view(), (120, 40)) as overview:
        text = await overview.text()
        assert 'lesson      3/5 "Hills" 60%  terrain' in text
        assert "wall_height" not in text
        assert "h lessons" in text.splitlines()[-1]
        text = await overview.press("2")
        assert 'lesson      1/3 "Low" 66%  wall_height' in text
        assert 'lesson      4/4 "Many"  obstacles' in text


async def test_table_has_the_lesson_before_the_first_one_ends_and_of_several_the_one_least_far() -> None:
    story = scenes.healthy(2)
    story.publish(ParametersReported(scenes.PARAMETERS))
    async with Driven(story.view(), (120, 40)) as overview:
        text = await overview.text()
        assert "lesson" in text.splitlines()[2]
        walker, crawler = (row for row in text.splitlines() if "● training" in row and "PPO" in row)
        assert "3/5" in walker
        assert "1/3" in crawler
        nearer = replace(scenes.TERRAIN, lesson=2, num_lessons=3)
        parameters = {"terrain": nearer, "wind": replace(scenes.TERRAIN, lesson=1, num_lessons=2)}
        assert "1/2" in await overview.publish(ParametersReported(parameters))


async def test_long_names_of_lessons_leave_room_for_those_of_parameters() -> None:
    story = lessons(name="a very long name of a lesson")
    async with Driven(story.view(), (120, 40)) as overview:
        assert 'lesson      3/5 "a very long… 60%  terrain' in await overview.text()


async def test_figures_do_not_repeat_lessons_as_numbers_from_zero() -> None:
    story = scenes.lessons()
    metrics = {"Environment/Lesson Number/gravity": 0.0, "Policy/Entropy": 0.77}
    story.publish(MetricsReported("Walker", 150_000, 1.0, metrics, 5.0, 1.0, None, True))
    async with Driven(story.view(), (120, 40)) as overview:
        text = await overview.text()
        assert "0.770" in text
        assert "gravity" not in text
    assert metric_title("Environment/Lesson Number/gravity") == "Lesson Number of gravity"


async def test_trend_starts_over_with_a_lesson() -> None:
    story = story_of("rising", scenes.START, 400.0, ("Walker",), ends=False)
    async with Driven(story.view(), (120, 40)) as overview:
        assert re.search(r"▲ \+[\d.]+% in 39k steps", await overview.text())
    story.publish(LessonChanged("Walker", 100_000, "terrain", 2, 5), after=1)
    async with Driven(story.view(), (120, 40)) as overview:
        assert "▲" not in await overview.text()


async def test_cursor_begins_at_the_first_parameter_with_lessons() -> None:
    story = scenes.lessons()
    story.publish(ParametersReported(dict(reversed(scenes.PARAMETERS.items()))))
    async with Driven(story.view(), (120, 40), opened="lessons") as screen:
        assert "▸ obstacles" in await screen.text()
        assert "▸ gravity" in await screen.press("home")
        assert "no parameter is selected" in await screen.press("slash", "x", "x", "enter")


async def test_lessons_that_stay_say_so() -> None:
    async with Driven(lessons(measure="").view(), (120, 40), opened="lessons") as screen:
        text = words(await screen.text())
        assert 'lesson 3 of 5 "Hills", which stays' in text
        assert "ends" not in text
        for key in ("right_curly_bracket", "left_curly_bracket"):
            question = words(await screen.press(key))
            assert "All environments are reset" in question
            assert "by itself" not in question.lower()
            await screen.press("escape")


async def test_hostile_words_cannot_drive_the_terminal() -> None:
    evil = "\x1b[2Jevil\x07" + "x" * 90
    status = ParameterStatus("lessons", evil, 1, 2, evil, evil, "reward", math.nan, math.inf, 0, 10)
    story = scenes.lessons()
    story.publish(ParametersReported({evil: status}))
    for size in ((80, 24), (120, 40)):
        async with Driven(story.view(), size, opened="lessons") as screen:
            text = await screen.press("right_curly_bracket")
            await screen.press("escape")
            assert "evilxxx" in text + await screen.text()
            assert "\x1b" not in text


@pytest.mark.parametrize(
    ("current", "threshold", "share"),
    [
        (50.0, 100.0, 0.5),
        (-50.0, 100.0, 0.0),
        (100.0, 100.0, 1.0),
        (101.0, 100.0, 1.0),
        (-400.0, -100.0, 0.25),
        (-100.0, -100.0, 1.0),
        (5.0, -100.0, 1.0),
        (-1.0, 0.0, 0.0),
        (0.0, 0.0, 0.0),
        (1.0, math.inf, 0.0),
        (-math.inf, -100.0, 0.0),
    ],
)
def test_share_of_the_threshold_is_between_nothing_and_all(current: float, threshold: float, share: float) -> None:
    assert share_of(current, threshold) == pytest.approx(share)


def test_number_that_is_none_has_reached_nothing() -> None:
    for threshold in (1.0, 0.0, -1.0):
        assert share_of(math.nan, threshold) == 0


def test_what_is_met_least_is_missing() -> None:
    assert missing(scenes.TERRAIN) == conditions(scenes.TERRAIN)[1]
    assert missing(replace(scenes.TERRAIN, episodes=100)) == conditions(scenes.TERRAIN)[0]
    assert missing(scenes.PARAMETERS["gravity"]) is None
    assert "reset" not in ending(replace(scenes.TERRAIN, require_reset=False, min_lesson_length=0))
