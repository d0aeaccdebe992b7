"""Environments that the user's own function or class makes, named package.module:factory."""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.config.environments import OpenArguments, near_kind
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.base import Environment, EnvironmentKind
from rl_tui.engine.sampling.environments.base_env.adapting import adapted, is_base_env, refuse_wrapper
from rl_tui.engine.sampling.environments.copies import require_different
from rl_tui.engine.sampling.environments.modules import import_named

PROGRAM = "__main__"  # the module of a script or a notebook


class UserFactory(EnvironmentKind[OpenArguments]):
    """What the user's factory returns, called once for each copy; wrapped if it is Gymnasium's or PettingZoo's."""

    def make(self, name: str, behavior: str, copies: range, settings: OpenArguments) -> list[Environment]:
        """name: package.module:factory. Raises ConfigError when nothing has that name, or arguments do not fit."""
        make = bound_factory(name, settings.arguments)
        return wrapped(name, behavior, [make() for _ in copies], settings.adaptation)

    def require(self, name: str) -> None:
        """Its module is imported, nothing of it is called. Raises ConfigError and InstanceFailure."""
        find_factory(name)

    def to_draw(self, name: str, settings: OpenArguments, *, may_be_text: bool) -> OpenArguments:
        """Frames, if the factory has an argument render_mode."""
        given, mode = settings.arguments, {"render_mode": "rgb_array"}
        if "render_mode" not in {*inspect.signature(find_factory(name)).parameters, *given}:
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
    import gymnasium
    from gymnasium.vector import VectorEnv

    from rl_tui.engine.sampling.environments.gymnasium_loop import GymnasiumLoop
    from rl_tui.engine.sampling.environments.gymnasium_vector import GymnasiumVector
    from rl_tui.engine.sampling.environments.pettingzoo.kind import is_of_pettingzoo, loop_of

    first = copies[0]
    refuse_wrapper(env, first)
    require_different(env, copies)
    if isinstance(first, gymnasium.Env):
        return [GymnasiumLoop(behavior, copies, adaptation.parameters)]
    if isinstance(first, VectorEnv):
        return [GymnasiumVector(behavior, copy) for copy in copies]
    if is_of_pettingzoo(first):
        return [loop_of(env, behavior, copies, adaptation)]
    return adapted(env, copies) if is_base_env(first) else copies


def bound_factory(name: str, arguments: Mapping[str, Any]) -> Callable[[], Any]:  # Any: a user's values and results
    """The factory of that name with these arguments. Raises ConfigError as `find_factory`, and if they do not fit."""
    factory = find_factory(name)
    try:
        inspect.signature(factory).bind(**arguments)
    except TypeError as error:
        called = f"{name.partition(':')[2]}{inspect.signature(factory)}"
        raise ConfigError(f"{name}: invalid env_kwargs: {called} {error}") from error
    return partial(factory, **arguments)


def find_factory(env: str) -> Callable[..., Any]:  # Any: a user's function
    """The callable at `module:name`.

    Raises ConfigError naming the part that does not exist, and InstanceFailure if importing fails.
    """
    module, _, name = env.partition(":")
    if module == PROGRAM:
        return _find_in_program(env, name)
    try:
        found: Any = import_named(env, module)
    except ModuleNotFoundError as error:
        kind = near_kind(module.partition(".")[0])
        hint = f". Did you mean {kind}:{name}?" if kind else ""
        raise ConfigError(f"{env}: no module named {error.name!r}{hint}") from error
    for attribute in name.split("."):
        if not hasattr(found, attribute):
            near = difflib.get_close_matches(attribute, dir(found), n=1)
            hint = f". Did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{env}: module {module} has no attribute {attribute!r}{hint}")
        found = getattr(found, attribute)
    if not callable(found):
        raise ConfigError(f"{env}: {name} must be a class or a function, got {type(found).__name__}")
    return cast(Callable[..., Any], found)


def _find_in_program(env: str, name: str) -> Callable[..., Any]:
    """What a script or a notebook that is run defines itself. Raises ConfigError where it does not."""
    found: Any = sys.modules[PROGRAM]
    for attribute in name.split("."):
        found = getattr(found, attribute, None)
    if not callable(found) or getattr(found, "__module__", PROGRAM) != PROGRAM:
        raise ConfigError(
            f"{env}: this program defines no {name}. An environment of a script or a notebook exists only there; in a"
            " module it can be used elsewhere, too"
        )
    return cast(Callable[..., Any], found)
