"""The user's modules: found beside the configuration too, and answered for when importing one fails."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from rl_tui.engine.sampling.environments.shadowed import own_name
from rl_tui.engine.sampling.pools.failures import Guard


def import_named(env: str, module: str) -> ModuleType:
    """The module of that name.

    Raises ModuleNotFoundError when there is none, and InstanceFailure saying where when it exists and importing it
    fails, in whatever way.
    """
    folder = Path.cwd()
    name = own_name(module, folder)
    if name != module or importlib.util.find_spec(module.partition(".")[0]) is None:
        _look_in(folder)
    guard = Guard(env)
    guard.doing = f"importing {module}"
    missing: ModuleNotFoundError | None = None
    with guard:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # the module exists; something it imports does not
            missing = error
    assert missing is not None
    raise missing


def _look_in(folder: Path) -> None:
    """Let a module beside the user's configuration be found: an installed command does not look there by itself."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
