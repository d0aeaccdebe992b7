"""What a user's factory has returned, if it is a BaseEnv or around one."""

from __future__ import annotations

from typing import Any

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.base_env.environment import BaseEnvironment
from rl_tui.engine.sampling.environments.base_env.interface import MEMBERS
from rl_tui.engine.sampling.environments.copies import has_member, require_different

_WRAPPERS = "mlagents_envs.envs."  # UnityToGymWrapper, UnityParallelEnv, UnityAECEnv


def adapted(env: str, copies: list[Any]) -> list[Environment]:  # Any: what a user's function returns
    """The BaseEnvs as environments. env: for messages. Raises ConfigError for anything else."""
    for copy in copies:
        refuse_wrapper(env, copy)
        if not is_base_env(copy):
            missing = ", ".join(member for member in MEMBERS if not has_member(copy, member))
            found = "None" if copy is None else f"{type(copy).__name__}, which has no {missing}"
            raise ConfigError(f"{env}: must return a BaseEnv of mlagents_envs, got {found}")
    require_different(env, copies)
    return [BaseEnvironment(copy) for copy in copies]


def is_base_env(found: object) -> bool:
    """Whether this is a BaseEnv, and no class."""
    return not isinstance(found, type) and all(has_member(found, member) for member in MEMBERS)


def refuse_wrapper(env: str, found: object) -> None:
    """A wrapper of mlagents_envs around a BaseEnv is a ConfigError, since it hides agents, groups or masks."""
    if type(found).__module__.startswith(_WRAPPERS):
        name = type(found).__name__
        raise ConfigError(f"{env}: must return the BaseEnv that {name} wraps, without that wrapper, got {name}")
