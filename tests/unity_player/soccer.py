"""Pitches as the world of a player, and as an environment of ours.

Shapes: G pitches, P players of a side. A goal ends the game of both sides in the same step: 1 for the group that has
scored, -1 for the other one; an agent that plays alone earns it itself. An interrupted game earns nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import Actions, ActionSpec, BehaviorSpec, DecisionSteps, ObservationSpec, Steps, TerminalSteps
from tests.unity_player.encoding import AgentTemplate
from tests.unity_player.messages import Acts, Brain, Said, Sensor
from tests.unity_player.pitches import MOST_STEPS, NUM_PITCHES, SIDES, Pitches, Side, Whistle


class PitchWorld:
    """The world of a player. keeps_ids: agents have their ids in the next game, too; else new ones."""

    def __init__(
        self, sides: Sequence[Side], num: int, seed: int, most_steps: int = MOST_STEPS, keeps_ids: bool = True
    ) -> None:
        sensors = [Sensor("PitchSensor", (side.num_seen,), properties=(1,)) for side in sides]
        self.brains: Mapping[str, Brain] = {
            side.name: Brain(side.name, (sensor,), branches=(side.num_choices,))
            for side, sensor in zip(sides, sensors, strict=True)
        }
        self._sides, self._keeps_ids = sides, keeps_ids
        self._pitches = Pitches(sides, num, seed, most_steps)
        self._templates = [AgentTemplate([sensor]) for sensor in sensors]
        self._ids = _numbered(sides, num)
        self._next_id = sum(ids.size for ids in self._ids)

    def reset(self) -> Said:
        """New games; nothing is said of those that were running."""
        self._pitches.reset()
        return self._said([b""] * len(self._sides))

    def step(self, acts: Mapping[str, Acts]) -> Said:
        """Everyone acts at every step; where a game is over, the next one begins in the same message."""
        choices = [
            acts[side.name].discrete.reshape(ids.shape) for side, ids in zip(self._sides, self._ids, strict=True)
        ]
        whistle = self._pitches.step(choices)
        over = np.flatnonzero(whistle.over)
        said = [b"".join(self._ended(number, whistle, over)) for number in range(len(self._sides))]
        if len(over):
            self._pitches.reset(over)
            if not self._keeps_ids:
                self._renumber(over)
        return replace(self._said(said), num_over=len(over), num_won=int(np.count_nonzero(whistle.scored)))

    def _ended(self, number: int, whistle: Whistle, over: NDArray[np.int64]) -> list[bytes]:
        """The last messages of a side's players of these games."""
        side, seen = self._sides[number], self._pitches.seen(number)
        scored = whistle.scored if number == 0 else -whistle.scored
        infos = []
        for game in over.tolist():
            own, shared = _split(side, float(scored[game]))
            for player, id in enumerate(self._ids[number][game].tolist()):
                floats, group = seen[game, player].tobytes(), _group(side, number, game)
                is_interrupted = bool(whistle.interrupted[game])
                infos.append(self._templates[number].info(id, own, floats, is_interrupted, group, shared))
        return infos

    def _said(self, over: Sequence[bytes]) -> Said:
        lists, waiting = {}, {}
        for number, side in enumerate(self._sides):
            seen, write = self._pitches.seen(number), self._templates[number].info
            decisions = [
                write(id, 0.0, seen[game, player].tobytes(), group_id=_group(side, number, game))
                for game, ids in enumerate(self._ids[number].tolist())
                for player, id in enumerate(ids)
            ]
            lists[side.name] = over[number] + b"".join(decisions)
            waiting[side.name] = len(decisions)
        return Said(lists, waiting)

    def _renumber(self, games: NDArray[np.int64]) -> None:
        for ids in self._ids:
            count = len(games) * ids.shape[1]
            ids[games] = np.arange(self._next_id, self._next_id + count).reshape(len(games), -1)
            self._next_id += count


