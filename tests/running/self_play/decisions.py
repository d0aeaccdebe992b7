"""What matchmaking makes of generated trajectories; also for tests/benchmarks/self_play_controller.py.

A case is a mapping: `teams` and `settings` (`self_play`) by behavior, `seeds` of their draws, and `rounds`. A round has
the name of a behavior, whether its learner makes an update if it learns, and trajectories of all of its teams: team,
steps, last reward, and how it ends (GOES_ON, ENDS or INTERRUPTED).

An answer has what is there after each round: the team that learns, `games` that were rated so far, and by behavior its
step, ratings (of the policy that learns, then by slot of the window), the version of the policy that acts for each
team, and what has happened: `saved` (slot and version of a snapshot), `swapped` (by team, the slot of its opponent or
None for the newest policy, and the version).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from rl_tui.engine.config.behavior import SelfPlaySettings
from rl_tui.engine.learning.self_play.league import Opponent, Snapshot
from rl_tui.engine.learning.self_play.rotation import TeamRotation
from rl_tui.engine.running.collection import Collection
from rl_tui.engine.running.self_play.live_league import LiveLeague
from rl_tui.engine.running.self_play.matchmaking import Matchmaking
from rl_tui.engine.sampling.team_policies import NumberedPolicy
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.specs import LEARNING, Game, GameSide, Policy, Trajectories, Weights

GOES_ON, ENDS, INTERRUPTED = range(3)


class Idle:
    """A policy that never acts."""

    def load(self, weights: Weights) -> None:
        """Nothing to do."""


class Played:
    """A behavior without agents or networks: its weights are the number of their version."""

    def __init__(self, name: str, case: Mapping[str, Any], rotation: TeamRotation) -> None:
        settings = SelfPlaySettings.model_validate(case["settings"][name])
        self.live = LiveLeague(settings, rotation, case["seeds"][name], lambda _: cast(Policy, Idle()))
        self.teams: Sequence[int] = case["teams"][name]
        self.assigned: dict[int, NumberedPolicy | None] = {}
        self.sampled = self.learned = self.version = 0
        self.num_saved = 0
        self._slots: list[Snapshot | None] = [None] * settings.window
        self._opponents: Mapping[int, Opponent] = self.live.league.opponents
        weights = SimpleNamespace(latest=SimpleNamespace(snapshot=SimpleNamespace(weights=None)), first_version=0)
        self.behavior = SimpleNamespace(
            spec=SimpleNamespace(name=name),
            learner=SimpleNamespace(step=0, is_over=False, weights=weights),
            league=self.live,
        )
        self.publish(0)

    def publish(self, version: int) -> None:
        """The newest policy is of this version."""
        self.version = version
        newest = Weights(version, {"version": np.array([version], np.float32)})
        self.behavior.learner.weights.latest.snapshot.weights = newest

    def happened(self) -> dict[str, Any]:
        """What an answer has of it after a round."""
        league = self.live.league
        acting = {str(team): self._acting(team) for team in self.teams}
        found: dict[str, Any] = {"step": self.learned, "acting": acting, "saved": self._saved(), "swapped": None}
        if league.opponents is not self._opponents:
            self._opponents = league.opponents
            found["swapped"] = {str(team): self._place(opponent) for team, opponent in league.opponents.items()}
        of_slots = [slot.standing.rating for slot in self._slots if slot is not None]
        return found | {"ratings": [league.rating, *of_slots]}

    def _acting(self, team: int) -> int:
        assigned = self.assigned[team]
        return self.version if assigned is None else _version(assigned.weights)

    def _saved(self) -> list[int] | None:
        newest = self.live.league.snapshots[-1]
        if any(newest is slot for slot in self._slots):
            return None
        slot = self.num_saved % len(self._slots)
        self._slots[slot] = newest
        self.num_saved += 1
        return [slot, _version(newest.weights)]

    def _place(self, opponent: Opponent) -> list[int | None]:
        places = [slot for slot, each in enumerate(self._slots) if each is not None and each is opponent.snapshot]
        return [places[0] if places else None, _version(opponent.weights)]


def _version(weights: Weights) -> int:
    return int(weights.arrays["version"][0])


class Court:
    """All behaviors of a case, as what matchmaking is given: a pool, behaviors and a collector."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        rotation = TeamRotation()
        self.played = {name: Played(name, case, rotation) for name in case["teams"]}
        self.behaviors = {name: each.behavior for name, each in self.played.items()}
        self.pool = SimpleNamespace(
            specs={name: SimpleNamespace(teams=tuple(case["teams"][name])) for name in self.played}
        )
        self.collector = self
        self.is_remote = False
        self.num_games = 0

    @property
    def num_sampled(self) -> Mapping[str, int]:
        """Steps by behavior."""
        return {name: each.sampled for name, each in self.played.items()}

    def num_learned(self, name: str) -> int:
        """Steps of the policy that learns."""
        return self.played[name].learned

    def assign(self, name: str, team: int, opponent: NumberedPolicy | None) -> None:
        """As that of a collector."""
        self.played[name].assigned[team] = opponent

    def play(self, name: str, is_updated: bool, trajectories: Sequence[Sequence[float]]) -> Trajectories:
        """Count the steps of a round; the block with its games."""
        own, games = self.played[name], []
        before = own.learned
        for team, steps, reward, ending in trajectories:
            own.sampled += int(steps)
            if own.assigned[int(team)] is None:
                own.learned += int(steps)
                if ending != GOES_ON:
                    side = GameSide(name, int(team), LEARNING, reward, reward, ending == INTERRUPTED)
                    games.append(Game(side, (self._last_opponent(int(team), reward),)))
                    self.num_games += ending == ENDS
        own.behavior.learner.step = own.learned
        if is_updated and own.learned > before:
            own.publish(own.version + 1)
        return cast(Trajectories, SimpleNamespace(policy_version=0, games=games, team_ids=None))

    def _last_opponent(self, team: int, reward: float) -> GameSide:
        """ML-Agents rates against the last team only."""
        others = [(name, other) for name, each in self.played.items() for other in each.teams if other != team]
        name, other = others[-1]
        assigned = self.played[name].assigned[other]
        assert assigned is not None, "one team learns"
        return GameSide(name, other, assigned.number, -reward, -reward)


