"""The screen of worker processes: how fast each is, how long it waits, how old its policy is, restarts and memory."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from rl_tui.engine.session.messages import (
    EnvironmentFailed,
    EnvironmentRestarted,
    EnvironmentRestarting,
    RunStateChanged,
    Worker,
    WorkersSampled,
)
from rl_tui.engine.session.view import RunView
from rl_tui.tui.panes.worker_list import widths_in
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.snapshots import check

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60), "60x15": (60, 15), "50x12": (50, 12)}
WORKER = Worker(0, 4711, 1234.0, 0.25, 2, 3, 64 << 20)
POOL = "gymnasium:Pendulum-v1"


def rows_of(text: str) -> dict[str, list[str]]:
    """The words of each line of the list by the name of what it is about."""
    found = {}
    for row in text.splitlines():
        words = row.strip("│▸ ").split()
        if words[:1] in (["player"], ["worker"]):
            found[" ".join(words[:2])] = words[2:]
        elif words and ":" in words[0]:
            found[words[0]] = words[1:]
    return found


def sampled(*workers: Worker, environment: str = POOL, behavior: str = "Walker") -> scenes.Story:
    """A run with these workers."""
    story = scenes.healthy(1)
    story.publish(WorkersSampled(environment, (behavior,), workers), after=1)
    return story


@pytest.mark.parametrize("size", SIZES)
async def test_screen_of_workers_looks_as_it_was_designed(size: str) -> None:
    async with Driven(scenes.workers().view(), SIZES[size]) as screen:
        check(f"workers-{size}", await screen.press("W"))


async def test_screen_of_workers_is_plain_ascii_without_unicode() -> None:
    async with Driven(scenes.workers().view(), (80, 24), is_ascii=True, opened="workers") as screen:
        assert (await screen.text()).isascii()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_each_worker_has_its_figures_and_its_environment_their_sums(size: tuple[int, int]) -> None:
    second = replace(WORKER, number=1, pid=4712, waiting=0.75, lag=0, restarts=0)
    async with Driven(sampled(WORKER, second).view(), size, opened="workers") as screen:
        rows = rows_of(await screen.text())
    assert [*rows["worker 0"][:2], *rows["worker 0"][-4:]] == ["4711", "1.23k", "25%", "2", "3", "64M"]
    assert [*rows["worker 1"][:2], *rows["worker 1"][-4:]] == ["4712", "1.23k", "75%", "0", "0", "64M"]
    (total,) = [words for name, words in rows.items() if name.endswith("Pendulum-v1")]
    assert [total[0], *total[-4:]] == ["2.47k", "50%", "2", "3", "128M"]


async def test_figures_that_are_not_known_are_dashes() -> None:
    unknown = Worker(0, None, None, None, None, 0, None)
    async with Driven(sampled(unknown).view(), (120, 40), opened="workers") as screen:
        assert rows_of(await screen.text())["worker 0"] == ["-", "-", "-", "-", "0", "-"]


async def test_restarting_worker_shows_its_reason_until_it_acts_again() -> None:
    story = scenes.workers()
    async with Driven(story.view(), (120, 40), opened="workers") as screen:
        text = await screen.text()
        assert "Workers · 5" in text
        assert re.search(r"player 2 +41232 +◌ restarting for 3m\d\d: the player was killed by SIGSEGV +1 +244M", text)
        players, workers = ["player 0", "player 1", "player 2"], ["worker 0", "worker 1"]
        assert list(rows_of(text)) == [scenes.PLAYER, *players, POOL, *workers]
        text = await screen.press("down", "down", "down", "enter")
        assert "player 2 of unity:builds/Walker  pid 41232  restarting for" in text
        assert "1 restart  memory 244M" in text
        assert "player 2 of" not in await screen.press("escape")
        text = await screen.publish(EnvironmentRestarted(scenes.PLAYER, 2, 3.0))
        assert "restarting for" not in text
        assert rows_of(text)["player 2"][0] == "41232"


async def test_run_that_is_over_restarts_no_worker_but_shows_what_was_known() -> None:
    story = scenes.workers()
    story.publish(RunStateChanged("stopped", exit_code=130))
    async with Driven(story.view(), (120, 40), opened="workers") as screen:
        text = await screen.text()
        assert "restarting for" not in text
        assert "player 2" in rows_of(text)


async def test_environments_of_one_name_have_their_own_workers_and_restarts() -> None:
    story = sampled(WORKER, behavior="Walker")
    story.publish(WorkersSampled(POOL, ("Hopper",), (replace(WORKER, pid=4800),)))
    story.publish(EnvironmentRestarting(POOL, 0, ("Hopper",), "died", "", 4))
    async with Driven(story.view(), (120, 40), opened="workers") as screen:
        text = await screen.text()
        assert text.count(POOL) == 2
        assert re.search(r"worker 0 +4711 +1\.23k", text)
        assert re.search(r"worker 0 +4800 +◌ restarting for 2s: died", text)


async def test_filter_finds_workers_by_what_is_known_of_them() -> None:
    async with Driven(scenes.workers().view(), (120, 40), opened="workers") as screen:
        text = await screen.press("slash", *"sigsegv", "enter")
        assert list(rows_of(text)) == ["player 2"]
        assert "no line matches" in await screen.press("slash", "x", "enter")


async def test_line_is_copied_with_all_figures() -> None:
    async with Driven(sampled(WORKER).view(), opened="workers") as screen:
        await screen.press("down", "y")
        assert screen.clipboard == (
            f"worker 0 of {POOL}  pid 4711  1.23k steps/s  waiting 25%  2 updates behind  3 restarts  memory 64M"
        )


async def test_without_workers_the_screen_says_what_starts_some_and_no_key_leads_to_it() -> None:
    async with Driven(scenes.healthy(1).view(), (80, 24), opened="workers") as screen:
        text = await screen.text()
        assert "env_settings.num_workers starts worker processes; Unity players have one each" in text
    async with Driven(RunView(), (80, 24), opened="workers") as screen:
        assert "available once training starts" in await screen.text()
    async with Driven(scenes.healthy(1).view(), (200, 60)) as screen:
        assert "W workers" not in await screen.text()
        assert "W" not in [row.strip(" │").split(" ")[0] for row in (await screen.press("question_mark")).splitlines()]
    async with Driven(sampled(WORKER).view(), (200, 60)) as screen:
        assert "W " in await screen.press("question_mark")


async def test_details_of_a_behavior_say_how_many_workers_it_has_and_how_long_they_wait() -> None:
    async with Driven(sampled(WORKER, replace(WORKER, number=1, waiting=0.75)).view(), (200, 60)) as screen:
        assert re.search(r"workers +2, waiting 50% +W shows each", await screen.text())
    async with Driven(sampled(replace(WORKER, waiting=None)).view(), (200, 60)) as screen:
        assert re.search(r"workers +1 +W shows each", await screen.text())
    async with Driven(sampled(WORKER, behavior="Crawler").view(), (200, 60)) as screen:
        assert "shows each" not in await screen.text()


async def test_workers_stay_as_they_were_when_their_environment_has_failed() -> None:
    story = sampled(WORKER)
    story.publish(EnvironmentRestarting(POOL, WORKER.number, ("Walker",), "killed by SIGKILL", "", 4))
    async with Driven(story.view(), opened="workers") as screen:
        assert "killed by" in await screen.text()
        text = await screen.publish(EnvironmentFailed(POOL, ("Walker",), "died"))
        assert "worker 0" in text
        assert "is restarting" not in text


@pytest.mark.parametrize("size", SIZES.values())
async def test_many_workers_and_strange_figures_are_drawn(size: tuple[int, int]) -> None:
    evil = "evil\x1b[31m\n" + "x" * 90
    strange = Worker(0, 2**40, math.nan, math.inf, -5, 10**9, 2**60)
    workers = [strange, *(replace(strange, number=number, steps_per_second=math.inf) for number in range(1, 70))]
    story = sampled(*workers, environment=evil)
    story.publish(EnvironmentRestarting(evil, 3, ("Walker",), evil, evil, 1))
    story.publish(WorkersSampled(evil, (), (replace(strange, number=-1, waiting=math.nan),)))
    async with Driven(story.view(), size, opened="workers") as screen:
        text = await screen.text()
        assert "could not be drawn" not in text
        assert "\x1b" not in text
        assert all(len(row) <= size[0] for row in text.splitlines())


def test_rows_fill_no_more_than_their_width() -> None:
    for width in range(46, 300):
        widths = widths_in(width, environment_width=21)
        assert widths.name + widths.pid + widths.before_restarts + 18 <= width
