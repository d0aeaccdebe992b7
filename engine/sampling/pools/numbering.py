"""Several instances as one population: behaviors, unique agent ids, actions for every behavior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

import numpy as np

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.experience import COLUMNS
from rl_tui.engine.specs import Actions, BehaviorSpec, DecisionSteps, Int64, Steps, TerminalSteps


class CommonSpecs:
    """The behaviors that have appeared in the instances of a pool so far, each with the same spaces in all of them."""

    def __init__(self) -> None:
        self.specs: Mapping[str, BehaviorSpec] = {}  # replaced when it grows
        self._met_in: dict[str, int] = {}  # by behavior: the first instance
        self._of: dict[int, Mapping[str, BehaviorSpec]] = {}  # by instance

    def has(self, instance: int, specs: Mapping[str, BehaviorSpec]) -> bool:
        """Whether this very object was added."""
        return self._of.get(instance) is specs

    def add(self, instance: int, specs: Mapping[str, BehaviorSpec]) -> None:
        """What one instance has by now. Raises EnvironmentFailure for a behavior that is another one elsewhere."""
        known = dict(self.specs)
        for name, spec in specs.items():
            first = self._met_in.setdefault(name, instance)
            before = known.get(name, spec)
            if before != spec:
                raise EnvironmentFailure(
                    f"behavior {name} must have the observations and actions it has in instance {first}"
                )
            known[name] = replace(spec, teams=tuple(sorted({*before.teams, *spec.teams}))) if spec.teams else spec
        self._of[instance] = specs
        self.specs = known


def with_all_behaviors(actions: Mapping[str, Actions], specs: Mapping[str, BehaviorSpec]) -> Mapping[str, Actions]:
    """The same actions, with empty ones for behaviors of which no agent was waiting."""
    if len(actions) == len(specs):
        return actions
    return {name: actions.get(name) or _no_actions(spec) for name, spec in specs.items()}


def _no_actions(spec: BehaviorSpec) -> Actions:
    continuous = np.zeros((0, spec.actions.continuous), np.float32)
    return Actions(continuous, np.zeros((0, len(spec.actions.branches)), np.int64))


_VALUES = {
    carrier: attrgetter(*(field.name for field in fields(carrier))) for carrier in (DecisionSteps, TerminalSteps)
}
_IDS_AT = {
    carrier: [
        i for i, field in enumerate(fields(carrier)) if any(c.name == field.name and c.holds_ids for c in COLUMNS)
    ]
    for carrier in _VALUES
}


def number_ids(ids: Int64, scale: int, offset: int) -> Int64:
    """Ids of an instance under the pool's numbers; negative ones, which are none, stay."""
    numbered: Int64 = np.where(ids < 0, ids, ids * scale + offset)
    return numbered


def ids_of_instance(ids: Int64, instance: int, num_instances: int) -> Int64:
    """Those of the pool's ids that `number_ids` gave to one instance."""
    numbered: Int64 = ids[ids % num_instances == instance]
    return numbered


class PoolIds:
    """Numbers agents over all instances: id * num_instances + instance, so that equal populations fill 0, 1, 2, ...
    Other ids, like those of groups, likewise.

    The same array of an instance's ids always gives the same array of the pool's.
    """

    def __init__(self, num_instances: int) -> None:
        self._num_instances = num_instances
        self._last: dict[tuple[int, str], tuple[Int64, Int64]] = {}  # an instance's own ids, and the pool's

    def number(self, instance: int, ids: Int64) -> Int64:
        """The pool's ids of one instance's."""
        return ids if self._num_instances == 1 else ids * self._num_instances + instance

    def renumber(self, instance: int, answer: Mapping[str, Steps]) -> Mapping[str, Steps]:
        """The same steps under the pool's ids."""
        if self._num_instances == 1:
            return answer
        return {behavior: self._renumber(instance, behavior, steps) for behavior, steps in answer.items()}

    def _renumber(self, instance: int, behavior: str, steps: Steps) -> Steps:
        seen = steps.decisions
        own, ids = self._last.get((instance, behavior), (None, seen.agent_ids))
        if own is not seen.agent_ids:
            ids = self.number(instance, seen.agent_ids)
            self._last[instance, behavior] = (seen.agent_ids, ids)
        decisions = DecisionSteps(ids, *self._numbered(instance, seen))
        if (final := steps.terminals) is None:
            return Steps(decisions, measured=steps.measured, statistics=steps.statistics)
        terminals = TerminalSteps(self.number(instance, final.agent_ids), *self._numbered(instance, final))
        return Steps(decisions, terminals, steps.measured, steps.statistics)

    def _numbered(self, instance: int, steps: DecisionSteps | TerminalSteps) -> list[Any]:
        """What follows the agents' ids in a class of steps, in its order."""
        values = list(_VALUES[type(steps)](steps))
        for index in _IDS_AT[type(steps)]:
            if values[index] is not None:
                values[index] = number_ids(values[index], self._num_instances, instance)
        return values[1:]
