"""The screen of several ranks: where each is, how fast it is, how long it waits, and which one is slow."""

from __future__ import annotations

import math
import re

import pytest

from rl_tui.engine.session.messages import RanksReported, RankStatus, RunStateChanged
from rl_tui.engine.session.ranks_view import RanksView
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.glyphs import UNICODE
from rl_tui.tui.drawing.lines import cells
from rl_tui.tui.panes.rank_list import _row, widths_in
from rl_tui.tui.panes.rank_words import numbers_of, short_hosts
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.snapshots import check

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60), "60x15": (60, 15), "50x12": (50, 12)}
FOUR = "gpu06", "gpu06", "gpu07", "gpu07"
DOMAIN = ".cluster.example.org"


def rows_of(text: str) -> dict[str, list[str]]:
    """The words of each rank's line, without its bar, by its name."""
    found = {}
    for row in text.splitlines():
        if match := re.match(r"[│▸ !]*(rank \d+|all ranks) +(.*?)[│ ]*$", row):
            found[match[1]] = re.sub("[━─]", "", match[2]).split()
    return found


def alike(*shares: float, hosts: str = "aaaa") -> scenes.Story:
    """A run whose ranks wait that much all the time."""
    story = scenes.healthy(1)
    statuses = tuple(RankStatus(at, hosts[at], "cpu", 100.0, share) for at, share in enumerate(shares))
    for _ in range(5):
        story.publish(RanksReported(statuses), after=2)
    return story


@pytest.mark.parametrize("size", SIZES)
async def test_screen_of_ranks_looks_as_it_was_designed(size: str) -> None:
    async with Driven(scenes.ranks(*FOUR, slow=3, domain=DOMAIN).view(), SIZES[size]) as screen:
        check(f"ranks-{size}", await screen.press("ampersand"))


async def test_ranks_of_one_machine_have_no_host() -> None:
    async with Driven(scenes.ranks("vm", "vm", device="cpu").view(), (120, 40), opened="ranks") as screen:
        text = await screen.text()
        check("ranks-one-machine-120x40", text)
        assert "vm" not in text
        assert "host" not in text


async def test_screen_of_ranks_is_plain_ascii_without_unicode() -> None:
    async with Driven(scenes.ranks(*FOUR, slow=3).view(), (80, 24), is_ascii=True, opened="ranks") as screen:
        assert (await screen.text()).isascii()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_each_rank_has_its_figures_and_all_have_their_sum(size: tuple[int, int]) -> None:
    async with Driven(alike(0.5, 0.1, 0.3, hosts="aab").view(), size, opened="ranks") as screen:
        assert rows_of(await screen.text()) == {
            "all ranks": ["300", "30%"],
            "rank 0": ["a", "cpu", "100", "50%"],
            "rank 1": ["a", "cpu", "100", "10%"],
            "rank 2": ["b", "cpu", "100", "30%"],
        }


async def test_slow_rank_is_named_in_words_and_marked() -> None:
    async with Driven(scenes.ranks(*FOUR, slow=3, domain=DOMAIN).view(), (120, 40), opened="ranks") as screen:
        text = await screen.text()
        assert "Ranks · 4 on 2 machines" in text
        assert "! rank 3 on gpu07 is slow: the others wait 40% of the time" in text
        assert re.search(r"! rank 3 +gpu07 +cuda:1", text)
        assert text.count("! ") == 2


@pytest.mark.parametrize(
    ("shares", "words"),
    [((0.1, 0.1), "no rank is slow"), ((0.6, 0.7), "no rank is slow: all wait alike, 65% of the time")],
)
async def test_it_is_said_that_no_rank_is_slow(shares: tuple[float, ...], words: str) -> None:
    async with Driven(alike(*shares).view(), opened="ranks") as screen:
        rows = [row.strip("▸ ") for row in (await screen.text()).splitlines()]
        assert words in rows


async def test_first_reports_say_nothing_of_who_is_slow() -> None:
    story = scenes.healthy(1)
    story.publish(RanksReported((RankStatus(0, "a", "cpu", 0.0, 0.0), RankStatus(1, "a", "cpu", 1.0, 0.9))))
    async with Driven(story.view(), opened="ranks") as screen:
        assert "measuring" in await screen.text()


