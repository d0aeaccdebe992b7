"""A user's module whose name is taken: by our own packages (`engine`, `tui`), by Python, or by an installed package.

It is imported under a name of its own, and its own absolute imports of the taken name lead to it. Other modules beside
it that import the taken name get what Python finds, which is not the user's.
"""

from __future__ import annotations

import builtins
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

PREFIX = "_user_"


def own_name(module: str, folder: Path) -> str:
    """The name to import the user's module of that folder under: its own where that leads to it, or is not there."""
    if not _is_module(folder.joinpath(*module.split("."))):
        return module
    top = module.partition(".")[0]
    found = importlib.util.find_spec(top)
    if found is None or folder in _places(found):
        return module
    if not any(isinstance(finder, _Finder) and finder.is_of(top, folder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(top, folder))
    return PREFIX + module


class _Finder(MetaPathFinder):
    """Finds `_user_NAME`, which is NAME in the user's folder, and what is below it."""

    def __init__(self, top: str, folder: Path) -> None:
        self._top = top
        self._folder = folder

    def is_of(self, top: str, folder: Path) -> bool:
        """Whether it finds this one."""
        return (top, folder) == (self._top, self._folder)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As the protocol of finders has it; None for everybody else's modules."""
        if fullname == PREFIX + self._top:
            place = self._folder / self._top
            package = [str(place)] if place.is_dir() else None
            file = place / "__init__.py" if package else place.with_suffix(".py")
            if not file.is_file():
                spec = ModuleSpec(fullname, None, is_package=True)
                spec.submodule_search_locations = package
                return spec
            loader = _Loader(self._top, fullname, str(file))
            return importlib.util.spec_from_file_location(
                fullname, file, loader=loader, submodule_search_locations=package
            )
        if not fullname.startswith(f"{PREFIX}{self._top}."):
            return None
        found = PathFinder.find_spec(fullname, path, target)
        if found is not None and isinstance(found.loader, SourceFileLoader):
            found.loader = _Loader(self._top, fullname, found.loader.path)
        return found


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


def _is_module(path: Path) -> bool:
    return path.with_name(f"{path.name}.py").is_file() or path.is_dir()


def _places(spec: ModuleSpec) -> list[Path]:
    """The folders that a module lies in."""
    files = spec.submodule_search_locations if spec.submodule_search_locations is not None else [spec.origin or ""]
    return [Path(file).resolve().parent for file in files]
