"""The earlier policies of one behavior: when they are taken, when they play, and how strong they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import cast

import numpy as np

from rl_tui.engine.config.behavior import SelfPlaySettings
from rl_tui.engine.learning.random_generators import generator_state, load_generator
from rl_tui.engine.learning.self_play.elo import DRAW, expected_score
from rl_tui.engine.specs import Float32, Json, State, Weights


@dataclass(slots=True, eq=False)
class Standing:
    """How strong a policy is. rating: Elo; won, drawn, lost: its games as an opponent of one that learns."""

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
    """What plays for a team. snapshot: None for a copy of the newest policy, as it was when it began to play. standing:
    the snapshot's, or for such a copy that of the newest policy."""

    weights: Weights
    snapshot: Snapshot | None
    standing: Standing


@dataclass(frozen=True, slots=True)
class Result:
    """A game against one opponent. standing: the opponent's, None where it is not known. score: of the policy that
    learns, from 0 to 1."""

    standing: Standing | None
    score: float


class League:
    """The window of one behavior. Used by one thread.

    The schedule is that of ML-Agents' GhostTrainer: a snapshot is taken once more than `save_steps` were learned since
    the last one, the learning team changes after `team_change`, and other opponents are drawn once those that play have
    acted for more than `swap_steps`, or the team has changed.

    newest: the standing of the policy that learns. opponents: by team, of the teams that do not learn. drawn: what they
    were drawn as, see `play`. opponent_steps: those that opponents have made in this behavior.
    """

    def __init__(self, settings: SelfPlaySettings, seed: int) -> None:
        self.newest = Standing(settings.initial_elo)
        self.num_games = 0
        self.opponent_steps = 0
        self.opponents: dict[int, Opponent] = {}
        self.drawn: Mapping[int, int | None] = {}
        self._settings = settings
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._ring: list[Snapshot] = []
        self._next = 0  # of the ring, to be replaced
        self._learning_team: int | None = None  # when opponents were drawn last
        self._saved_at = self._changed_at = 0  # steps
        self._swapped_at = 0  # steps of opponents

    @property
    def rating(self) -> float:
        """Of the policy that learns."""
        return self.newest.rating

    @property
    def snapshots(self) -> Sequence[Snapshot]:
        """The window, oldest first."""
        return [*self._ring[self._next :], *self._ring[: self._next]]

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
            self.opponents[team] = _playing(self._ring[0]) if is_first else self._copy(newest)
        return bool(missing)

    def rate(self, results: Sequence[Result]) -> None:
        """Count one game. Where it has several opponents, each moves the ratings by its part, in any order alike.

        A game against a copy of the policy that learns moves nothing; one against the newest policy of another behavior
        moves both ratings.
        """
        self.num_games += 1
        part = self._settings.elo_k / len(results)
        changes: list[tuple[Standing, float]] = []
        for result in results:
            if result.standing is not None and result.standing is not self.newest:
                expected = expected_score(self.rating, result.standing.rating)
                changes.append((result.standing, part * (result.score - expected)))
                result.standing.count(result.score)
        for standing, change in changes:
            self.newest.rating += change
            standing.rating -= change

    @property
    def next_change(self) -> int:
        """The step at which another team begins to learn, if this behavior learns until then."""
        return self._changed_at + self._settings.team_change + 1

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
        self.save(step, newest())
        return True

    def save(self, step: int, newest: Weights) -> None:
        """Take a snapshot of the newest policy."""
        self._save(newest, step)
        self._saved_at = step

    def swap_if_due(self, teams: Iterable[int], learning: int, newest: Callable[[], Weights]) -> bool:
        """Draw other opponents where it is time; whether that was done. The team that learns has none."""
        has_changed = learning != self._learning_team
        if not has_changed and self.opponent_steps - self._swapped_at <= self._settings.swap_steps:
            return False
        self.play({team: self._draw() for team in teams if team != learning}, learning, newest)
        return True

    def play(self, drawn: Mapping[int, int | None], learning: int, newest: Callable[[], Weights]) -> None:
        """Let these play, by team: snapshots at these places of the window, None for a copy of the newest policy."""
        self._learning_team, self._swapped_at, self.drawn = learning, self.opponent_steps, drawn
        self.opponents = {
            team: self._copy(newest()) if place is None else _playing(self._ring[place])
            for team, place in drawn.items()
        }

    def _draw(self) -> int | None:
        """Of all in the window with the same chance, or the newest policy."""
        if self._random.random() < 1 - self._settings.play_against_latest_model_ratio:
            return int(self._random.integers(len(self._ring)))
        return None

    def _copy(self, newest: Weights) -> Opponent:
        return Opponent(newest, None, self.newest)

    def _save(self, weights: Weights, step: int) -> None:
        snapshot = Snapshot(weights, step, Standing(self.rating))
        if self._is_full:
            self._ring[self._next] = snapshot
        else:
            self._ring.append(snapshot)
        self._next = (self._next + 1) % self._settings.window

    def state(self) -> State:
        """All that `load` needs. The arrays are those of the snapshots, which nothing writes to."""
        kept = [*self._ring, *self._left()]
        places = {id(snapshot): place for place, snapshot in enumerate(kept)}
        weights = {f"snapshot_{place}": snapshot.weights for place, snapshot in enumerate(kept)}
        playing: dict[str, Json] = {}
        for team, opponent in self.opponents.items():
            playing[str(team)] = places.get(id(opponent.snapshot))
            if opponent.snapshot is None:
                weights[f"opponent_{team}"] = opponent.weights
        values: dict[str, Json] = {
            "snapshots": cast("list[Json]", [[each.step, *astuple(each.standing)] for each in kept]),
            "num_in_window": len(self._ring),
            "next": self._next,
            "newest": cast("list[Json]", [*astuple(self.newest)]),
            "num_games": self.num_games,
            "opponent_steps": self.opponent_steps,
            "playing": playing,
            "learning_team": self._learning_team,
            "saved_at": self._saved_at,
            "changed_at": self._changed_at,
            "swapped_at": self._swapped_at,
            "random": generator_state(self._random).values,
        }
        return State(
            {f"{of}.{name}": array for of, each in weights.items() for name, array in each.arrays.items()}, values
        )

    def _left(self) -> Sequence[Snapshot]:
        """Those that play, and have left the window meanwhile."""
        playing = {id(each.snapshot): each.snapshot for each in self.opponents.values() if each.snapshot is not None}
        return [snapshot for key, snapshot in playing.items() if key not in set(map(id, self._ring))]

    def load(self, state: State) -> None:
        """Go on as it was then. A window of another size keeps the newest of those that were in it."""
        values = state.values
        kept = [
            Snapshot(_weights(state, f"snapshot_{place}"), int(step), _standing(standing))
            for place, (step, *standing) in enumerate(cast("list[list[float]]", values["snapshots"]))
        ]
        self._ring = kept[: int(state.number("num_in_window"))]
        self._next = int(state.number("next"))
        self._fit_window()
        self.newest = _standing(cast("list[float]", values["newest"]))
        self.num_games = int(state.number("num_games"))
        self.opponents = {
            int(team): self._copy(_weights(state, f"opponent_{team}")) if place is None else _playing(kept[place])
            for team, place in cast("dict[str, int | None]", values["playing"]).items()
        }
        learning = values["learning_team"]
        self._learning_team = None if learning is None else int(cast(int, learning))
        self._saved_at, self._changed_at = int(state.number("saved_at")), int(state.number("changed_at"))
        self._swapped_at, self.opponent_steps = int(state.number("swapped_at")), int(state.number("opponent_steps"))
        load_generator(self._random, state.part("random"))

    def _fit_window(self) -> None:
        """Keep what fits, where the window had another size when the ring was saved."""
        window = self._settings.window
        is_as_saved = self._next == len(self._ring) if len(self._ring) < window else self._next < window
        if len(self._ring) > window or not is_as_saved:
            self._ring = [*self.snapshots][-window:]
            self._next = len(self._ring) % window


def _playing(snapshot: Snapshot) -> Opponent:
    return Opponent(snapshot.weights, snapshot, snapshot.standing)


def _standing(values: Sequence[float]) -> Standing:
    rating, *games = values
    return Standing(rating, *map(int, games))


def _weights(state: State, part: str) -> Weights:
    return Weights(0, cast("dict[str, Float32]", state.part(part).tensors))
