"""The earlier policies of one behavior: when they are taken, when they play, and how strong they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import cast

import numpy as np

from rl_tui.engine.config.behavior import SelfPlaySettings
from rl_tui.engine.learning.random_generators import generator_state, load_generator
from rl_tui.engine.learning.self_play.elo import DRAW, expected_score
from rl_tui.engine.specs import Float32, Json, State, Weights


@dataclass(slots=True)
class Standing:
    """How strong an earlier policy is. rating: Elo; won, drawn, lost: its games against the policy that learns."""

    rating: float
    won: int = 0
    drawn: int = 0
    lost: int = 0

    def count(self, score: float) -> None:
        """Count a game in which the policy that learns had this score."""
        self.won += score < DRAW
        self.drawn += score == DRAW
        self.lost += score > DRAW


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """An earlier policy. step: of its training."""

    weights: Weights
    step: int
    standing: Standing


@dataclass(frozen=True, slots=True, eq=False)
class Opponent:
    """What plays for a team. snapshot: None for a copy of the newest policy, as it was when it began to play."""

    weights: Weights
    snapshot: Snapshot | None

    @property
    def standing(self) -> Standing | None:
        """None for a copy of the newest policy."""
        return None if self.snapshot is None else self.snapshot.standing


@dataclass(frozen=True, slots=True)
class Result:
    """A game against one opponent. standing: None where that was a copy of the policy that learns. score: of the policy
    that learns, from 0 to 1."""

    standing: Standing | None
    score: float


class League:
    """The window of one behavior. Used by one thread.

    The schedule is that of ML-Agents' GhostTrainer: a snapshot is taken once more than `save_steps` were learned since
    the last one, the learning team changes after `team_change`, and other opponents are drawn once those that play have
    acted for more than `swap_steps`, or the team has changed.

    rating: of the policy that learns. opponents: by team, of the teams that do not learn. opponent_steps: those that
    opponents have made in this behavior.
    """

    def __init__(self, settings: SelfPlaySettings, seed: int) -> None:
        self.rating = settings.initial_elo
        self.num_games = 0
        self.opponent_steps = 0
        self.opponents: dict[int, Opponent] = {}
        self._settings = settings
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._ring: list[Snapshot] = []
        self._next = 0  # of the ring, to be replaced
        self._learning_team: int | None = None  # when opponents were drawn last
        self._saved_at = self._changed_at = 0  # steps
        self._swapped_at = 0  # steps of opponents

    @property
    def snapshots(self) -> Sequence[Snapshot]:
        """The window."""
        return [*self._ring[self._next :], *self._ring[: self._next]] if self._is_full else list(self._ring)

    @property
    def _is_full(self) -> bool:
        return len(self._ring) == self._settings.window

    def begin(self, newest: Weights, step: int) -> None:
        """Take the first snapshot, unless there is one."""
        if not self._ring:
            self._save(newest, step)
            self._saved_at = self._changed_at = step

    def meet(self, teams: Iterable[int], learning: int, newest: Weights) -> bool:
        """Give an opponent to every team that has none and does not learn; whether any had none.

        The first ones play by the oldest snapshot, which is the newest policy then.
        """
        if self._learning_team is None:
            self._learning_team = learning
        missing = [team for team in teams if team != learning and team not in self.opponents]
        for team in missing:
            is_first = len(self._ring) == 1
            self.opponents[team] = (
                Opponent(self._ring[0].weights, self._ring[0]) if is_first else Opponent(newest, None)
            )
        return bool(missing)

    def rate(self, results: Sequence[Result]) -> None:
        """Count one game. Where it has several opponents, each moves the ratings by its part.

        A game against a copy of the policy that learns moves nothing.
        """
        self.num_games += 1
        rating = self.rating
        for result in results:
            standing = result.standing
            if standing is None:
                continue
            change = result.score - expected_score(rating, standing.rating)
            change *= self._settings.elo_k / len(results)
            self.rating += change
            standing.rating -= change
            standing.count(result.score)

    def is_change_due(self, step: int) -> bool:
        """Whether the team that learns has learned for long enough; once for each such time."""
        if step - self._changed_at <= self._settings.team_change:
            return False
        self._changed_at = step
        return True

    def save_if_due(self, step: int, newest: Callable[[], Weights]) -> bool:
        """Take a snapshot of the newest policy where it is time; whether one was taken."""
        if step - self._saved_at <= self._settings.save_steps:
            return False
        self._save(newest(), step)
        self._saved_at = step
        return True

    def swap_if_due(self, teams: Iterable[int], learning: int, newest: Callable[[], Weights]) -> bool:
        """Draw other opponents where it is time; whether that was done. The team that learns has none."""
        has_changed = learning != self._learning_team
        if not has_changed and self.opponent_steps - self._swapped_at <= self._settings.swap_steps:
            return False
        self._learning_team, self._swapped_at = learning, self.opponent_steps
        self.opponents = {team: self._draw(newest) for team in teams if team != learning}
        return True

    def _draw(self, newest: Callable[[], Weights]) -> Opponent:
        """Of all in the window with the same chance, or the newest policy."""
        if self._random.random() < 1 - self._settings.play_against_latest_model_ratio:
            snapshot = self._ring[int(self._random.integers(len(self._ring)))]
            return Opponent(snapshot.weights, snapshot)
        return Opponent(newest(), None)

    def _save(self, weights: Weights, step: int) -> None:
        snapshot = Snapshot(weights, step, Standing(self.rating))
        if self._is_full:
            self._ring[self._next] = snapshot
        else:
            self._ring.append(snapshot)
        self._next = (self._next + 1) % self._settings.window

    def state(self) -> State:
        """All that `load` needs. The arrays are those of the snapshots, which nothing writes to."""
        tensors = {
            f"snapshot_{place}.{name}": array
            for place, snapshot in enumerate(self._ring)
            for name, array in snapshot.weights.arrays.items()
        }
        playing: dict[str, Json] = {}
        for team, opponent in self.opponents.items():
            place = next((i for i, each in enumerate(self._ring) if each is opponent.snapshot), None)
            playing[str(team)] = place
            if place is None:
                tensors |= {f"opponent_{team}.{name}": array for name, array in opponent.weights.arrays.items()}
        ring = [[each.step, *astuple(each.standing)] for each in self._ring]
        values: dict[str, Json] = {
            "ring": cast("list[Json]", ring),
            "next": self._next,
            "rating": self.rating,
            "num_games": self.num_games,
            "opponent_steps": self.opponent_steps,
            "playing": playing,
            "learning_team": self._learning_team,
            "saved_at": self._saved_at,
            "changed_at": self._changed_at,
            "swapped_at": self._swapped_at,
            "random": generator_state(self._random).values,
        }
        return State(dict(tensors), values)

    def load(self, state: State) -> None:
        """Go on as it was then. An opponent that had left the window is no snapshot any more. A window of another size
        keeps the newest of those that were in it."""
        values = state.values
        ring = [
            Snapshot(_weights(state, f"snapshot_{place}"), int(step), Standing(rating, *map(int, games)))
            for place, (step, rating, *games) in enumerate(cast("list[list[float]]", values["ring"]))
        ]
        playing = cast("dict[str, int | None]", values["playing"])
        self.opponents = {int(team): _opponent(state, team, place, ring) for team, place in playing.items()}
        self._adopt(ring, int(state.number("next")))
        self.rating, self.num_games = state.number("rating"), int(state.number("num_games"))
        learning = values["learning_team"]
        self._learning_team = None if learning is None else int(cast(int, learning))
        self._saved_at, self._changed_at = int(state.number("saved_at")), int(state.number("changed_at"))
        self._swapped_at, self.opponent_steps = int(state.number("swapped_at")), int(state.number("opponent_steps"))
        load_generator(self._random, state.part("random"))

    def _adopt(self, ring: list[Snapshot], first: int) -> None:
        """The ring of a window that may have had another size."""
        self._ring, self._next = ring, first
        in_order = sorted(ring, key=lambda snapshot: snapshot.step)
        window = self._settings.window
        if len(ring) > window or (len(ring) < window and first != len(ring)):
            self._ring = in_order[-window:]
            self._next = len(self._ring) % window


def _weights(state: State, part: str) -> Weights:
    return Weights(0, cast("dict[str, Float32]", state.part(part).tensors))


def _opponent(state: State, team: str, place: int | None, ring: Sequence[Snapshot]) -> Opponent:
    if place is None:
        return Opponent(_weights(state, f"opponent_{team}"), None)
    return Opponent(ring[place].weights, ring[place])
