"""Several instances as one population: common specs, unique agent ids, actions for every behavior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.specs import Actions, BehaviorSpec, DecisionSteps, Int64, Steps, TerminalSteps


def common_specs(specs: Sequence[Mapping[str, BehaviorSpec]]) -> Mapping[str, BehaviorSpec]:
    """The specs that all instances share; raises EnvironmentFailure naming the first instance that differs."""
    if not specs:
        raise EnvironmentFailure("no instance was made")
    for instance, other in enumerate(specs):
        if dict(other) != dict(specs[0]):
            raise EnvironmentFailure(f"instance {instance} must have the behaviors and spaces of instance 0")
    return dict(specs[0])


def with_all_behaviors(actions: Mapping[str, Actions], specs: Mapping[str, BehaviorSpec]) -> Mapping[str, Actions]:
    """The same actions, with empty ones for behaviors of which no agent was waiting."""
    if len(actions) == len(specs):
        return actions
    return {name: actions.get(name) or _no_actions(spec) for name, spec in specs.items()}


def _no_actions(spec: BehaviorSpec) -> Actions:
    continuous = np.zeros((0, spec.actions.continuous), np.float32)
    return Actions(continuous, np.zeros((0, len(spec.actions.branches)), np.int64))


class PoolIds:
    """Numbers agents over all instances: id * num_instances + instance, so that equal populations fill 0, 1, 2, ...

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
        decisions = DecisionSteps(ids, seen.observations, seen.rewards, seen.action_mask)
        if (final := steps.terminals) is None:
            return Steps(decisions, measured=steps.measured)
        final_ids = self.number(instance, final.agent_ids)
        terminals = TerminalSteps(final_ids, final.observations, final.rewards, final.truncated)
        return Steps(decisions, terminals, steps.measured)
