"""Warnings about games between teams: ratings that rise in circles, and one policy for all teams."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rl_tui.engine.running.summary_statistics import histogram
from rl_tui.engine.session.messages import EpisodesFinished, MetricsReported, WarningCleared
from tests.session.leagues import League, Odds, in_circles, stronger, weaker
from tests.session.test_health import Story, numbers, only


def played(odds: Odds, seed: int, num_snapshots: int = 12) -> Story:
    """A behavior that plays itself, with the reports of its league."""
    story = Story(teams=(0, 1), plays_itself=True)
    for report in League(odds, seed).reports(num_snapshots):
        story.publish(report)
    return story


def test_rating_that_rises_while_games_against_the_oldest_snapshot_are_lost_is_a_warning():
    story = played(in_circles(18.0), seed=1)
    warning = only(story.raised)
    assert (warning.kind, warning.behavior) == ("rating_cycle", "Walker")
    rating, _, early, late = map(float, numbers(warning.message))
    assert rating > 1250
    assert early >= late + 20
    assert "window" in warning.advice
    assert "play_against_latest_model_ratio" in warning.advice


@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("scale", [1.0, 4.0, 1e9])
def test_policy_that_only_grows_stronger_or_stays_as_it_is_gives_no_warning(scale: float, seed: int):
    """The win rate against the oldest falls where the window moves on, but not against the same snapshot."""
    assert played(stronger(scale), seed, num_snapshots=25).warnings == []


def test_policy_that_grows_weaker_goes_in_no_circle():
    """It loses to its oldest snapshot, too, and its rating says so."""
    story = played(weaker(), seed=1, num_snapshots=20)
    assert story.warnings == []


def test_circle_ends_once_the_oldest_snapshot_is_beaten_again():
    story = played(in_circles(18.0), seed=1)
    assert story.open == {"rating_cycle"}
    for report in League(stronger(1.0), 1).reports(12):
        story.publish(report)
    assert story.warnings[-1] == WarningCleared("rating_cycle", "Walker")


def test_behavior_whose_snapshots_only_others_play_against_is_not_judged():
    """Its rating says nothing about the games that these have with its snapshots."""
    story = Story(teams=(0,), plays_itself=True)
    for report in League(in_circles(18.0), 1).reports(12):
        story.publish(replace(report, teams=(0,)))
    assert story.warnings == []


def summary(story: Story, returns: Sequence[float]) -> list:
    """Episodes with these returns, and their summary as a run makes it."""
    values = np.array(returns, np.float32)
    mean, low, high = float(values.mean()), float(values.min()), float(values.max())
    new = story.publish(EpisodesFinished("Walker", story.step + 5000, len(values), mean, low, high, 20.0), 5.0)
    new += story.steps(5000, 0.0)
    metrics = {"Environment/Cumulative Reward": mean}
    found = histogram(values)
    return new + story.publish(
        MetricsReported("Walker", story.step, 1.0, metrics, mean, float(values.std()), found, True)
    )


def games(chance: random.Random, count: int, draws: float = 0.2) -> list[float]:
    """The returns of both sides of zero-sum games."""
    results = [0.0 if chance.random() < draws else chance.choice((-1.0, 1.0)) for _ in range(count)]
    return [value for result in results for value in (result, -result)]


def test_teams_that_share_one_policy_in_a_zero_sum_game_are_noticed_once():
    story, chance = Story(teams=(0, 1), goal=30_000), random.Random(5)
    assert [w for _ in range(2) for w in summary(story, games(chance, 150))] == []
    warning = only(summary(story, games(chance, 150)))
    assert warning.kind == "shared_policy"
    assert numbers(warning.message) == ["0.000", "900", "2", "0"]
    assert "self_play" in warning.advice
    assert [w for _ in range(20) for w in summary(story, games(chance, 150))] == []
    assert [w.kind for w in story.raised] == ["shared_policy"], "no_improvement would say the same, without the reason"


def test_few_episodes_in_each_summary_are_judged_together():
    story, chance = Story(teams=(0, 1)), random.Random(5)
    raised = [len(summary(story, games(chance, 20))) for _ in range(20)]
    assert raised == [0] * 14 + [1] + [0] * 5


def test_game_that_is_cut_by_the_end_of_a_summary_hides_nothing():
    """One of the two returns of a game then belongs to the next summary."""
    story, chance = Story(teams=(0, 1)), random.Random(5)
    returns = [1.0, *games(chance, 600), -1.0]
    for start in range(0, 1200, 301):
        summary(story, returns[start : start + 301])
    assert story.open == {"shared_policy"}


@pytest.mark.parametrize(
    ("plan", "returns"),
    [
        ({"teams": (0, 1), "plays_itself": True}, games(random.Random(5), 1500)),
        ({"teams": (0,)}, games(random.Random(5), 1500)),
        ({"teams": ()}, games(random.Random(5), 1500)),
        ({"teams": (0, 1)}, [0.0] * 3000),
        ({"teams": (0, 1)}, [value + 0.3 for value in games(random.Random(5), 1500)]),
        ({"teams": (0, 1)}, [*[-1.0] * 3, 3.0] * 750),
        ({"teams": (0, 1)}, [random.Random(seed).gauss(0, 1) for seed in range(3000)]),
    ],
    ids=["self-play", "one team", "no teams", "draws only", "not of mean 0", "few large wins", "mean 0 by chance"],
)
def test_other_returns_are_no_sign_of_a_shared_policy(plan: dict, returns: list[float]):
    story = Story(goal=10_000_000, **plan)
    for start in range(0, 3000, 300):
        summary(story, returns[start : start + 300])
    assert "shared_policy" not in {warning.kind for warning in story.raised}


def test_returns_in_self_play_are_not_compared_with_earlier_ones():
    """They depend on who the opponents are."""
    story = Story(teams=(0, 1), plays_itself=True, goal=100_000)
    for mean in (*[0.1] * 5, *[0.8] * 6, *[-0.5] * 6):
        story.summary(mean=mean, std=0.2)
    assert story.warnings == []
    alone = Story(goal=100_000)
    for mean in (*[0.1] * 5, *[0.8] * 6, *[-0.5] * 6):
        alone.summary(mean=mean, std=0.2)
    assert {warning.kind for warning in alone.raised} == {"return_drop", "no_improvement"}
