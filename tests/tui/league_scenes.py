"""Runs made up for the screen in which behaviors play against their earlier policies."""

from __future__ import annotations

import functools
from dataclasses import replace

from rl_tui.engine.session.league_view import RATING
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    BehaviorStateChanged,
    EpisodesFinished,
    LeagueReported,
    MetricsReported,
    ProgressReported,
    RunStarted,
    RunStateChanged,
)
from tests.session.leagues import League, stronger
from tests.tui.scenes import START, Story

SOCCER, GOALIE, STRIKER = "SoccerTwos", "Goalie", "Striker"
PLAYER = "unity:builds/Soccer"
STEPS = 100  # of training, for one of the league's


def soccer(num_snapshots: int = 14) -> Story:
    """A symmetric game beside a behavior without opponents; the second team learns since a while."""
    return _soccer(num_snapshots).copied()


@functools.cache
def _soccer(num_snapshots: int) -> Story:
    story = Story()
    story.publish(RunStarted("soccer", "results/soccer", 1, "cpu", False, {}))
    story.publish(RunStateChanged("training"), after=1.4)
    begin(story, SOCCER, (0, 1))
    story.publish(BehaviorStarted("Walker", "ppo", "gymnasium:Walker-v5", 0, 500_000, 8, 9347, True))
    story.publish(BehaviorStateChanged("Walker", "training"))
    for number, event in enumerate(League(stronger(2.5), seed=3).reports(num_snapshots, SOCCER)):
        report(story, as_reported(event, number))
    story.train("Walker", 60, 160_000, 412.0)
    story.devices()
    return story


def strikers() -> Story:
    """An asymmetric game: one behavior rests while the other learns from games with its snapshots."""
    story = Story()
    story.publish(RunStarted("strikers", "results/strikers", 1, "cpu", False, {}))
    story.publish(RunStateChanged("training"), after=1.4)
    for team, name in enumerate((GOALIE, STRIKER)):
        begin(story, name, (team,))
    leagues = [League(stronger(2.5), seed).reports(6, name) for seed, name in ((4, GOALIE), (5, STRIKER))]
    for number, events in enumerate(zip(*leagues, strict=True)):
        for team, event in enumerate(events):
            learning = number // 20 % 2
            change = None if learning != team else (number // 20 + 1) * 20 * 10_000
            made = as_reported(event, number)
            is_learning = learning == team
            made = replace(made, learning_team=learning, is_learning=is_learning, next_team_change=change)
            report(story, replace(made, teams=(team,)))
    return story


def begin(story: Story, name: str, teams: tuple[int, ...], environment: str = PLAYER) -> None:
    """A behavior that plays itself."""
    started = BehaviorStarted(name, "ppo", environment, 0, 5_000_000, 16, 120_450, False)
    story.publish(replace(started, teams=teams, plays_itself=True))
    story.publish(BehaviorStateChanged(name, "training"))


def as_reported(event: LeagueReported, number: int) -> LeagueReported:
    """With larger steps, teams that take turns, and two opponents at a time."""
    snapshots = tuple(
        replace(each, step=STEPS * each.step, is_playing=(at + number // 7) % 5 == 0)
        for at, each in enumerate(event.snapshots)
    )
    team, change = number // 50 % 2, (number // 50 + 1) * 50 * STEPS * 100
    event = replace(event, step=STEPS * event.step, learning_team=team, snapshots=snapshots)
    return replace(event, next_team_change=change)


def report(story: Story, event: LeagueReported) -> None:
    """Its progress, the returns of its games, the league, and now and then a summary."""
    name, step = event.behavior, event.step
    story.publish(ProgressReported(name, step, 2 * step, 2150.0, step // 2048, step), after=1)
    mean = story.chance.gauss(0.02, 0.2)
    story.publish(EpisodesFinished(name, step, 15, mean, -1.0, 1.0, 212.0))
    story.publish(event)
    if step % 5000 == 0:
        metrics = {RATING: event.rating, "Environment/Cumulative Reward": mean, "Policy/Entropy": 1.4 - step / 2e6}
        metrics |= {"Environment/Episode Length": 212 + 40 * mean, "Losses/Value Loss": 0.2 + 0.1 * mean}
        story.publish(MetricsReported(name, step, story.time - START, metrics, mean, 0.9, None, True))
