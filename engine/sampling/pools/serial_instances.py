"""Instances that are stepped one after another, in the thread that receives their steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from rl_tui.engine.sampling.pools.instance import Instance
from rl_tui.engine.sampling.pools.numbering import CommonSpecs, PoolIds
from rl_tui.engine.specs import Actions, BehaviorSpec, Steps

Calling = Callable[[str, int | None], AbstractContextManager[object]]  # the call in words, and its instance


class SerialInstances:
    """Implements Stepped. Used by one thread. `receive` does the work of the last `reset`, `reset_instance` or
    `send`."""

    def __init__(self, instances: Sequence[Instance], calling: Calling) -> None:
        """calling: entered around each call into an instance; it raises the instance's failures under their names.

        Raises EnvironmentFailure where two instances have different behaviors of one name.
        """
        self._instances = instances
        self._calling = calling
        self._common = CommonSpecs()
        self._ids = PoolIds(len(instances))
        self._requests: dict[int, int | Mapping[str, Actions] | None] = {}  # a seed (to reset) or actions, by instance
        self._answers: list[tuple[int, Mapping[str, Steps]]] = []
        for number, instance in enumerate(instances):
            with calling("start", number):
                self._common.add(number, instance.specs)

    @property
    def specs(self) -> Mapping[str, BehaviorSpec]:
        """Every behavior that has appeared in an instance so far; another object once there are more."""
        return self._common.specs

    @property
    def num_agents(self) -> Mapping[str, int]:
        """Agents that usually act in the same step, summed over all instances that have their behavior."""
        counts = [instance.num_agents for instance in self._instances]
        return {name: sum(count.get(name, 0) for count in counts) for name in self.specs}

    @property
    def num_instances(self) -> int:
        """How many there are."""
        return len(self._instances)

    def reset(self, seed: int | None) -> None:
        """Have every instance reset in the next `receive`, instance i with seed + i."""
        for instance in range(len(self._instances)):
            self.reset_instance(instance, None if seed is None else seed + instance)

    def reset_instance(self, instance: int, seed: int | None) -> None:
        """Have one instance reset in the next `receive`."""
        self._requests[instance] = seed

    def send(self, instance: int, actions: Mapping[str, Actions]) -> None:
        """Let one instance act in the next `receive`; the actions must not change until then."""
        self._requests[instance] = actions

    def receive(self, timeout: float = 0.0) -> list[tuple[int, Mapping[str, Steps]]]:
        """Steps of every instance that has a request since the last call, which are carried out now, however long that
        takes.

        Where one fails, its failure is raised, and the next call returns the others' steps.
        """
        while self._requests:
            instance = next(iter(self._requests))
            self._answers.append((instance, self._call(instance, self._requests.pop(instance))))
        answers, self._answers = self._answers, []
        return answers

    def pop_lost(self) -> list[int]:
        """None: who made the instances decides what follows a failure."""
        return []

    def _call(self, instance: int, request: int | Mapping[str, Actions] | None) -> Mapping[str, Steps]:
        called = self._instances[instance]
        if request is None or isinstance(request, int):
            with self._calling("reset", instance):
                answer = called.reset(request)
        else:
            with self._calling("step", instance):
                answer = called.step(request)
        if not self._common.has(instance, called.specs):
            with self._calling("step", instance):
                self._common.add(instance, called.specs)
        return self._ids.renumber(instance, answer)
