"""A task in which a group can only be saved if one of it stays behind.  Shapes: G games, A agents of a group."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.environments.rendering import Frame, enlarged
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    Bool,
    DecisionSteps,
    Float32,
    Int64,
    ObservationSpec,
    Steps,
    TerminalSteps,
)

CELLS = 9  # of the tunnel; the wheel is in the first, the gate behind the last
STEPS = 20  # until the tunnel is under water
COST = 0.2  # of staying behind
CHOICE_NAMES = ("left", "stay", "right")
MOVES = np.array([-1, 0, 1])
WALL, WATER, WHEEL, SHUT, OPEN, AGENT = (70, 70, 70), (20, 40, 90), (200, 200, 80), (200, 60, 60), (60, 200, 90), 255


class Rescue:
    """Agents of a group are in a tunnel that fills with water. At its left end is a wheel, at its right end a gate.

    An agent that gets to the wheel opens the gate for good, and never leaves: its episode terminates with a reward of
    -0.2 of its own. Each that leaves by the open gate earns the group an equal part of 1, all but one of it together.
    After 20 steps those who are still there are lost, which costs nothing more. So the best is 1: the closest one
    goes to the wheel, and the others leave. An agent that looks at nothing but what it earns itself never does.

    Agents begin in different cells. Each sees where it is, whether the gate is open, how much time is left, and where
    its mates are, those farthest to the left first; they are a group, whose id is the number of the game.
    """

    def __init__(self, behavior: str, num_games: int, agents: int = 3) -> None:
        """agents: A, from 2 on."""
        seen = ObservationSpec("seen", (3 + 2 * (agents - 1),))
        spec = BehaviorSpec(behavior, (seen,), ActionSpec(0, (len(MOVES),)), choice_names=CHOICE_NAMES)
        self.specs: Mapping[str, BehaviorSpec] = {behavior: spec}
        self.num_agents: Mapping[str, int] = {behavior: num_games * agents}
        self._behavior = behavior
        self._ids: Int64 = np.arange(num_games * agents).reshape(num_games, agents)
        self._random = np.random.default_rng()
        self._places: Int64 = np.zeros((num_games, agents), np.int64)  # cells
        self._is_there: Bool = np.zeros((num_games, agents), np.bool_)
        self._is_open: Bool = np.zeros(num_games, np.bool_)
        self._steps: Int64 = np.zeros(num_games, np.int64)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Put every group into its tunnel."""
        self._random = np.random.default_rng(seed)
        self._begin(np.ones(len(self._is_open), np.bool_))
        return {self._behavior: Steps(self._decisions(np.zeros(len(self._is_open), np.float32)))}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Move every agent that is there; a group of which none is left begins again."""
        was_there = self._is_there.copy()
        self._places[was_there] += MOVES[actions[self._behavior].discrete[:, 0]]
        self._places = np.clip(self._places, 0, CELLS - 1)
        self._steps += 1
        at_wheel = was_there & (self._places == 0)
        leaves = was_there & (self._places == CELLS - 1) & self._is_open[:, None]
        self._is_open |= at_wheel.any(1)
        earned = (leaves.sum(1) / (leaves.shape[1] - 1)).astype(np.float32)
        ended = at_wheel | leaves | (was_there & (self._steps >= STEPS)[:, None])
        terminals = self._terminals(ended, at_wheel, earned) if ended.any() else None
        self._is_there &= ~ended
        over: Bool = np.logical_not(self._is_there.any(1))
        self._begin(over)
        return {self._behavior: Steps(self._decisions(np.where(over, np.float32(0), earned)), terminals)}

    def render(self) -> Frame | None:
        """The first game: water rises, the wheel is yellow, the gate red until it is open."""
        picture = np.zeros((3, CELLS + 2, 3), np.uint8)
        picture[[0, 2]] = WALL
        picture[1, :-1] = np.array(WATER) * min(1.0, self._steps[0] / STEPS)
        picture[1, 0], picture[1, -1] = WALL, OPEN if self._is_open[0] else SHUT
        picture[0, 1] = WHEEL
        picture[1, 1 + self._places[0][self._is_there[0]]] = AGENT
        return enlarged(picture)

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self, games: Bool) -> None:
        drawn = self._random.permuted(np.tile(np.arange(1, CELLS - 1), (int(games.sum()), 1)), axis=1)
        self._places[games] = drawn[:, : self._places.shape[1]]
        self._is_there[games], self._is_open[games], self._steps[games] = True, False, 0

    def _decisions(self, earned: Float32) -> DecisionSteps:
        """earned: f32[G], by each group in this step."""
        there = self._is_there
        games = there.nonzero()[0]
        own = np.zeros(len(games), np.float32)
        return DecisionSteps(self._ids[there], (self._seen(there),), own, group_ids=games, group_rewards=earned[games])

    def _terminals(self, ended: Bool, at_wheel: Bool, earned: Float32) -> TerminalSteps:
        games = ended.nonzero()[0]
        own = np.where(at_wheel[ended], np.float32(-COST), np.float32(0))
        truncated = np.zeros(len(games), np.bool_)
        return TerminalSteps(self._ids[ended], (self._seen(ended),), own, truncated, games, earned[games])

    def _seen(self, agents: Bool) -> Float32:
        """f32[N, D], of these agents, bool[G, A]."""
        games, own = agents.nonzero()
        num_agents = agents.shape[1]
        left = 1 - self._steps[games] / STEPS
        seen = [self._places[games, own] / CELLS, self._is_open[games], left]
        others = np.array([[other for other in range(num_agents) if other != one] for one in range(num_agents)])
        is_there = self._is_there[games[:, None], others[own]]
        places = np.where(is_there, self._places[games[:, None], others[own]], CELLS)
        order = places.argsort(axis=1)
        mates = np.take_along_axis(places, order, 1) / CELLS
        columns: NDArray[np.float64] = np.column_stack([*seen, mates, np.take_along_axis(is_there, order, 1)])
        return columns.astype(np.float32)
