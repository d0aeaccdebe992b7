"""A class or function that a file names as package.module:name."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable
from typing import Any, cast

from rl_tui.engine.config.environments import near_kind
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.modules import import_named

PROGRAM = "__main__"  # the module of a script or a notebook


def is_of_program(env: str) -> bool:
    """Whether it is defined in the program itself, which no other process can import."""
    return env.startswith(f"{PROGRAM}:")


def find_callable(env: str) -> Callable[..., Any]:  # Any: a user's function
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
        likely = f"{module.removesuffix('.py')}:{name}" if module.endswith(".py") else f"{kind}:{name}" if kind else ""
        hint = f". Did you mean {likely}?" if likely else ""
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
