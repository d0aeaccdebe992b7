"""In a collector of games: who acts in each, what of it is learned from, and against whom it is rated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.sampling.team_policies import NumberedPolicy, TeamPolicies
from rl_tui.engine.specs import (
    CUT,
    LEARNING,
    Actions,
    Choice,
    DecisionSteps,
    Float32,
    Game,
    State,
    Steps,
    TerminalSteps,
    Trajectories,
    Weights,
)
from tests.running.self_play.duels import DUELS, Duels

INSTANCES = 2
STEPS = 200
LONG = 1000
Side = tuple[float, int]  # the number of a game, and a team


class Marked:
    """Chooses 1, and writes its number where the log-probability is."""

    memory_size = version = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """Of all agents."""
        count = len(decisions.agent_ids)
        nothing, ones = np.zeros((count, 0), np.float32), np.ones((count, 1), np.int64)
        return Choice(Actions(nothing, ones), nothing, np.full((count, 1), self.number, np.float32), None)

    def load(self, weights: Weights) -> None:
        """There are none."""

    def state(self) -> State:
        """Nothing."""
        return State()

    def load_state(self, state: State) -> None:
        """Nothing to do."""


class NumberedDuels(Duels):
    """The last reward says which game it was, and the sign who won it: team 0 wins even ones, and loses odd ones."""

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Pools reset instance i with seed + i."""
        self._instance = (seed or 1) - 1
        return super().reset(seed)

    def _terminals(self, side: int, over: np.ndarray[Any, Any]) -> TerminalSteps:
        terminals = super()._terminals(side, over)
        _, duels, episodes, _ = terminals.observations[0].astype(int).T
        numbers = 1 + (self._instance * STEPS + episodes) * DUELS + duels
        signs = np.where((numbers % 2 == 0) == (side == 0), 1, -1)
        terminals.rewards[:] = numbers * signs
        return terminals


@dataclass
class Record:
    """What was collected. marks: of all rows, by game and team. num_learned: rows that are learned from."""

    games: list[Game] = field(default_factory=list)
    marks: dict[Side, list[int]] = field(default_factory=lambda: defaultdict(list))
    num_learned: int = 0

    def add(self, block: Trajectories) -> None:
        """The rows of a block, and its games."""
        assert block.log_probs is not None
        self.games += block.games
        is_learned = np.ones(block.num_segments, np.bool_) if block.is_learned is None else block.is_learned
        marks = block.log_probs[:, 0].astype(int)
        assert ((marks == LEARNING) == is_learned.repeat(block.lengths)).all(), "learned from, or chosen by an opponent"
        self.num_learned += int(is_learned.repeat(block.lengths).sum())
        for segment, (begin, length) in enumerate(
            zip(np.cumsum(block.lengths) - block.lengths, block.lengths, strict=True)
        ):
            rows = slice(begin, begin + length)
            team, duel, episode, _ = block.observations[0][begin].astype(int)
            instance = int(block.agent_ids[segment]) % INSTANCES
            number = 1 + (instance * STEPS + episode) * DUELS + duel
            self.marks[number, int(team)] += marks[rows].tolist()
            if block.endings[segment] != CUT:
                assert abs(block.rewards[begin + length - 1]) == number


@contextmanager
def started(names: list[str], size: int) -> Iterator[SerialPool]:
    """A pool of duels."""
    pool = SerialPool("duels", lambda first, count: [NumberedDuels(names, size) for _ in range(count)], INSTANCES)
    pool.start()
    pool.reset(1)
    try:
        yield pool
    finally:
        pool.close()


