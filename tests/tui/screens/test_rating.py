"""In self-play the rating is what a behavior is judged by: in tables, details and charts."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rl_tui.engine.session.behavior_view import RETURN
from rl_tui.engine.session.league_view import RATING
from rl_tui.engine.session.messages import CheckpointSaved, EpisodesFinished, LeagueReported, RunStateChanged
from rl_tui.tui.charts.arrays import np
from rl_tui.tui.charts.sparkline import by_steps, sparkline
from rl_tui.tui.drawing.glyphs import UNICODE
from rl_tui.tui.panes.row_trends import RowTrends
from tests.tui import league_scenes, scenes
from tests.tui.driver import Driven
from tests.tui.league_scenes import GOALIE, SOCCER, STRIKER
from tests.tui.snapshots import check

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60), "50x12": (50, 12)}
MEAN_WITH_TREND = r"mean of 100 +[\d.]+  (steady|▲|▼)"


def row_of(text: str, name: str) -> str:
    """Its line in the table of behaviors."""
    return next(row for row in text.splitlines() if re.search(rf"\d {name}", row))


@pytest.mark.parametrize("size", SIZES)
async def test_overview_of_self_play_looks_as_it_was_designed(size: str) -> None:
    async with Driven(league_scenes.soccer().view(), SIZES[size]) as screen:
        check(f"soccer-{size}", await screen.text())


async def test_detail_of_self_play_looks_as_it_was_designed() -> None:
    async with Driven(league_scenes.soccer().view(), (120, 40)) as screen:
        check("soccer-detail-120x40", await screen.press("enter"))


async def test_table_has_the_rating_as_it_was_reported_last() -> None:
    story = league_scenes.soccer()
    async with Driven(story.view(), (120, 40)) as screen:
        before = await screen.text()
        assert re.search(r"mean 100 +elo +trend", before)
        assert re.search(r" 1298 ▲", row_of(before, SOCCER))
        assert re.search(r" - ▲", row_of(before, "Walker"))
        league = story.view().behaviors[SOCCER].league
        assert league is not None
        assert " 1305 ▲" in row_of(await screen.publish(replace(league.report, rating=1305.2)), SOCCER)


async def test_trend_of_the_table_is_that_of_ratings() -> None:
    behavior = league_scenes.soccer().view().behaviors[SOCCER]
    course = RowTrends().of(behavior, 12, UNICODE.levels, 0.0)
    history = behavior.histories[RATING]
    assert course.direction == 1
    assert course.cells == sparkline(by_steps(np.array(history.steps), np.array(history.mean), 12), 12, UNICODE.levels)
    others = replace(behavior, plays_itself=False)
    assert RowTrends().of(others, 12, UNICODE.levels, 0.0).direction == 0


async def test_details_have_the_rating_first_with_its_rise_in_points_and_the_league() -> None:
    async with Driven(league_scenes.soccer().view(), (200, 60)) as screen:
        text = await screen.text()
    assert re.search(r"elo +1298  ▲ \+3\d in 390k steps", text)
    assert re.search(r"league +team 0 learns since step 1M \(1m4\d\)", text)
    assert not re.search(MEAN_WITH_TREND, text)
    async with Driven(scenes.healthy(1).view(), (200, 60)) as screen:
        text = await screen.text()
        assert "league" not in text
        assert re.search(MEAN_WITH_TREND, text)


async def test_chart_opens_on_the_rating_and_has_the_return_of_others() -> None:
    async with Driven(league_scenes.soccer().view(), (120, 40)) as screen:
        text = await screen.text()
        assert (screen.drawn, "ELO · SoccerTwos" in text) == ([RATING], True)
        assert re.search(r"lowest 1200 +highest 129\d +now 1298", text)
        await screen.press("2")
        assert screen.drawn == [RETURN]
        await screen.press("1", "b")
        assert screen.drawn == [RETURN], "of both, which have no rating in common"


async def test_return_can_be_chosen_and_the_rating_comes_back_with_the_last_metric() -> None:
    async with Driven(league_scenes.soccer().view(), (120, 40)) as screen:
        seen = []
        for _ in range(5):
            seen += screen.drawn
            await screen.press("m")
        assert seen[:1] == [RATING]
        assert RETURN in seen
        assert screen.drawn == [RATING]
        assert screen.app.context.state.chart.metrics == [], "it is what is drawn without a choice"
        while screen.drawn != [RETURN]:
            await screen.press("m")
        assert "Return · SoccerTwos" in await screen.text()
        await screen.press("2", "1")
        assert screen.drawn == [RETURN], "as chosen"


async def test_grid_has_the_return_beside_the_rating() -> None:
    async with Driven(league_scenes.soccer().view(), (120, 40), opened="grid") as screen:
        text = await screen.text()
    assert "ELO · SoccerTwos" in text
    assert "─ Return ─" in text
    assert text.count(" ELO ") == 1


async def test_checkpoints_stand_below_the_curve_of_ratings() -> None:
    story = league_scenes.soccer()
    path = "results/soccer/SoccerTwos/checkpoints/SoccerTwos-1000000"
    story.publish(CheckpointSaved(SOCCER, 1_000_000, path, "interval", 0.1, True, 1 << 20, 0.4))
    async with Driven(story.view(), (120, 40)) as screen:
        assert "─ ELO ─" in await screen.press("k")
        assert "─ Return ─" in await screen.press("2")


async def test_small_screen_has_the_rating_in_place_of_the_return() -> None:
    async with Driven(league_scenes.soccer().view(), (50, 12)) as screen:
        text = await screen.text()
    assert re.search(rf"{SOCCER} +elo 1298 ", text)
    assert re.search(r"Walker +\d+\.\d ", text)


async def test_behavior_that_rests_says_so_in_the_table_and_its_details() -> None:
    story = league_scenes.strikers()
    async with Driven(story.view(), (120, 40)) as screen:
        text = await screen.text()
        assert row_of(text, GOALIE).split("│")[1].rstrip().endswith("● training")
        assert row_of(text, STRIKER).split("│")[1].rstrip().endswith("◌ resting")
        assert "rests while team 0 learns" in await screen.press("2")
        leagues = [story.view().behaviors[name].league for name in (GOALIE, STRIKER)]
        turned = [
            replace(each.report, learning_team=1, is_learning=not each.report.is_learning) for each in leagues if each
        ]
        text = await screen.publish(*turned)
        assert row_of(text, GOALIE).split("│")[1].rstrip().endswith("◌ resting")
        assert row_of(text, STRIKER).split("│")[1].rstrip().endswith("● training")


async def test_before_the_first_summary_the_chart_says_what_it_waits_for() -> None:
    story = scenes.Story()
    story.begin()
    league_scenes.begin(story, SOCCER, (0, 1))
    async with Driven(story.view(), (120, 40)) as screen:
        assert "waiting for the first episode" in await screen.text()
        text = await screen.publish(
            EpisodesFinished(SOCCER, 500, 4, 0.0, -1.0, 1.0, 100.0),
            LeagueReported(SOCCER, 500, 1202.5, 0, True, (0, 1), 4, ()),
        )
        assert "waiting for the first summary" in text
        assert re.search(r"elo +1202", text)
        assert "the run ended before the first summary" in await screen.publish(
            RunStateChanged("stopped", exit_code=130)
        )
