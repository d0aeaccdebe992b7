"""The environments that "mlagents:package.module:factory" names."""

from __future__ import annotations

import inspect
from typing import Any

from rl_tui.engine.config.environments import OpenArguments
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.base import Environment, EnvironmentKind
from rl_tui.engine.sampling.environments.base_env.adapting import adapted
from rl_tui.engine.sampling.environments.named_callable import find_callable
from rl_tui.engine.sampling.environments.user_factory import bound_factory

MLAGENTS = "mlagents"


class BaseEnvKind(EnvironmentKind[OpenArguments]):
    """What the user's factory returns, called once for each copy, with its number as `worker_id` where it takes one."""

    def make(self, name: str, behavior: str, copies: range, settings: OpenArguments) -> list[Environment]:
        """name: package.module:factory. Raises ConfigError."""
        self.require(name)
        return adapted(f"{MLAGENTS}:{name}", [_made(name, number, settings.arguments) for number in copies])

    def require(self, name: str) -> None:
        """Its module is imported, nothing of it is called. Raises ConfigError and InstanceFailure."""
        module, _, factory = name.partition(":")
        if not module or not factory:
            raise ConfigError(f"{MLAGENTS}:{name}: must be {MLAGENTS}:package.module:factory")
        find_callable(name)


def _made(name: str, number: int, arguments: dict[str, Any]) -> object:
    takes_number = "worker_id" in inspect.signature(find_callable(name)).parameters
    return bound_factory(name, {**({"worker_id": number} if takes_number else {}), **arguments})()
