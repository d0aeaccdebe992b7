"""Duels: in each, a side of every team picks numbers for some steps, and the larger sum wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    DecisionSteps,
    Float32,
    Int64,
    ObservationSpec,
    Steps,
    TerminalSteps,
)

DUELS = 4  # at the same time
LONGEST = 6  # steps of a duel
CHOICES = 4
SEEN = ("team", "duel", "episode", "step")


class Duels:
    """Agent of duel d, team t and place p has the id (t * DUELS + d) * size + p; it observes SEEN.

    Duel d of episode e has 2 + (d + e) % (LONGEST - 1) steps. The last step earns 1, 0 or -1 for a win, a draw or a
    loss against the best other side, all other steps nothing.
    """

    def __init__(
        self,
        names: Sequence[str] = ("Duelist?team=0", "Duelist?team=1"),
        size: int = 1,
        late: int = 0,
        absent: int | None = None,
        interrupted: bool = False,
    ) -> None:
        """names: behavior and team of each side, by team. size: agents of a side, a group where there are several.
        late: steps before the last side appears. absent: the team that never acts. interrupted: every duel is."""
        self._names, self._size, self._late, self._absent = list(names), size, late, absent
        self._interrupted = interrupted
        self._num_steps = 0
        self._episodes: Int64 = np.zeros(DUELS, np.int64)
        self._steps: Int64 = np.zeros(DUELS, np.int64)
        self._sums: Float32 = np.zeros((len(names), DUELS), np.float32)

    @property
    def _present(self) -> list[int]:
        return [side for side in range(len(self._names)) if not self._is_late(side)]

    def _is_late(self, side: int) -> bool:
        return side == len(self._names) - 1 and self._num_steps < self._late

    @property
    def specs(self) -> Mapping[str, BehaviorSpec]:
        """Those that have appeared."""
        seen, acts = (ObservationSpec("seen", (len(SEEN),)),), ActionSpec(0, (CHOICES,))
        return {name: BehaviorSpec(name.partition("?")[0], seen, acts) for name in self._names_now}

    @property
    def num_agents(self) -> Mapping[str, int]:
        """All duels."""
        return dict.fromkeys(self._names_now, DUELS * self._size)

    @property
    def _names_now(self) -> list[str]:
        return [self._names[side] for side in self._present]

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """All duels begin."""
        self._steps[:] = 0
        self._sums[:] = 0
        return {self._names[side]: Steps(self._decisions(side)) for side in self._present}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Every side that has agents picks a number."""
        before = self._present
        for side in before:
            if side != self._absent:
                picked = actions[self._names[side]].discrete[:, 0].reshape(DUELS, self._size)
                self._sums[side] += picked.sum(1)
        self._steps += 1
        self._num_steps += 1
        over = self._steps >= 2 + (np.arange(DUELS) + self._episodes) % (LONGEST - 1)
        answer = {}
        ended = {side: self._terminals(side, over) for side in before if side != self._absent and over.any()}
        self._episodes += over
        self._steps[over] = 0
        self._sums[:, over] = 0
        for side in self._present:
            answer[self._names[side]] = Steps(self._decisions(side), ended.get(side))
        return answer

    def _terminals(self, side: int, over: np.ndarray) -> TerminalSteps:
        others = [other for other in self._present if other not in (side, self._absent)]
        best = self._sums[others].max(0) if others else np.zeros(DUELS, np.float32)
        rewards = np.sign(self._sums[side] - best)[over].repeat(self._size).astype(np.float32)
        which = over.repeat(self._size)
        truncated = np.full(len(rewards), self._interrupted)
        return TerminalSteps(
            self._ids(side)[which], (self._seen(side)[which],), rewards, truncated, self._groups(side, which)
        )

    def _decisions(self, side: int) -> DecisionSteps:
        all_agents = np.full(DUELS * self._size, side != self._absent)
        seen = self._seen(side)[all_agents]
        ids = self._ids(side)[all_agents]
        return DecisionSteps(ids, (seen,), np.zeros(len(ids), np.float32), None, self._groups(side, all_agents))

    def _ids(self, side: int) -> Int64:
        return np.arange(DUELS * self._size, dtype=np.int64) + side * DUELS * self._size

    def _groups(self, side: int, which: np.ndarray) -> Int64 | None:
        groups: Int64 = (np.arange(DUELS, dtype=np.int64) + side * DUELS).repeat(self._size)
        return groups[which] if self._size > 1 else None

    def _seen(self, side: int) -> Float32:
        duels = np.stack([np.full(DUELS, side), np.arange(DUELS), self._episodes, self._steps], 1)
        return duels.repeat(self._size, 0).astype(np.float32)

    def set_parameters(self, values: Mapping[str, float]) -> None:
        """Nothing depends on them."""

    def close(self) -> None:
        """Nothing to free."""