def decide(case: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The answer to a case."""
    court = Court(case)
    running = cast(Collection, court)
    matchmaking = Matchmaking("generated", EventBus())
    matchmaking.begin(running)
    rotation = next(iter(court.played.values())).live.rotation
    answer = [_after(court, rotation)]
    for name, is_updated, trajectories in case["rounds"]:
        matchmaking.add_games(name, court.play(name, is_updated, trajectories))
        matchmaking.follow(running)
        answer.append(_after(court, rotation))
    return answer


def _after(court: Court, rotation: TeamRotation) -> dict[str, Any]:
    behaviors = {name: each.happened() for name, each in court.played.items()}
    return {"learning": rotation.learning, "games": court.num_games, "behaviors": behaviors}


def largest_difference(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> float:
    """Of any two ratings; infinite where anything else differs."""
    largest = 0.0
    for own, other in zip(ours, theirs, strict=True):
        if (
            any(own[key] != other[key] for key in ("learning", "games"))
            or own["behaviors"].keys() != other["behaviors"].keys()
        ):
            return float("inf")
        for name, found in own["behaviors"].items():
            expected = other["behaviors"][name]
            if found | {"ratings": None} != expected | {"ratings": None}:
                return float("inf")
            if len(found["ratings"]) != len(expected["ratings"]):
                return float("inf")
            largest = max(largest, *(abs(a - b) for a, b in zip(found["ratings"], expected["ratings"], strict=True)))
    return largest
