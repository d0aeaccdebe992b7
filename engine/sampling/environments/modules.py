"""The user's modules: found beside the configuration too, and answered for when importing one fails."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType

from engine.sampling.pools.failures import Guard


def import_named(env: str, module: str) -> ModuleType:
    """The module of that name.

    Raises ModuleNotFoundError when there is none, and InstanceFailure saying where when it exists and importing it
    fails, in whatever way.
    """
    _look_in_working_folder(module.partition(".")[0])
    guard = Guard(env)
    guard.doing = f"importing {module}"
    missing: ModuleNotFoundError | None = None
    with guard:
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise  # the module exists; something it imports does not
            missing = error
    assert missing is not None
    raise missing


def _look_in_working_folder(package: str) -> None:
    """Let a module beside the user's configuration be found: an installed command does not look there by itself."""
    folder = os.getcwd()
    if importlib.util.find_spec(package) is None and folder not in sys.path:
        sys.path.append(folder)
