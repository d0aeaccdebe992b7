"""Many environment instances behind one receive and one send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from rl_tui.engine.specs import Actions, BehaviorSpec, Steps


class EnvironmentPool(Protocol):
    """Instances numbered 0..num_instances-1, here or in worker processes. Owned by one thread.

    The cycle of an instance is reset -> receive -> send -> receive -> send ... Agent ids are unique over the whole
    pool. The arrays of received steps are valid until the next `send` to the same instance.
    """

    @property
    def specs(self) -> Mapping[str, BehaviorSpec]:
        """Every behavior by name; the same in all instances. Available once `start` has returned."""

    @property
    def num_agents(self) -> Mapping[str, int]:
        """Agents that usually act at once, summed over all instances."""

    @property
    def num_instances(self) -> int:
        """Number of instances."""

    @property
    def pids(self) -> list[int]:
        """Of the running worker processes; none where the instances live in this one."""

    @property
    def busy_since(self) -> float | None:
        """Monotonic time at which the call into an environment of this process began; None when there is none."""

    @property
    def busy_with(self) -> str:
        """Which call that is, in words."""

    @property
    def busy_in(self) -> int | None:
        """The thread that is in it; None when there is none."""

    def start(self) -> None:
        """Create the instances. Raises EnvironmentFailure, or ConfigError when the environment cannot be named."""

    def reset(self, seed: int | None) -> None:
        """Begin resetting every instance, instance i with seed + i; the first steps come with `receive`."""

    def receive(self, timeout: float) -> list[tuple[int, Mapping[str, Steps]]]:
        """Steps of every instance that is ready, waiting at most `timeout` seconds for the first; may be empty.

        Raises EnvironmentFailure naming the instance when one raised, died, is silent beyond its deadline, or
        answered with something of the wrong shape or that is not finite (the observation and the agent are named).
        """

    def send(self, instance: int, actions: Mapping[str, Actions]) -> None:
        """Let one instance act; its answer comes with a later `receive`."""

    def close(self) -> None:
        """End every instance and free everything; harmless when called twice or after a failure."""
