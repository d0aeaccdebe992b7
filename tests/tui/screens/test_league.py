"""The screen of self-play: ratings and games of the newest policy and its snapshots."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from rl_tui.engine.session.messages import LeagueReported, LeagueSnapshot
from rl_tui.engine.session.view import RunView
from rl_tui.tui.panes.league_list import GAP, widths_in
from tests.tui import league_scenes, scenes
from tests.tui.driver import Driven
from tests.tui.league_scenes import GOALIE, SOCCER, STEPS, STRIKER
from tests.tui.snapshots import check

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60), "60x15": (60, 15), "50x12": (50, 12)}
OLD, NEW = LeagueSnapshot(0, 1189.6, 3, 1, 6), LeagueSnapshot(40_000, 1204.4, 1, 2, 1, is_playing=True)
REPORT = LeagueReported(SOCCER, 60_000, 1211.7, 1, True, (0, 1), 25, (OLD, NEW), 100_000)


def rows_of(text: str) -> dict[str, list[str]]:
    """The words of each line of the list by the policy it is about, without its bar."""
    found = {}
    for row in text.splitlines():
        words = re.sub("[━─]+", " ", row).strip("│▸● ").split()
        if words[:1] == ["snapshot"]:
            found[" ".join(words[:2])] = words[2:]
        elif words[:1] in (["newest"], [SOCCER]):
            found[words[0]] = words[1:]
    return found


def reported(*reports: LeagueReported) -> scenes.Story:
    """A behavior that plays itself, with these reports."""
    story = scenes.Story()
    story.begin()
    league_scenes.begin(story, SOCCER, (0, 1))
    for report in reports:
        league_scenes.report(story, report)
    return story


@pytest.mark.parametrize("size", SIZES)
async def test_screen_of_a_league_looks_as_it_was_designed(size: str) -> None:
    async with Driven(league_scenes.soccer().view(), SIZES[size]) as screen:
        check(f"league-{size}", await screen.press("H"))


@pytest.mark.parametrize("size", ["80x24", "120x40"])
async def test_asymmetric_game_has_a_table_for_each_behavior(size: str) -> None:
    async with Driven(league_scenes.strikers().view(), SIZES[size], opened="league") as screen:
        text = await screen.text()
        check(f"league-strikers-{size}", text)
    assert re.search(rf"{GOALIE} +against {STRIKER}, team 0 learns since step 400k \(", text)
    assert re.search(rf"{STRIKER} +against {GOALIE}, rests while team 0 learns", text)


async def test_screen_of_a_league_is_plain_ascii_without_unicode() -> None:
    async with Driven(league_scenes.soccer().view(), (80, 24), is_ascii=True, opened="league") as screen:
        assert (await screen.text()).isascii()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_each_policy_has_its_rating_and_its_games_newest_first(size: tuple[int, int]) -> None:
    async with Driven(reported(REPORT).view(), size, opened="league") as screen:
        text = await screen.text()
    rows = rows_of(text)
    assert list(rows) == [SOCCER, "newest", "snapshot 2", "snapshot 1"]
    assert rows["newest"] == ["60.0k", "1212", "14", "7", "3", "4", "50%"]
    assert rows["snapshot 2"] == ["40.0k", "1204", "4", "1", "2", "1", "25%"]
    assert rows["snapshot 1"] == ["0", "1190", "10", "3", "1", "6", "60%"]
    assert [row.strip("│ ").startswith("●") for row in text.splitlines() if "snapshot " in row] == [True, False]


async def test_title_says_which_team_learns_since_when_and_until_when() -> None:
    later = replace(REPORT, step=70_000, num_games=30)
    async with Driven(reported(REPORT, later).view(), (120, 40), opened="league") as screen:
        words = r"team 1 learns since step 60k \(\ds\), until 100k, 30 games"
        assert re.search(f"{SOCCER}  {words}", await screen.text())
        changed = replace(later, step=100_000, learning_team=0, next_team_change=None)
        assert re.search(r"team 0 learns since step 100k \(\ds\), 30 games", await screen.publish(changed))


async def test_behavior_without_self_play_has_one_line_that_says_so() -> None:
    async with Driven(league_scenes.soccer().view(), (120, 40), opened="league") as screen:
        text = await screen.text()
        assert "Walker  learns without self-play" in text
        assert f"ELO · {SOCCER}" in text
        assert [row for row in (await screen.press("2")).splitlines() if "▸ Walker  learns" in row]
        assert f"ELO · {SOCCER}" in await screen.text(), "Walker has no rating"


async def test_chart_is_of_the_table_that_the_cursor_is_in() -> None:
    async with Driven(league_scenes.strikers().view(), (120, 40), opened="league") as screen:
        first, other = (each.name for each in league_scenes.strikers().view().behaviors.values() if each.league)
        assert f"ELO · {first}" in await screen.text()
        assert f"ELO · {other}" in await screen.press("end")


async def test_behavior_whose_games_go_on_has_no_table_yet() -> None:
    async with Driven(reported().view(), (80, 24), opened="league") as screen:
        assert f"{SOCCER}  no game has ended yet" in await screen.text()


async def test_without_self_play_the_screen_says_what_makes_it_and_no_key_leads_to_it() -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40), opened="league") as screen:
        assert "no behavior plays against itself; self_play in its settings" in await screen.text()
    async with Driven(RunView(), (80, 24), opened="league") as screen:
        assert "available once training starts" in await screen.text()
    async with Driven(scenes.healthy(1).view(), (200, 60)) as screen:
        assert not re.search(r"\bH +league", await screen.press("question_mark"))
    async with Driven(league_scenes.soccer().view(), (200, 60)) as screen:
        assert re.search(r"\bH +league", await screen.press("question_mark"))


async def test_policies_are_found_by_what_is_known_of_them_and_copied_with_exact_figures() -> None:
    async with Driven(reported(REPORT).view(), (120, 40), opened="league") as screen:
        assert list(rows_of(await screen.press("slash", *"plays now", "enter"))) == ["snapshot 2"]
        await screen.press("y")
        assert screen.clipboard == (
            f"snapshot 2 of {SOCCER}  step 40,000  rating 1204.4  against the newest: 4 games, 1 won, 2 drawn, 1 lost"
            "  the newest wins 25%  plays now"
        )
        assert "4 games, 1 won, 2 drawn, 1 lost" in await screen.press("enter")


async def test_cursor_stays_on_a_snapshot_while_newer_ones_come() -> None:
    async with Driven(reported(REPORT).view(), (120, 40), opened="league") as screen:
        assert "▸   snapshot 1 " in await screen.press("end")
        newer = replace(REPORT, snapshots=(OLD, NEW, LeagueSnapshot(80_000, 1212.0)))
        assert "▸   snapshot 1 " in await screen.publish(newer)


@pytest.mark.parametrize("size", SIZES.values())
async def test_large_leagues_and_strange_figures_are_drawn(size: tuple[int, int]) -> None:
    evil = "evil\x1b[31m\n" + "x" * 90
    strange = LeagueSnapshot(2**60, math.nan, 10**12, -4, 10**9, True)
    others = tuple(replace(OLD, step=STEPS * number, rating=math.inf) for number in range(300))
    story = scenes.Story()
    league_scenes.begin(story, evil, (0,), evil)
    league_scenes.begin(story, "y" * 90, (7, 8, 9), evil)
    for name in (evil, "y" * 90):
        story.publish(LeagueReported(name, 2**60, -math.inf, 10**9, False, (0,), 10**15, (strange, *others), 2**62))
    async with Driven(story.view(), size, opened="league") as screen:
        for text in (await screen.text(), await screen.press("end", "enter")):
            assert "could not be drawn" not in text
            assert "\x1b" not in text
            assert all(len(row) <= size[0] for row in text.splitlines())


def test_rows_fill_no_more_than_their_width() -> None:
    for width in range(40, 300):
        widths = widths_in(width)
        assert 34 + 3 * widths.result + widths.wins <= width
        assert widths.bar == 0 or widths.wins == GAP + widths.bar + 5
