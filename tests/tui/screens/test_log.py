"""The log and the warnings: what is shown of them, every key, and text that would break a terminal."""

from __future__ import annotations

import pytest

from rl_tui.engine.session.messages import (
    CheckpointSaved,
    EnvironmentFailed,
    ExportFailed,
    LogEmitted,
    PolicyExported,
    WarningCleared,
    WarningRaised,
)
from rl_tui.engine.session.view import RunView
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.snapshots import check

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}
LONG = "the first words of a line that is " + "very " * 60 + "long"
HOSTILE = "\x1b[31mred\x1b]0;title\x07 [bold]markup[/bold] \x9b2J \u202egnp.exe\r\nsecond\tline"


def published() -> scenes.Story:
    """Three behaviors train; some lines of every level."""
    story = scenes.healthy(3)
    story.publish(LogEmitted("debug", "Crawler", "a debug line"), after=1)
    story.publish(LogEmitted("error", "Crawler", LONG), after=1)
    story.publish(EnvironmentFailed("gymnasium:X", ("Walker", "Hopper"), "worker 3 is silent"), after=1)
    return story


def warned() -> RunView:
    story = published()
    story.publish(
        WarningRaised("entropy", "Walker", "entropy near zero since 1.2M: it may have collapsed", "raise beta")
    )
    story.publish(WarningRaised("disk", "", "disk full in 40 minutes at this rate", "free some space"), after=70)
    return story.view()


@pytest.mark.parametrize("size", ["80x24", "120x40"])
async def test_log_looks_as_it_should(size: str) -> None:
    async with Driven(published().view(), SIZES[size], opened="log") as screen:
        check(f"log-{size}", await screen.text())


@pytest.mark.parametrize("size", ["80x24", "120x40"])
async def test_warnings_look_as_they_should(size: str) -> None:
    async with Driven(warned(), SIZES[size], opened="warnings") as screen:
        check(f"warnings-{size}", await screen.text())


@pytest.mark.parametrize("size", SIZES.values())
async def test_keys_open_and_close_both(size: tuple[int, int]) -> None:
    async with Driven(warned(), size) as screen:
        assert "Log ·" in await screen.press("l")
        assert "Warnings ·" in await screen.press("w")
        assert screen.screen.name == "warnings"
        await screen.press("escape")
        assert screen.screen.name == "overview"


async def test_level_key_goes_round_and_the_heading_names_it() -> None:
    async with Driven(published().view(), opened="log") as screen:
        assert "info and above" in await screen.text()
        text = await screen.press("semicolon")
        assert "warnings and errors" in text
        assert "worker 3 is silent" in text
        assert "CKPT" not in text
        text = await screen.press("semicolon")
        assert "· errors ·" in text
        assert "may have collapsed" not in text
        assert "a debug line" in await screen.press("semicolon")
        assert "a debug line" not in await screen.press("semicolon")


async def test_behavior_key_keeps_only_lines_of_the_selected_one() -> None:
    async with Driven(published().view(), opened="log") as screen:
        text = await screen.press("b")
        assert "only Walker" in text
        assert "CKPT   Walker" in text
        assert "worker 3 is silent" in text  # it concerns two of them
        assert "CKPT   Crawler" not in text
        assert "CKPT   Crawler" in await screen.press("2")
        assert "all behaviors" in await screen.press("b")


async def test_filter_keeps_lines_that_match() -> None:
    async with Driven(published().view(), opened="log") as screen:
        text = await screen.press("slash", *"step", "full_stop", "5", "enter")
        assert "/step.5/" in text
        assert "keep_checkpoints" not in text
        assert "CKPT" in text
        assert "keep_checkpoints" in await screen.press("escape")
        assert screen.screen.name == "log"


async def test_enter_shows_all_of_a_long_line_and_esc_hides_it() -> None:
    async with Driven(published().view(), opened="log") as screen:
        await screen.press("up")
        assert "long" not in await screen.press("up", "down")
        text = await screen.press("enter")
        assert "very very" in text
        assert "long" in text
        assert "long" not in await screen.press("escape")
        assert screen.screen.name == "log"


async def test_copied_line_is_whole() -> None:
    async with Driven(published().view(), opened="log") as screen:
        await screen.press("up", "y")
        assert screen.clipboard.endswith(LONG)


async def test_newest_line_stays_in_sight_until_the_cursor_leaves_it() -> None:
    async with Driven(published().view(), opened="log") as screen:
        assert "number one" in cursor_line(await screen.publish(LogEmitted("info", "run", "number one")))
        first = await screen.press("up")
        assert cursor_line(first).strip().endswith("silent")
        assert cursor_line(await screen.publish(LogEmitted("info", "run", "number two"))) == cursor_line(first)
        await screen.press("end")
        assert "number three" in cursor_line(await screen.publish(LogEmitted("info", "run", "number three")))


async def test_keys_reach_the_oldest_of_a_thousand_lines() -> None:
    story = published()
    for number in range(1500):
        story.publish(LogEmitted("info", "run", f"line {number}"))
    async with Driven(story.view(), opened="log") as screen:
        assert "1000 lines" in await screen.text()
        assert "line 500" in cursor_line(await screen.press("home"))
        assert "line 518" in cursor_line(await screen.press("pagedown"))
        assert "line 519" in cursor_line(await screen.press("down"))
        assert "line 1499" in cursor_line(await screen.press("end"))
        assert "1000 lines" in await screen.publish(*(LogEmitted("info", "run", f"more {at}") for at in range(3)))
        assert "line 503" in cursor_line(await screen.press("home"))