class PitchEnvironment:
    """The same games as an environment of this project, without a player."""

    def __init__(self, task: str = "soccer", num: int = NUM_PITCHES, most_steps: int = MOST_STEPS) -> None:
        self._sides, self._num, self._most_steps = SIDES[task], num, most_steps
        self.specs: Mapping[str, BehaviorSpec] = {
            side.name: BehaviorSpec(
                side.name, (ObservationSpec("PitchSensor", (side.num_seen,)),), ActionSpec(0, (side.num_choices,))
            )
            for side in self._sides
        }
        self.num_agents: Mapping[str, int] = {side.name: side.size * num for side in self._sides}
        self._ids = [ids.ravel() for ids in _numbered(self._sides, num)]
        self.pitches = Pitches(self._sides, num, 0, most_steps)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """New games, drawn from the seed if there is one."""
        if seed is not None:
            self.pitches = Pitches(self._sides, self._num, seed, self._most_steps)
        self.pitches.reset()
        return {side.name: Steps(self._decisions(number)) for number, side in enumerate(self._sides)}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Everyone acts at every step; where a game is over, the next one begins in the same step."""
        choices = [actions[side.name].discrete.astype(np.int32).reshape(-1, side.size) for side in self._sides]
        whistle = self.pitches.step(choices)
        if not whistle.over.any():
            return {side.name: Steps(self._decisions(number)) for number, side in enumerate(self._sides)}
        over = [self._terminals(number, whistle) for number in range(len(self._sides))]
        self.pitches.reset(np.flatnonzero(whistle.over))
        return {side.name: Steps(self._decisions(number), over[number]) for number, side in enumerate(self._sides)}

    def close(self) -> None:
        """There is nothing to free."""

    def _decisions(self, number: int) -> DecisionSteps:
        side, ids = self._sides[number], self._ids[number]
        seen = self.pitches.seen(number).reshape(ids.size, -1)
        return DecisionSteps(ids, (seen,), np.zeros(ids.size, np.float32), group_ids=_groups(side, number, self._num))

    def _terminals(self, number: int, whistle: Whistle) -> TerminalSteps:
        side, ids = self._sides[number], self._ids[number]
        scored = (whistle.scored if number == 0 else -whistle.scored)[whistle.over].repeat(side.size)
        groups, rows = _groups(side, number, self._num), whistle.over.repeat(side.size)
        return TerminalSteps(
            ids[rows],
            (self.pitches.seen(number).reshape(ids.size, -1)[rows],),
            np.zeros(len(scored), np.float32) if side.size > 1 else scored,
            whistle.interrupted[whistle.over].repeat(side.size),
            None if groups is None else groups[rows],
            scored if side.size > 1 else None,
        )


def make(task: str = "soccer", num: int = NUM_PITCHES, most_steps: int = MOST_STEPS) -> PitchEnvironment:
    """For `env: tests.unity_player.soccer:make`."""
    return PitchEnvironment(task, num, most_steps)


def _numbered(sides: Sequence[Side], num: int) -> list[NDArray[np.int64]]:
    """Ids of all agents, [G, P] for each side, unique over both."""
    counts = [num * side.size for side in sides]
    firsts = np.cumsum([0, *counts])[:-1]
    return [
        np.arange(first, first + count).reshape(num, -1) for first, count in zip(firsts.tolist(), counts, strict=True)
    ]


def _split(side: Side, reward: float) -> tuple[float, float]:
    """An agent's own reward, and its group's."""
    return (0.0, reward) if side.size > 1 else (reward, 0.0)


def _group(side: Side, number: int, game: int) -> int:
    """The number of the group of a side's players in a game, as Unity has it: 0 for none."""
    return 1 + 2 * game + number if side.size > 1 else 0


def _groups(side: Side, number: int, num: int) -> NDArray[np.int64] | None:
    """The same of all of its agents, as we have it."""
    return 2 * np.arange(num).repeat(side.size) + number if side.size > 1 else None
