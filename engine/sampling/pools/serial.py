"""All instances in the calling thread, one after another."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.failures import Guard, InstanceFailure
from rl_tui.engine.sampling.parameters import ParameterValues
from rl_tui.engine.sampling.pools.base import never
from rl_tui.engine.sampling.pools.instance import Instance
from rl_tui.engine.sampling.pools.parameters import InstanceParameters
from rl_tui.engine.sampling.pools.reports import Report
from rl_tui.engine.sampling.pools.serial_instances import SerialInstances
from rl_tui.engine.specs import Actions, BehaviorSpec, Steps

logger = logging.getLogger(__name__)


class SerialPool:
    """Used by one thread. `receive` does the work of the last `reset` or `send`, so it is where an environment hangs.

    make(first, count) returns the instances that hold copies `first` and following; name is for messages; first_copy:
    the number of the first copy in the run, for parameters that are drawn. For a
    watchdog: `busy_since` is the monotonic time at which the current call began, None between calls, `busy_with` is
    that call in words, and `busy_in` the thread of the last one.
    """

    def __init__(
        self, name: str, make: Callable[[int, int], Sequence[Environment]], num_copies: int, first_copy: int = 0
    ) -> None:
        self._make = make
        self._num_copies = num_copies
        self._guard = Guard(name)
        self._parameters = InstanceParameters(name, first_copy, num_copies)
        self._values: ParameterValues | None = None  # of parameters, given before the start
        self._environments: list[Environment] = []
        self._instances = SerialInstances((), self._calling)
        self.worker_pids: Mapping[int, int] = {}  # everything is in this process
        self.busy_since: float | None = None
        self.busy_in: int | None = None
        self._mark = SIGNS.new_mark(name)

    @property
    def busy_with(self) -> str:
        """The last call into an environment, e.g. "gymnasium:CartPole-v1, instance 0: step"."""
        return f"{self._guard.subject}: {self._guard.doing}"

    @property
    def specs(self) -> Mapping[str, BehaviorSpec]:
        """Every behavior that has appeared in an instance so far."""
        return self._instances.specs

    @property
    def num_agents(self) -> Mapping[str, int]:
        """Agents that usually act in the same step, summed over all instances that have their behavior."""
        return self._instances.num_agents

    @property
    def num_instances(self) -> int:
        """How many environments `make` returned."""
        return len(self._environments)

    def set_parameters(self, values: ParameterValues, *, restart: bool = False) -> None:
        """Environment parameters, which hold from the next episode of each agent on."""
        self._values = values
        if restart:
            self._parameters.forget()
        try:
            for number, environment in enumerate(self._environments):
                with self._calling("set_parameters", number):
                    self._parameters.give(number, environment, values, len(self._environments))
        finally:
            self._end_call()

    def start(self, is_stopped: Callable[[], bool] = never) -> None:
        """Create the instances, whatever `is_stopped` says.

        Raises InstanceFailure, or ConfigError if no environment has that name.
        """
        try:
            with self._calling("start", None):
                self._environments.extend(self._make(0, self._num_copies))
                if not self._environments:
                    raise EnvironmentFailure("no instance was made")
            if self._values is not None:
                self.set_parameters(self._values)
            instances = []
            for number, environment in enumerate(self._environments):
                with self._calling("start", number):
                    instances.append(Instance(environment))
            self._instances = SerialInstances(instances, self._calling)
        finally:
            self._end_call()

    def reset(self, seed: int | None) -> None:
        """Have every instance reset in the next `receive`, instance i with seed + i."""
        self._instances.reset(seed)

    def receive(self, timeout: float) -> list[tuple[int, Mapping[str, Steps]]]:
        """Steps of every instance that has a request since the last call, which are carried out now."""
        try:
            return self._instances.receive()
        finally:
            self._end_call()

    def pop_lost(self) -> list[int]:
        """None: a failure here ends the pool."""
        return []

    def pop_reports(self) -> list[Report]:
        """None."""
        return []

    def send(self, instance: int, actions: Mapping[str, Actions]) -> None:
        """Let one instance act in the next `receive`; the actions must not change until then."""
        self._instances.send(instance, actions)

    def close(self) -> None:
        """Close every instance; what one raises is logged, and the others are closed all the same."""
        environments, self._environments = self._environments, []
        for instance, environment in enumerate(environments):
            try:
                with self._calling("close", instance):
                    environment.close()
            except InstanceFailure as failure:
                logger.warning("%s", failure)
        self._end_call()

    def _end_call(self) -> None:
        self.busy_since = None
        self._mark.end()

    def _calling(self, doing: str, instance: int | None) -> Guard:
        self._guard.doing, self._guard.instance = doing, instance
        self._mark.begin(doing)
        self.busy_since, self.busy_in = time.monotonic(), threading.get_ident()
        return self._guard