def played(names: list[str], size: int = 1, longest: int | None = LONG, seed: int = 1) -> Record:
    """Collect from games of these sides, while teams take turns and opponents come and go at any time."""
    chance, record = np.random.default_rng(seed), Record()
    behaviors = {name.partition("?")[0] for name in names}
    policies = {name: TeamPolicies(Marked(LEARNING), longest) for name in behaviors}
    newest = dict.fromkeys(behaviors, 0)
    with started(names, size) as pool:
        collector = Collector(pool, policies, dict.fromkeys(behaviors, 4))
        learning = 0
        for cycle in range(STEPS):
            learning = (learning + 1) % len(names) if cycle % 90 == 89 else learning
            for team, name in enumerate(names):
                behavior = name.partition("?")[0]
                if team == learning:
                    collector.assign(behavior, team, None)
                elif cycle % 90 in (0, 89) or chance.random() < 0.3:
                    newest[behavior] += 1
                    number = newest[behavior]
                    collector.assign(behavior, team, NumberedPolicy(number, Marked(number), Weights(0, {})))
            assert collector.receive(0.0)
            for behavior in behaviors:
                while collector.is_due(behavior, 20):
                    record.add(collector.drain(behavior))
            collector.act()
        for behavior in behaviors:
            while collector.num_complete(behavior) or collector.is_due(behavior, 1):
                record.add(collector.drain(behavior))
    return record


TWO = ["Duelist?team=0", "Duelist?team=1"]
THREE = [*TWO, "Duelist?team=2"]
ASYMMETRIC = ["Striker?team=0", "Goalie?team=1"]


@pytest.mark.parametrize(
    ("names", "size"),
    [
        (TWO, 1),
        (TWO, 2),
        (THREE, 3),
        (ASYMMETRIC, 2),
        pytest.param(THREE, 1, marks=pytest.mark.slow),
        pytest.param(ASYMMETRIC, 1, marks=pytest.mark.slow),
    ],
)
def test_a_side_keeps_its_policy_to_the_end_and_is_rated_by_it(names: list[str], size: int) -> None:
    record = played(names, size)
    assert all(len(set(marks)) == 1 for marks in record.marks.values()), "none changes its policy in a game"
    assert len({mark for marks in record.marks.values() for mark in marks}) > 20
    check_ratings(record, names)
    numbers = [abs(game.own.reward) for game in record.games]
    assert len(numbers) == len(set(numbers)) > 150, "no game is rated twice"
    by_learner = {number for (number, _), marks in record.marks.items() if marks[0] == LEARNING}
    assert by_learner.issuperset(numbers)
    missing = by_learner.difference(numbers)
    assert len(missing) <= 2 * DUELS * INSTANCES, "all but those that had not ended"


def check_ratings(record: Record, names: list[str]) -> None:
    """Each game is between those that played it, with their own rewards."""
    for game in record.games:
        number = abs(game.own.reward)
        assert {side.team for side in (game.own, *game.opponents)} == {*range(len(names))}
        for side in (game.own, *game.opponents):
            assert (abs(side.reward), abs(side.total)) == (number, number)
            assert side.reward * (-1 if number % 2 else 1) * (1 if side.team == 0 else -1) > 0
            assert side.behavior == names[side.team].partition("?")[0]
            marks = record.marks.get((number, side.team), [side.policy])  # its rows may not have been drained
            assert set(marks) == {side.policy}
        assert game.own.policy == LEARNING


def test_a_policy_that_has_acted_for_too_long_changes_within_the_game_which_is_not_rated_then() -> None:
    record = played(TWO, longest=2)
    changed = {side for side, marks in record.marks.items() if len(set(marks)) > 1}
    assert len(changed) > 50
    assert {len(marks) for side, marks in record.marks.items() if side not in changed}.issuperset({2, 3})
    check_ratings(record, TWO)
    assert len(record.games) > 10
    assert (
        not {(abs(game.own.reward), side.team) for game in record.games for side in (game.own, *game.opponents)}
        & changed
    )


def test_without_a_longest_game_policies_change_at_once() -> None:
    record = played(TWO, longest=None)
    assert sum(len(set(marks)) > 1 for marks in record.marks.values()) > 100
    assert record.num_learned > STEPS
