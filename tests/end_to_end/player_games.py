"""What is true of self-play in the two-sided scenes of the stand-in player, whatever happens to the players."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_tui.engine.session.messages import CheckpointSaved, Event, LeagueReported
from rl_tui.engine.specs import State
from rl_tui.engine.storage.checkpoint_format import read
from tests.end_to_end.program import events_of
from tests.unity_player.pitches import MOST_STEPS, NUM_PITCHES, SIDES

AGENTS_OF_A_SIDE = NUM_PITCHES * SIDES["soccer"][0].size  # in each player
INITIAL_ELO = 1200.0
MOST_BY_A_GAME = 1.0  # elo_k
SOCCER = """\
behaviors:
  Striker:
    trainer_type: ppo
    hyperparameters: {batch_size: 128, buffer_size: 1024, learning_rate: 3e-3}
    network_settings: {hidden_units: 32, num_layers: 1}
    time_horizon: 40
    max_steps: 12000
    summary_freq: 1000
    self_play:  # every game is against a snapshot, and none of them leaves the window
      {save_steps: 1000, team_change: 3000, swap_steps: 500, window: 1000, play_against_latest_model_ratio: 0}
"""


@dataclass(frozen=True)
class Games:
    """What players have noted. won: games that a side has won; steps: of all players together, at most."""

    won: int
    steps: int


def games_of_players(path: Path) -> Games:
    """Of all players that were started with `--games PATH`, those that were killed as well.

    A player notes games before it says that they are over, and on each pitch one is over after MOST_STEPS.
    """
    notes = [json.loads(line) for line in path.read_text().splitlines()]
    last = {note["pid"]: note["request"] for note in notes}
    return Games(sum(note["won"] for note in notes), sum(last.values()) + MOST_STEPS * len(last))


@dataclass(frozen=True)
class League:
    """What a checkpoint of that step keeps of self-play."""

    step: int
    state: State

    @property
    def values(self) -> Mapping[str, Any]:
        """Of the league."""
        return self.state.part("league").values

    @property
    def learning_team(self) -> Any:
        """Whose turn it is."""
        return self.state.part("rotation").values["learning"]

    @property
    def standings(self) -> Mapping[int, Sequence[float]]:
        """Rating, games won, drawn and lost of each snapshot, by its step."""
        return {int(step): standing for step, *standing in self.values["snapshots"]}

    @property
    def num_games(self) -> int:
        """That were rated."""
        return int(self.values["num_games"])


def saved_league(folder: Path, run_id: str, behavior: str = "Striker") -> League:
    """Of the newest checkpoint of a behavior."""
    events = events_of(folder / "results" / run_id)
    saved = [event for event in events if isinstance(event, CheckpointSaved) and event.behavior == behavior][-1]
    return League(saved.step, read(folder / saved.path)[0].part("self_play"))


def check_league(league: League, events: Sequence[Event]) -> None:
    """Snapshots have all games, what the policy has won in points they have lost, and no game was drawn.

    A game of this scene that ends is won, or a limit of steps interrupts it and it does not count: one that is drawn
    was not played to its end.
    """
    standings = league.standings
    assert league.num_games == sum(sum(games) for _, *games in standings.values()) > 0
    assert sum(drawn for _, _, drawn, _ in standings.values()) == 0
    assert all(np.isfinite(array).all() for array in league.state.tensors.values())
    reports = [event for event in events if isinstance(event, LeagueReported) and event.num_games <= league.num_games]
    assert [report.num_games for report in reports] == sorted(report.num_games for report in reports)
    begun, unsure = {min(standings): INITIAL_ELO}, 0.0
    for report in reports:
        assert report.num_games == sum(each.won + each.drawn + each.lost for each in report.snapshots)
        for each in report.snapshots:
            if each.step not in begun:  # a snapshot is reported at once; the log may keep a later report in its place
                begun[each.step] = each.rating
                unsure += MOST_BY_A_GAME * (each.won + each.lost)
    lost = sum(begun[step] - rating for step, (rating, *_) in standings.items())
    assert league.values["newest"][0] - INITIAL_ELO == pytest.approx(lost, abs=1e-6 + unsure)


def check_resumed(before: League, report: LeagueReported) -> None:
    """The first report after a resume goes on from there."""
    after = {each.step: (each.rating, each.won, each.drawn, each.lost) for each in report.snapshots}
    assert [*after][: len(before.standings)] == [*before.standings]
    more = {step: sum(games) - sum(before.standings.get(step, (0,))[1:]) for step, (_, *games) in after.items()}
    assert min(more.values()) >= 0
    assert report.num_games - before.num_games == sum(more.values())
    assert all(after[step] == tuple(standing) for step, standing in before.standings.items() if more[step] == 0)
