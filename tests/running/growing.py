"""Environments in which a behavior appears. They need no torch, which a worker process would take seconds to import."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    Bool,
    DecisionSteps,
    Int64,
    ObservationSpec,
    Steps,
    TerminalSteps,
)
from tests.deadline import DEADLINE_SECONDS

RELEASE = threading.Event()
SPEC = BehaviorSpec("", (ObservationSpec("time", (1,)),), ActionSpec(0, (2,)))


class Growing:
    """Left has an agent; Right appears at the k-th step after a reset, with one agent in each of two teams.

    All episodes last three steps and pay one a step.
    """

    ids: Mapping[str, Int64] = {"Left": np.zeros(1, np.int64)} | {
        f"Right?team={team}": np.full(1, team) for team in (0, 1)
    }

    def __init__(self, at: int = 500) -> None:
        self.specs: dict[str, BehaviorSpec] = {}
        self.num_agents: dict[str, int] = {}
        self._at = at
        self._count = 0
        self._appear("Left")

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        self._count = 0
        return self._steps()

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        assert actions.keys() == self.specs.keys()
        self._count += 1
        return self._steps()

    def close(self) -> None:
        pass

    def _appear(self, name: str) -> None:
        self.specs[name] = replace(SPEC, name=name)
        self.num_agents[name] = 1

    def _steps(self) -> Mapping[str, Steps]:
        if self._count == self._at:
            for name in self.ids:
                self._appear(name)
        return {name: self._of(self.ids[name]) for name in self.specs}

    def _of(self, ids: Int64) -> Steps:
        seen, paid = (np.full((1, 1), self._count % 3, np.float32),), np.ones(1, np.float32)
        if self._count % 3 or not self._count:
            return Steps(DecisionSteps(ids, seen, paid))
        going_on: Bool = np.zeros(1, np.bool_)
        return Steps(DecisionSteps(ids, seen, paid), TerminalSteps(ids, seen, paid, going_on))


class Empty(Growing):
    """No behavior is there before the k-th step."""

    def _appear(self, name: str) -> None:
        if self._count == self._at:
            super()._appear(name)


class NeverAny(Empty):
    """It fails before a behavior has appeared."""

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        raise RuntimeError("lost")


class EarlierElsewhere(Growing):
    """Right appears at the 60th step in the process `trainer`, and at the third in others."""

    def __init__(self, trainer: int) -> None:
        super().__init__(60 if os.getpid() == trainer else 3)


class Diverging(Growing):
    """Right is paid too much from its hundredth step on, until RELEASE is set."""

    def _steps(self) -> Mapping[str, Steps]:
        steps = super()._steps()
        if self._count > self._at + 100 and not RELEASE.is_set():
            steps["Right?team=0"].decisions.rewards[:] = 3e38
        return steps


class Held(Growing):
    """Right appears once RELEASE is set, too."""

    def _steps(self) -> Mapping[str, Steps]:
        if self._count == self._at:
            assert RELEASE.wait(DEADLINE_SECONDS)
        return super()._steps()


class Vanishing(Growing):
    """At every step Left has another agent, and none has a terminal step. Close raises."""

    def _of(self, ids: Int64) -> Steps:
        steps = super()._of(ids)
        return Steps(replace(steps.decisions, agent_ids=np.array([self._count])))

    def close(self) -> None:
        raise RuntimeError("stuck")
