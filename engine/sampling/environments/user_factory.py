"""Environments that the user's own function or class makes, named package.module:factory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.config.environments import OpenArguments
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.base import Environment, EnvironmentKind
from rl_tui.engine.sampling.environments.base_env.adapting import adapted, is_base_env, refuse_wrapper
from rl_tui.engine.sampling.environments.copies import require_different
from rl_tui.engine.sampling.environments.named_callable import find_callable
from rl_tui.engine.sampling.environments.wrapping import PLACE, wrap


class UserFactory(EnvironmentKind[OpenArguments]):
    """What the user's factory returns, called once for each copy; wrapped if it is Gymnasium's or PettingZoo's."""

    def make(self, name: str, behavior: str, copies: range, settings: OpenArguments) -> list[Environment]:
        """name: package.module:factory. Raises ConfigError when nothing has that name, or arguments do not fit."""
        make = bound_factory(name, settings.arguments)
        return wrapped(name, behavior, [make() for _ in copies], settings.adaptation)

    def require(self, name: str) -> None:
        """Its module is imported, nothing of it is called. Raises ConfigError and InstanceFailure."""
        find_callable(name)

    def to_draw(self, name: str, settings: OpenArguments, *, may_be_text: bool) -> OpenArguments:
        """Frames, if the factory has an argument render_mode."""
        given, mode = settings.arguments, {"render_mode": "rgb_array"}
        if "render_mode" not in {*inspect.signature(find_callable(name)).parameters, *given}:
            return settings
        return OpenArguments(**({**given, **mode} if may_be_text else {**mode, **given}))


def wrapped(
    env: str,
    behavior: str,
    copies: list[Any],  # Any: what a user's function returns
    adaptation: Adaptation,
) -> list[Environment]:
    """The copies as environments, wrapped if they are Gymnasium's, PettingZoo's or BaseEnvs; others as they are.

    Raises ConfigError if one is there twice: each would reset the other.
    """
    from gymnasium.vector import VectorEnv

    from rl_tui.engine.sampling.environments.gymnasium_loop import KIND_OF_COPIES, GymnasiumLoop, is_gymnasium
    from rl_tui.engine.sampling.environments.gymnasium_vector import GymnasiumVector
    from rl_tui.engine.sampling.environments.pettingzoo import kind as pettingzoo

    first = copies[0]
    refuse_wrapper(env, first)
    require_different(env, copies)
    if not behavior and (is_gymnasium(first) or isinstance(first, VectorEnv)):
        raise ConfigError(f"behaviors: must have a key for each behavior, got none. {env} has one; choose its name")
    if is_gymnasium(first):
        copies = wrap(copies, adaptation.wrappers, is_gymnasium, KIND_OF_COPIES)
        return [GymnasiumLoop(behavior, copies, adaptation.parameters)]
    if adaptation.wrappers and not pettingzoo.is_of_pettingzoo(first):
        kinds = "which only a gymnasium.Env and environments of PettingZoo can have"
        raise ConfigError(f"{PLACE}: must be left out for {env}, {kinds}, got {type(first).__name__}")
    if isinstance(first, VectorEnv):
        return [GymnasiumVector(behavior, copy) for copy in copies]
    if pettingzoo.is_of_pettingzoo(first):
        copies = wrap(copies, adaptation.wrappers, pettingzoo.is_of_pettingzoo, pettingzoo.KIND_OF_COPIES)
        return [pettingzoo.loop_of(env, behavior, copies, adaptation)]
    return adapted(env, copies) if is_base_env(first) else copies


def bound_factory(name: str, arguments: Mapping[str, Any]) -> Callable[[], Any]:  # Any: a user's values and results
    """The factory of that name with these arguments. Raises ConfigError as `find_callable`, and if they do not fit."""
    factory = find_callable(name)
    try:
        inspect.signature(factory).bind(**arguments)
    except TypeError as error:
        called = f"{name.partition(':')[2]}{inspect.signature(factory)}"
        raise ConfigError(f"{name}: invalid env_kwargs: {called} {error}") from error
    return partial(factory, **arguments)
