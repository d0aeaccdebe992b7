"""What the screen says of environments that wait for the user, and of workers that are restarting."""

from __future__ import annotations

import re

import pytest

from rl_tui.engine.session.environment_view import bare_reason, worker_word
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    BehaviorStateChanged,
    EnvironmentAwaits,
    EnvironmentFailed,
    EnvironmentRestarted,
    EnvironmentRestarting,
    RunStateChanged,
    WarningRaised,
)
from rl_tui.tui.panes.environments import clauses
from rl_tui.tui.screens.alerts import alert_for
from tests.tui import scenes
from tests.tui.driver import Driven

SIZES = [(40, 10), (59, 14), (80, 24), (120, 40), (200, 60)]


@pytest.mark.parametrize("size", SIZES)
async def test_what_to_do_is_readable_on_every_terminal_and_gone_once_it_is_done(size: tuple[int, int]) -> None:
    story = scenes.awaiting_editor()
    async with Driven(story.view(), size) as driven:
        words = " ".join((await driven.text()).split())
        assert "Press Play in the Unity Editor" in words
        assert "WAITING" in words
        assert "--env" in words
    story.publish(EnvironmentAwaits("unity:editor", ""), after=1)
    story.publish(BehaviorStarted("3DBall", "ppo", "unity:editor", 0, 1000, 12, 500, False))
    story.publish(BehaviorStateChanged("3DBall", "training"))
    async with Driven(story.view(), size) as driven:
        words = " ".join((await driven.text()).split())
        assert "3DBall" in words
        assert "◌ Press Play" not in words, "it is in the log only"
        assert "WAITING" not in words


async def test_notice_makes_room_for_the_panes_while_the_screen_is_shown() -> None:
    story = scenes.awaiting_editor()
    async with Driven(story.view(), (120, 40)) as driven:
        assert "Devices" not in await driven.text()
        for event in (
            EnvironmentAwaits("unity:editor", ""),
            BehaviorStarted("3DBall", "ppo", "unity:editor", 0, 1000, 12, 500, False),
        ):
            story.publish(event, after=1)
            driven.app.view.apply(story.published[-1])
        text = await driven.text()
        assert "Devices" in text
        assert "3DBall" in text


async def test_run_that_ends_while_it_waits_shows_its_end() -> None:
    story = scenes.awaiting_editor()
    story.publish(RunStateChanged("stopped", "stopped by the user", exit_code=130))
    async with Driven(story.view(), (80, 24)) as driven:
        text = await driven.text()
        assert "STOPPED" in text
        assert "There is no hurry" not in text


async def test_behaviors_wait_without_alarm_while_play_is_stopped() -> None:
    async with Driven(scenes.play_stopped().view(), (120, 40)) as driven:
        text = await driven.text()
        assert text.count("◌ waiting") == 2
        assert "no step" not in text
        assert text.count("◌ Press Play in the Unity Editor") == 2, "in the first line and in the details"
        await driven.pilot.press("enter")
        assert "Press Play in the Unity Editor" in await driven.text()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_restarting_player_is_named_until_it_is_back(size: tuple[int, int]) -> None:
    story = scenes.restarting()
    async with Driven(story.view(), size) as driven:
        assert "player 2 " in (await driven.text()).splitlines()[0]
        await driven.pilot.press("enter")
        text = await driven.text()
        assert "◌ player 2 is restarting for 2s: the" in text
        assert "killed by SIGSEGV" in text
    story.publish(EnvironmentRestarted(scenes.PLAYER, 2, 3.0), after=3)
    async with Driven(story.view(), size) as driven:
        assert "player 2 " not in (await driven.text()).splitlines()[0]
        await driven.pilot.press("enter")
        assert "is restarting" not in await driven.text()


async def test_number_of_restarts_stays_in_sight() -> None:
    story = scenes.restarting()
    story.publish(EnvironmentRestarted(scenes.PLAYER, 2, 3.0), after=3)
    async with Driven(story.view(), (120, 40)) as driven:
        assert re.search(r"environment .*Walker  2 restarts", await driven.text())


def test_restart_is_announced_with_its_reason() -> None:
    event = EnvironmentRestarting(scenes.PLAYER, 2, ("Walker",), f"{scenes.PLAYER}, worker 2: it was killed", "", 1)
    alert = alert_for(event, scenes.restarting().view())
    assert alert is not None
    assert (alert.title, alert.severity) == ("Walker", "warning")
    assert alert.text == "player 2, restart 1: it was killed"
    assert not alert.is_loud


def test_restarts_that_are_warned_of_are_announced_no_more() -> None:
    story = scenes.restarting()
    event = EnvironmentRestarting(scenes.PLAYER, 2, ("Walker",), "it was killed", "", 3)
    story.publish(WarningRaised("frequent_restarts", "Crawler", "3 restarts", "look at the logs"))
    assert alert_for(event, story.view()) is not None
    story.publish(WarningRaised("frequent_restarts", "Walker", "3 restarts", "look at the logs"))
    assert alert_for(event, story.view()) is None


async def test_environment_that_failed_restarts_nothing_any_more() -> None:
    story = scenes.restarting()
    story.publish(EnvironmentFailed(scenes.PLAYER, ("Walker", "Crawler"), "restarted too often"))
    async with Driven(story.view(), (120, 40)) as driven:
        assert "is restarting" not in await driven.text()


def test_words_of_environments() -> None:
    assert clauses("press Play;\nor do not. \x1b[31mred") == ["Press Play", "Or do not", "Red"]
    assert clauses("") == [""]
    assert (worker_word("unity:a"), worker_word("gymnasium:Walker-v5")) == ("player", "worker")
    for reason, words in (
        ("unity:a: b, instance 1, worker 1: died: code 1", "died: code 1"),
        ("died: code 1", "died: code 1"),
        ("unity:a: b died", "unity:a: b died"),
    ):
        assert bare_reason(EnvironmentRestarting("unity:a: b", 1, (), reason, "", 1)) == words
