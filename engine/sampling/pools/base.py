"""The interface of pools: many environment instances behind one receive and one send."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from rl_tui.engine.sampling.parameters import ParameterValues
from rl_tui.engine.sampling.pools.reports import Report
from rl_tui.engine.specs import Actions, BehaviorSpec, Steps


def never() -> bool:
    """The default of `EnvironmentPool.start`."""
    return False


class Stepped(Protocol):
    """Instances numbered 0..num_instances-1, as a collector uses them. Owned by one thread.

    The cycle of an instance is reset -> receive -> send -> receive -> send ... The teams of a behavior are one: steps
    and actions are by behavior. Agent ids are unique over all instances. The arrays of received steps are valid until
    the next `send` to the same instance.
    """

    @property
    def specs(self) -> Mapping[str, BehaviorSpec]:
        """Every behavior that has appeared in an instance so far, by name; another object once there are more.

        `receive` returns no steps of a behavior that is not here.
        """

    @property
    def num_instances(self) -> int:
        """Number of instances."""

    def reset(self, seed: int | None) -> None:
        """Begin to reset every instance, instance i with seed + i; `receive` returns the first steps."""

    def receive(self, timeout: float) -> list[tuple[int, Mapping[str, Steps]]]:
        """Steps of every instance that is ready, waiting at most `timeout` seconds for the first; may be empty.

        Raises EnvironmentFailure naming the instance when one raised, died, exceeded its deadline, or returned
        something of the wrong shape or that is not finite (naming the observation and the agent).
        """

    def pop_lost(self) -> list[int]:
        """Instances since the last call whose episodes ended and whose last actions have no known outcome.

        Their worker failed, or the user stopped them; they are reset, and `receive` returns their first steps.
        """

    def send(self, instance: int, actions: Mapping[str, Actions]) -> None:
        """Let one instance act; a later `receive` returns its steps."""


class EnvironmentPool(Stepped, Protocol):
    """Instances here or in worker processes, from their start to their end. `specs` are available once `start` has
    returned."""

    @property
    def num_agents(self) -> Mapping[str, int]:
        """Agents that usually act in the same step, summed over all instances that have their behavior."""

    @property
    def worker_pids(self) -> Mapping[int, int]:
        """Of the running worker processes, by their numbers; empty if the instances are in this process."""

    @property
    def busy_since(self) -> float | None:
        """Monotonic time at which the current call into an environment of this process began; None without one."""

    @property
    def busy_with(self) -> str:
        """That call, in words."""

    @property
    def busy_in(self) -> int | None:
        """The thread that makes it; None without one."""

    def set_parameters(self, values: ParameterValues, *, restart: bool = False) -> None:
        """Environment parameters, which hold from the next episode of each agent on.

        Before `start`, they hold from the first. restart: samplers begin again, instead of going on with their draws
        where they stay the same. Raises ConfigError, here or in `start`, where an instance takes none.
        """

    def start(self, is_stopped: Callable[[], bool] = never) -> None:
        """Create the instances. Raises EnvironmentFailure, or ConfigError if no environment has that name.

        is_stopped: asked while worker processes are waited for; StartStopped is raised once it is true.
        """

    def pop_reports(self) -> list[Report]:
        """What happened to the workers since the last call, in order."""

    def close(self) -> None:
        """Close every instance and free everything; may be called twice, and after a failure."""