@pytest.mark.parametrize("size", SIZES.values())
async def test_log_opens_at_its_end_wherever_it_was_left(size: tuple[int, int]) -> None:
    story = published()
    for number in range(200):
        story.publish(LogEmitted("info", "run", f"line {number}"))
    async with Driven(story.view(), size) as screen:
        text = await screen.press("l")
        assert "line 199" in cursor_line(text)
        assert "newer" not in text
        assert "line 199" not in await screen.press("home")
        assert "line 199" in cursor_line(await screen.press("l", "l"))


async def test_bar_says_how_many_newer_lines_are_below() -> None:
    story = published()
    for number in range(100):
        story.publish(LogEmitted("info", "run", f"line {number}."))
    async with Driven(story.view(), opened="log") as screen:
        text = await screen.press("pageup", "pageup")
        shown = [int(row.split("line ")[1].split(".")[0]) for row in text.splitlines() if "   line " in row]
        assert f"{99 - shown[-1]} newer lines below · end" in text
        assert text.splitlines().index(next(row for row in text.splitlines() if "newer lines" in row)) == 21
        text = await screen.publish(LogEmitted("info", "run", "one more"))
        assert f"{100 - shown[-1]} newer lines below" in text
        assert "newer" not in await screen.press("end")


async def test_click_on_the_bar_goes_to_the_end() -> None:
    story = published()
    for number in range(100):
        story.publish(LogEmitted("info", "run", f"line {number}."))
    async with Driven(story.view(), opened="log") as screen:
        text = await screen.press("pageup", "pageup")
        bar = next(index for index, row in enumerate(text.splitlines()) if "newer lines" in row)
        await screen.pilot.click(offset=(20, bar))
        text = await screen.until(lambda text: "newer lines" not in text)
        assert "line 99." in cursor_line(text)


async def test_export_of_a_checkpoint_is_in_its_line() -> None:
    story = published()
    story.publish(CheckpointSaved("Walker", 7000, "w/W-7000", "interval", 5.0, True, 9, 1.0), after=1)
    story.publish(LogEmitted("info", "run", "between"), after=1)
    async with Driven(story.view(), opened="log") as screen:
        assert "step 7000 saved, return 5.000, best: w/W-7000" in await screen.text()
        text = await screen.publish(PolicyExported("Walker", 7000, "w/W-7000.onnx", 0.0, 1.0))
        assert "step 7000 saved, return 5.000, best, ONNX" in text
        assert "   ONNX " not in text
        await screen.press("up", "y")
        assert "w/W-7000\n" in screen.clipboard
        assert screen.clipboard.endswith("w/W-7000.onnx")
        await screen.press("end")
        text = await screen.publish(
            PolicyExported("Walker", 8000, "w/Walker-8000.onnx", 0.0, 1.0),
            ExportFailed("Walker", 7000, "disk full"),
        )
        assert "ONNX   Walker    step 8000 exported" in text, "it is of no checkpoint"
        assert "step 7000 not exported: disk full" in text


@pytest.mark.parametrize("opened", ["log", "warnings"])
@pytest.mark.parametrize("size", [(20, 5), (40, 12), (80, 24)])
async def test_text_from_outside_neither_styles_nor_breaks(opened: str, size: tuple[int, int]) -> None:
    story = scenes.healthy(1)
    story.publish(LogEmitted("error", HOSTILE, HOSTILE))
    story.publish(WarningRaised("x", HOSTILE, HOSTILE, HOSTILE))
    async with Driven(story.view(), size, opened=opened) as screen:
        texts = [await screen.text(), await screen.press("enter"), await screen.press("b")]
        assert not any(sign in text for text in texts for sign in "\x1b\x9b\x07\u202e\r\t")
        assert size != (80, 24) or "red [bold]markup[/bold]" in texts[0]


async def test_active_warnings_stand_on_top_until_they_are_cleared() -> None:
    async with Driven(warned(), opened="warnings") as screen:
        text = await screen.text()
        assert "2 active" in text
        assert text.index("try: free some space") < text.index("try: raise beta") < text.index("worker 3 is silent")
        text = await screen.publish(WarningCleared("entropy", "Walker"))
        assert "1 active" in text
        assert "try: raise beta" not in text
        assert "the run for" in text


async def test_warnings_of_one_behavior_and_of_the_run_alone() -> None:
    async with Driven(warned(), opened="warnings") as screen:
        text = await screen.press("2", "b")
        assert "only Crawler" in text
        assert "try: free some space" in text  # it concerns all
        assert "try: raise beta" not in text


async def test_healthy_run_has_no_warning_and_a_new_one_no_line() -> None:
    async with Driven(scenes.finished().view(), opened="warnings") as screen:
        assert "none active" in await screen.text()
    async with Driven(RunView(), opened="log") as screen:
        assert "no line yet" in await screen.text()
        assert "no warnings or errors so far" in await screen.press("w")


async def test_path_of_a_checkpoint_is_shown_whole_or_not_at_all() -> None:
    story = published()
    folder = "results/a-run-with-a-long-name/Walker/checkpoints"
    story.publish(CheckpointSaved("Walker", 7000, f"{folder}/Walker-7000", "interval", 5.0, True, 9, 1.0), after=1)
    async with Driven(story.view(), opened="log") as screen:
        assert cursor_line(await screen.text()).endswith("step 7000 saved, return 5.000, best")
        assert f"{folder}/Walker-7000" in (await screen.press("enter")).replace("\n", "").replace(" ", "")
    async with Driven(story.view(), (200, 60), opened="log") as screen:
        assert f"best: {folder}/Walker-7000" in await screen.text()


def cursor_line(text: str) -> str:
    """The line on which the cursor stands."""
    return next(row for row in text.splitlines()[2:] if row.lstrip("│ ").startswith("▸"))
