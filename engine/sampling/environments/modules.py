"""The user's modules: found in the working folder too, under any name, and named if importing one fails.

A module of that folder whose name Python or an installed package has taken is imported under a name of its own, and
its own absolute imports of the taken name lead to it. Other modules of the folder that import the taken name get
Python's.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.failures import Guard

PREFIX = "_user_"


def import_named(env: str, module: str) -> ModuleType:
    """The module of that name. env: for messages.

    Raises ConfigError for what cannot be the name of a module, ModuleNotFoundError when there is none, and
    InstanceFailure with the line if importing it fails.
    """
    top, folder, name = module.partition(".")[0], Path.cwd(), module
    if top == "__main__" or not all(module.split(".")):
        raise ConfigError(f"{env}: the module must be named like my_world or package.module, got {module!r}")
    found = importlib.util.find_spec(top)
    if found is not None and _has(folder, module) and not _is_in(folder, found):
        name = PREFIX + module
        finder = _Finder(top, str(folder))
        if finder not in sys.meta_path:
            sys.meta_path.insert(0, finder)
    if (found is None or name != module) and str(folder) not in sys.path:
        sys.path.append(str(folder))  # an installed command does not look there by itself
    guard = Guard(env)
    guard.doing = f"importing {module}"
    missing: ModuleNotFoundError | None = None
    with guard:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                if error.name in ("engine", "tui"):  # former names
                    error.add_note(f"rl-tui's own modules are imported as rl_tui.{error.name}")
                raise  # the module exists; something it imports does not
            missing = error
    assert missing is not None
    raise missing


def _has(folder: Path, module: str) -> bool:
    path = folder.joinpath(*module.split("."))
    return path.with_name(f"{path.name}.py").is_file() or (path / "__init__.py").is_file()


def _is_in(folder: Path, spec: ModuleSpec) -> bool:
    files = spec.submodule_search_locations or ([spec.origin or ""] if spec.has_location else [])
    return folder in [Path(file).resolve().parent for file in files]


@dataclass(frozen=True)
class _Finder(MetaPathFinder):
    """Finds `_user_NAME`, which is NAME in the user's folder, and the modules below it."""

    top: str
    folder: str

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As the protocol of finders has it; None for any other module."""
        if fullname.partition(".")[0] != PREFIX + self.top:
            return None
        spec = PathFinder.find_spec(fullname.removeprefix(PREFIX), path or [self.folder])
        if spec is not None:
            spec.name = fullname
            if spec.submodule_search_locations is not None:  # that of a namespace would be looked up by its name again
                spec.submodule_search_locations = list(spec.submodule_search_locations)
            if isinstance(spec.loader, SourceFileLoader):
                spec.loader = _Loader(self.top, fullname, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """Runs a module in which `import NAME` means the user's."""

    def __init__(self, top: str, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._top = top

    def exec_module(self, module: ModuleType) -> None:
        """The module has run."""
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": self._import}
        super().exec_module(module)

    def _import(
        self,
        name: str,
        names: Mapping[str, object] | None = None,
        local: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if level == 0 and name.partition(".")[0] == self._top:
            name = PREFIX + name
        return builtins.__import__(name, names, local, fromlist or (), level)