async def test_line_is_copied_and_found_with_the_whole_name_of_its_machine() -> None:
    async with Driven(scenes.ranks(*FOUR, slow=3, domain=DOMAIN).view(), (120, 40), opened="ranks") as screen:
        text = await screen.press("slash", *"gpu07.cluster", "enter")
        assert list(rows_of(text)) == ["rank 2", "rank 3"]
        await screen.press("end", "y")
        assert re.fullmatch(
            r"rank 3 on gpu07\.cluster\.example\.org  cuda:1  1\d\d steps/s  waiting 2%  slow", screen.clipboard
        )
        assert "gpu07.cluster.example.org  cuda:1" in await screen.press("enter")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_64_ranks_are_all_reached(size: tuple[int, int]) -> None:
    hosts = [f"a-very-long-cluster-name-node-{number // 8}" for number in range(64)]
    async with Driven(scenes.ranks(*hosts, slow=5, seconds=20).view(), size, opened="ranks") as screen:
        text = await screen.text()
        assert "rank 0 " in text
        assert "rank 63" not in text
        text = await screen.press("end")
        assert re.search(r"▸ +rank 63 +\S*node-7", text)
        assert "rank 0 " in await screen.press("home")


async def test_run_with_one_rank_has_no_sign_of_ranks() -> None:
    async with Driven(scenes.healthy(1).view(), (200, 60)) as screen:
        assert "ranks" not in await screen.text()
        assert "& ranks" not in await screen.press("question_mark")
    async with Driven(scenes.healthy(1).view(), (80, 24), opened="ranks") as screen:
        assert "one rank trains this run; --ranks starts several on this machine" in await screen.text()
    async with Driven(RunView(), (80, 24), opened="ranks") as screen:
        assert "available once training starts" in await screen.text()
    async with Driven(alike(0.1, 0.1).view(), (200, 60)) as screen:
        assert re.search(r"&  +ranks", await screen.press("question_mark"))


async def test_details_say_how_many_ranks_there_are_and_which_is_slow_until_the_run_is_over() -> None:
    story = scenes.ranks(*FOUR, slow=3)
    async with Driven(story.view(), (200, 60)) as screen:
        text = await screen.text()
        assert re.search(r"ranks +4, waiting 31% +& shows each", text)
        assert "! rank 3 on gpu07 is slow: the others wait 40%" in text
        text = await screen.publish(RunStateChanged("stopped", exit_code=130))
        assert "is slow" not in text
    async with Driven(story.view(), (200, 60)) as screen:
        text = await screen.press("enter")
        assert re.search(r"ranks +4, waiting 31%", text)


@pytest.mark.parametrize("size", SIZES.values())
async def test_strange_names_and_figures_are_drawn(size: tuple[int, int]) -> None:
    evil = "evil\x1b[31m\n" + "x" * 300
    figures = (math.nan, math.inf), (math.inf, -1.0), (-1e300, math.nan), (1e300, 1e9)
    story = scenes.healthy(1)
    for _ in range(6):
        story.publish(
            RanksReported(
                tuple(RankStatus(at * 10**6, evil + str(at), evil, *both) for at, both in enumerate(figures))
            ),
            after=2,
        )
    async with Driven(story.view(), size) as screen:
        for text in (await screen.text(), await screen.press("ampersand"), await screen.press("down", "down", "enter")):
            assert "could not be drawn" not in text
            assert "\x1b" not in text
            assert all(len(row) <= size[0] for row in text.splitlines())


@pytest.mark.parametrize("hosts", ["aaaa", ["gpu06", "gpu07"] * 2, ["x" * 100, "y" * 100] * 2])
def test_rows_fill_no_more_than_their_width(hosts: list[str]) -> None:
    ranks = RanksView()
    statuses = tuple(RankStatus(at, hosts[at], "cuda:0", 1000.0, 0.3) for at in range(4))
    ranks.apply(RanksReported(statuses), 0.0)
    for width in range(46, 300):
        row = _row(statuses[0], hosts[0], False, ranks, UNICODE, width)
        assert cells(row) <= width, width
        assert cells(row) >= min(width, 60) - 12, "and they are not much narrower"
        assert bool(widths_in(width, ranks).host) == (hosts[0] != hosts[1])


def test_hosts_go_without_a_domain_that_says_nothing() -> None:
    assert short_hosts(["a.x.org", "b.x.org", "a.x.org"]) == {"a.x.org": "a", "b.x.org": "b"}
    assert short_hosts(["a.x.org", "a.y.org"]) == {"a.x.org": "a.x.org", "a.y.org": "a.y.org"}
    assert short_hosts(["10.0.0.1", "11.0.0.1"]) == {"10.0.0.1": "10.0.0.1", "11.0.0.1": "11.0.0.1"}
    assert short_hosts([""]) == {"": ""}


def test_ranks_of_a_machine_are_named_by_their_numbers() -> None:
    assert [numbers_of(ranks) for ranks in ((2,), (0, 1, 2), (0, 2), ())] == [
        "rank 2",
        "ranks 0-2",
        "2 ranks",
        "0 ranks",
    ]
