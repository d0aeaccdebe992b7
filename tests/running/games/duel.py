"""A game of numbers: each team adds up the choices of its agents, and the larger sum wins. Who always chooses 2 never
loses. Named by tests as `tests.running.games.duel:Duel`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rl_tui.engine.specs import Actions, ActionSpec, BehaviorSpec, DecisionSteps, ObservationSpec, Steps, TerminalSteps
from tests.sampling.mortal import begin_life

SEEN = (ObservationSpec("state", (2,)),)  # how much of the game is left, and the area
CHOICES = ActionSpec(0, (3,))


@dataclass
class Area:
    """A game that is played again and again. ids: of its agents, by team."""

    length: int
    ids: dict[str, list[int]] = field(default_factory=dict)
    step: int = 0
    sums: dict[str, float] = field(default_factory=dict)


class Duel:
    """Areas in which one agent or one group of each team plays.

    teams: names of behaviors with their teams. size: agents of each team; more than one are a group, of which the first
    one is out after the first step. lengths: steps of a game, in each area. is_reborn: agents have new ids in each
    game, as in Unity. is_cut: games are truncated, without rewards. edge: what is added to the sum of the first team.
    """

    def __init__(
        self,
        teams: Sequence[str] = ("Fighter?team=0", "Fighter?team=1"),
        size: int = 1,
        lengths: Sequence[int] = (2,),
        is_reborn: bool = False,
        is_cut: bool = False,
        edge: float = 0.0,
    ) -> None:
        self.specs: Mapping[str, BehaviorSpec] = {name: BehaviorSpec(name, SEEN, CHOICES) for name in teams}
        self.num_agents: Mapping[str, int] = {name: size * len(lengths) for name in teams}
        self._size, self._is_reborn, self._is_cut, self._edge = size, is_reborn, is_cut, edge
        self._areas = [Area(length) for length in lengths]
        self._num_ids = 0

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        self._num_ids = 0
        for area in self._areas:
            area.ids.clear()
            self._begin(area)
        return self._steps({})

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        ended: dict[str, list[tuple[int, float, int]]] = {name: [] for name in self.specs}
        for name, chosen in actions.items():
            choices = iter(chosen.discrete[:, 0].tolist())
            for area in self._areas:
                area.sums[name] += sum(next(choices) for _ in area.ids[name]) / len(area.ids[name])
        for number, area in enumerate(self._areas):
            area.step += 1
            is_over = area.step == area.length
            for name in self.specs if is_over or (self._size > 1 and area.step == 1) else ():
                out = area.ids[name] if is_over else [area.ids[name].pop(0)]
                reward = self._reward(area, name) if is_over and not self._is_cut else 0.0
                ended[name] += [(agent, reward, self._group(number, name)) for agent in out]
            if is_over:
                self._begin(area)
        return self._steps(ended)

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self, area: Area) -> None:
        area.step, area.sums = 0, dict.fromkeys(self.specs, 0.0)
        area.sums[next(iter(self.specs))] = self._edge
        for name in self.specs:
            if self._is_reborn or len(area.ids.get(name, ())) != self._size:
                area.ids[name] = list(range(self._num_ids, self._num_ids + self._size))
                self._num_ids += self._size

    def _reward(self, area: Area, name: str) -> float:
        """1 for the only team with the largest sum, 0 for each of several that have it, -1 for others."""
        best = [other for other, total in area.sums.items() if total == max(area.sums.values())]
        return -1.0 if name not in best else 0.0 if len(best) > 1 else 1.0

    def _group(self, area: int, name: str) -> int:
        return area * len(self.specs) + list(self.specs).index(name)

    def _steps(self, ended: Mapping[str, list[tuple[int, float, int]]]) -> Mapping[str, Steps]:
        answer = {}
        for name in self.specs:
            finals, waiting = ended.get(name, []), list(self._waiting(name))
            decisions = DecisionSteps(
                np.array([agent for agent, _, _ in waiting], np.int64),
                (np.array([seen for _, seen, _ in waiting], np.float32).reshape(-1, 2),),
                np.zeros(len(waiting), np.float32),
                group_ids=self._groups([group for _, _, group in waiting]),
            )
            terminals = TerminalSteps(
                np.array([agent for agent, _, _ in finals], np.int64),
                (np.zeros((len(finals), 2), np.float32),),
                np.array([reward for _, reward, _ in finals], np.float32),
                np.full(len(finals), self._is_cut),
                self._groups([group for _, _, group in finals]),
            )
            answer[name] = Steps(decisions, terminals if finals else None)
        return answer

    def _waiting(self, name: str) -> Iterator[tuple[int, tuple[float, float], int]]:
        for number, area in enumerate(self._areas):
            for agent in area.ids[name]:
                yield agent, (1 - area.step / area.length, number), self._group(number, name)

    def _groups(self, groups: list[int]) -> np.ndarray | None:
        return np.array(groups, np.int64) if self._size > 1 else None


class MortalDuel(Duel):
    """A Duel whose first life ends in its third step. folder: where lives are counted."""

    def __init__(self, folder: str, lengths: Sequence[int] = (2,)) -> None:
        super().__init__(lengths=lengths)
        self._is_doomed, self._num_steps = begin_life(folder) == 0, 0

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._num_steps += 1
        if self._is_doomed and self._num_steps == 3:
            raise ValueError("the arena has burned down")
        return super().step(actions)
