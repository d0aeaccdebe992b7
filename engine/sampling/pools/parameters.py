"""Environment parameters of the instances that one process holds."""

from __future__ import annotations

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.base import Environment, Parameterized
from rl_tui.engine.sampling.parameters import Parameters, ParameterValues


class InstanceParameters:
    """What each instance was given last, so that samplers that stay the same go on drawing."""

    def __init__(self, env: str, first_copy: int, num_copies: int) -> None:
        """env: its name in messages. The instances together hold num_copies copies of the run, from first_copy."""
        self._env = env
        self._first_copy = first_copy
        self._num_copies = num_copies
        self._given: dict[int, Parameters] = {}  # by instance

    def forget(self) -> None:
        """Samplers begin again when they are given next."""
        self._given.clear()

    def give(self, number: int, environment: Environment, values: ParameterValues, num_instances: int) -> None:
        """Give them to one instance of so many. Raises ConfigError if it takes none."""
        if not isinstance(environment, Parameterized):
            names = ", ".join(values)
            raise ConfigError(
                f"environment_parameters: {self._env} must have a method set_parameters to take them ({names}), and"
                " has none"
            )
        copy = self._first_copy + number * self._num_copies // num_instances
        self._given[number] = Parameters(values, copy, self._given.get(number))
        environment.set_parameters(self._given[number])
