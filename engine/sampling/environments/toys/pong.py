"""A pong of two sides.  Shapes: G games, P players of a side, N = G * P agents of a side, by game."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from rl_tui.engine.sampling.environments.rendering import Frame
from rl_tui.engine.sampling.environments.toys.pong_court import Court
from rl_tui.engine.sampling.environments.toys.pong_picture import picture
from rl_tui.engine.sampling.environments.toys.pong_players import CHOICE_NAMES, MOVES, tracking
from rl_tui.engine.sampling.environments.toys.pong_score import Called, Score
from rl_tui.engine.sampling.environments.toys.pong_views import ImageView, VectorView, View
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    Bool,
    DecisionSteps,
    Float32,
    Int64,
    Steps,
    TerminalSteps,
)

Opponent: TypeAlias = Literal["tracking", "random"]


@dataclass(frozen=True, slots=True)
class Seat:
    """The agents of one side. name: of their behavior, or team. groups: None where each plays alone."""

    name: str
    side: int
    ids: Int64
    groups: Int64 | None

    def rewards(self, scored: Float32) -> tuple[Float32, Float32 | None]:
        """f32[N] twice, of the agents themselves and of their groups: 1 where the side has scored, -1 where the other
        one has. scored: f32[G], as of the left side."""
        earned = np.float32(0) - scored if self.side == 1 else scored  # and never -0
        if self.groups is None:
            return earned, None
        return np.zeros(len(self.ids), np.float32), earned.repeat(len(self.ids) // len(scored))


class Pong:
    """Two sides return a ball to each other; one that lets it pass has lost the point.

    Every rally begins with a ball that flies from the middle to a random side, and paddles in the middle. A paddle
    stays, or moves up or down by 0.05 of a court that is 2 high, where walls above and below reflect the ball. A paddle
    returns it 20 % faster, up to 0.25 a step, and the more steeply the farther from the paddle's middle it was hit, up
    to 60 degrees.

    A side earns 1 for each point and -1 for each of the other's. The first one with so many `points` has won the game,
    which terminates the episodes of its agents; a game of `max_episode_steps` is truncated. Both sides see the court as
    if they were on the left, so that one policy can play either. With two `players`, the second one is in front, half
    the way to the middle, and both are a group, which earns what the side does; the ball passes players from behind.

    Without an `opponent` the sides are teams 0 (left) and 1 of one behavior; agents of both are in the order of games.
    With one, agents are on the left and have no team: `tracking` moves towards the ball (see `tracking` of
    pong_players), `random` moves at random.
    """

    def __init__(
        self,
        behavior: str,
        num_games: int,
        observations: Literal["vector", "image"] = "vector",
        size: int = 36,
        players: int = 1,
        points: int = 1,
        max_episode_steps: int = 1000,
        opponent: Opponent | None = None,
    ) -> None:
        self._view: View = VectorView(players) if observations == "vector" else ImageView(players, size)
        self._seats = _seats(behavior, num_games, players, has_opponent=opponent is not None)
        self._opponent = opponent
        actions = ActionSpec(0, (len(MOVES),))
        self.specs: Mapping[str, BehaviorSpec] = {
            seat.name: BehaviorSpec(seat.name, (self._view.spec,), actions, choice_names=CHOICE_NAMES)
            for seat in self._seats
        }
        self.num_agents: Mapping[str, int] = {seat.name: len(seat.ids) for seat in self._seats}
        self._court = Court(num_games, players)
        self._score = Score(num_games, points, max_episode_steps)
        self._shows_score = points > 1
        self._random = np.random.default_rng()

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Serve in every game."""
        self._random = np.random.default_rng(seed)
        every = np.ones(len(self._score.points), np.bool_)
        self._begin(every, every)
        return {seat.name: Steps(self._decisions(seat, np.zeros(len(every), np.float32))) for seat in self._seats}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Move paddles and balls; a game that is over begins again, and after a point the ball is served."""
        scored = self._court.move(self._moves(actions))
        called = self._score.count(scored)
        if not called.served.any():
            return {seat.name: Steps(self._decisions(seat, scored)) for seat in self._seats}
        over = {seat.name: self._terminals(seat, scored, called) for seat in self._seats} if called.over.any() else {}
        self._begin(called.served, called.over)
        going_on = np.where(called.over, np.float32(0), scored)
        return {seat.name: Steps(self._decisions(seat, going_on), over.get(seat.name)) for seat in self._seats}

    def render(self) -> Frame | None:
        """The first game from above, with the points of both sides if it needs several."""
        return picture(self._court, self._score.points[0] if self._shows_score else None)

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self, served: Bool, over: Bool) -> None:
        self._score.begin(over)
        self._court.serve(served, self._random)

    def _moves(self, actions: Mapping[str, Actions]) -> Float32:
        moves = np.empty(self._court.paddles.shape, np.float32)
        for seat in self._seats:
            moves[:, seat.side] = MOVES[actions[seat.name].discrete[:, 0]].reshape(moves[:, seat.side].shape)
        if self._opponent is not None:
            moves[:, 1] = MOVES[self._opponent_choices()].reshape(moves[:, 1].shape)
        return moves

    def _opponent_choices(self) -> Int64:
        num_games, _, num_players = self._court.paddles.shape
        if self._opponent == "tracking":
            return tracking(VectorView(num_players).of(self._court, 1))
        drawn: Int64 = self._random.integers(len(MOVES), size=num_games * num_players)
        return drawn

    def _decisions(self, seat: Seat, scored: Float32) -> DecisionSteps:
        own, of_group = seat.rewards(scored)
        seen = (self._view.of(self._court, seat.side),)
        return DecisionSteps(seat.ids, seen, own, group_ids=seat.groups, group_rewards=of_group)

    def _terminals(self, seat: Seat, scored: Float32, called: Called) -> TerminalSteps:
        num_players = len(seat.ids) // len(scored)
        rows, truncated = called.over.repeat(num_players), ~called.won[called.over].repeat(num_players)
        own, of_group = seat.rewards(scored)
        groups = None if seat.groups is None else seat.groups[rows]
        earned = None if of_group is None else of_group[rows]
        seen = (self._view.of(self._court, seat.side)[rows],)
        return TerminalSteps(seat.ids[rows], seen, own[rows], truncated, groups, earned)


def _seats(behavior: str, num_games: int, num_players: int, *, has_opponent: bool) -> list[Seat]:
    """The sides whose agents do not play by themselves."""
    names = [behavior] if has_opponent else [f"{behavior}?team={side}" for side in (0, 1)]
    agents, games = np.arange(num_games * num_players), np.arange(num_games).repeat(num_players)
    return [
        Seat(name, side, agents + side * len(agents), games + side * num_games if num_players > 1 else None)
        for side, name in enumerate(names)
    ]
