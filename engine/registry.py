"""The table of plug-ins: of each kind and name, the class of its settings, built in or installed.

The settings class says what others must know, and names in `implementation` the class that does the work, as
"module:Class". That one is imported only when it is used, so that a configuration is read without torch; an empty
string is valid in a configuration and not supported yet. An installed package adds an entry point with its settings
class to the group `rl_tui.<kind>`. docs/plugins.md describes every kind.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

from rl_tui.engine.errors import NotSupportedError, PluginError, RlTuiError
from rl_tui.engine.process.interrupts import is_interrupt
from rl_tui.engine.process.tracebacks import place_of, text_of, user_traceback

BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "trainers": {
        "ppo": "rl_tui.engine.learning.ppo.settings:PPOSettings",
        "sac": "rl_tui.engine.learning.sac.settings:SACSettings",
        "poca": "rl_tui.engine.learning.poca.settings:POCASettings",
        "mappo": "rl_tui.engine.learning.mappo.settings:MAPPOSettings",
        "bc": "rl_tui.engine.learning.bc.settings:BCSettings",
    },
    "reward_signals": {
        "extrinsic": "rl_tui.engine.learning.rewards.settings:ExtrinsicSettings",
        "gail": "rl_tui.engine.learning.rewards.settings:GAILSettings",
        "curiosity": "rl_tui.engine.learning.rewards.settings:CuriositySettings",
        "rnd": "rl_tui.engine.learning.rewards.settings:RNDSettings",
    },
    "encoders": {
        "simple": "rl_tui.engine.learning.encoders.settings:SimpleSettings",
        "nature_cnn": "rl_tui.engine.learning.encoders.settings:NatureSettings",
        "resnet": "rl_tui.engine.learning.encoders.settings:ResnetSettings",
        "match3": "rl_tui.engine.learning.encoders.settings:Match3Settings",
        "fully_connected": "rl_tui.engine.learning.encoders.settings:FullyConnectedSettings",
    },
    "writers": {
        "tensorboard": "rl_tui.engine.running.writers.settings:TensorBoardSettings",
        "wandb": "rl_tui.engine.running.writers.settings:WandbSettings",
        "mlflow": "rl_tui.engine.running.writers.settings:MlflowSettings",
    },
    "environments": {
        "gymnasium": "rl_tui.engine.sampling.environments.settings:GymnasiumSettings",
        "toy": "rl_tui.engine.sampling.environments.settings:ToySettings",
        "pettingzoo": "rl_tui.engine.sampling.environments.settings:PettingZooSettings",
        "mlagents": "rl_tui.engine.sampling.environments.settings:BaseEnvSettings",
        "demonstrations": "rl_tui.engine.sampling.environments.settings:DemonstrationsSettings",
        "unity": "rl_tui.engine.sampling.environments.settings:UnitySettings",
    },
}
_METHODS: Mapping[str, tuple[str, ...]] = {"writers": ("write", "close")}  # of kinds without a base class
_MLAGENTS = ("mlagents.stats_writer", "mlagents.trainer_type")


@dataclass(frozen=True, slots=True)
class Plugin:
    """One name of the table.

    target: its settings class as "module:Class". package: name and version of what installed it; empty if built in.
    """

    kind: str
    name: str
    target: str
    package: str = ""


def plugins(kind: str) -> list[Plugin]:
    """Those built in, then those installed, by name; also installed ones whose name is taken and which are not used."""
    built_in = [Plugin(kind, name, target) for name, target in BUILT_IN[kind].items()]
    return [*built_in, *(Plugin(kind, point.name, point.value, _package(point)) for point in _installed(kind))]


def names(kind: str) -> list[str]:
    """Every name of that kind, each once: those built in, then those installed."""
    return list(dict.fromkeys([*BUILT_IN[kind], *(point.name for point in _installed(kind))]))


def has(kind: str, name: object) -> bool:
    """Whether there is one of that name; installed packages are searched only where none is built in."""
    return isinstance(name, str) and (name in BUILT_IN[kind] or name in names(kind))


def settings_class(kind: str, name: str) -> type:
    """The class of its settings. An installed plug-in cannot replace a built-in one.

    Raises NotSupportedError for an unknown name, PluginError for an installed one that cannot be imported, and for a
    name that two packages have.
    """
    if name in BUILT_IN[kind]:
        return resolve(BUILT_IN[kind][name])
    point = _find(kind, name)
    if point is None:
        raise NotSupportedError(f"{kind}: {name} is not supported yet; there are {', '.join(names(kind))}")
    with blaming(kind, name):
        return _require_class(point.load())


def implementation(kind: str, name: str) -> type:
    """The class that does the work. Raises NotSupportedError where there is none, PluginError as `settings_class`."""
    target = _implementation_of(settings_class(kind, name))
    if not target:
        raise NotSupportedError(f"{kind}: {name} is not supported yet")
    with blaming(kind, name):
        found = _require_class(resolve(target))
        for method in _METHODS.get(kind, ()):
            if not callable(getattr(found, method, None)):
                raise TypeError(f"{found.__name__} must have a method {method}")
        return found


def require_implementation(kind: str, name: str) -> None:
    """The class that does an installed one's work seems to be there; its module is searched for, and not imported.

    Packages around that module are imported. Raises PluginError as `implementation`.
    """
    module, _, attribute = _implementation_of(settings_class(kind, name)).partition(":")
    with blaming(kind, name):
        if module in sys.modules:
            known = vars(sys.modules[module])
            if attribute not in known and "__getattr__" not in known:
                raise AttributeError(f"module {module!r} has no attribute {attribute!r}")
        elif find_spec(module) is None:
            raise ModuleNotFoundError(f"No module named {module!r}")


@contextmanager
def blaming(kind: str, name: str, doing: str = "") -> Iterator[None]:
    """What an installed plug-in raises in here is a PluginError that names its package; our own errors pass, and so do
    interrupts.

    doing: the method that is called, if it is already in use; the error then has the place and the traceback, too.
    """
    try:
        yield
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        point = None if isinstance(error, RlTuiError) or is_interrupt(error) else _find(kind, name)
        if point is None:
            raise
        what, text = f"{name} of {_package(point)}", "".join(text_of(error).splitlines()[:1])
        reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
        if not doing:
            raise PluginError(f"{what} ({kind}: {point.value}) cannot be used: {reason}") from error
        at = f", at {place}" if (place := place_of(error)) else ""
        failure = PluginError(f"{what} ({kind}: {point.value}): {doing} raised {reason}{at}")
        failure.detail = user_traceback(error)
        raise failure from error


def refused(kind: str, name: str, problem: str) -> PluginError:
    """The error of a plug-in that is not what its kind must be; it names the package."""
    return PluginError(f"{title(kind, name)}: {problem}")


def title(kind: str, name: str) -> str:
    """How messages name it: with its package, if it is installed."""
    package = package_of(kind, name)
    return f"{name} of {package}" if package else f"{kind}.{name}"


def package_of(kind: str, name: str) -> str:
    """Name and version of the package that installed it; empty if it is built in."""
    point = _find(kind, name)
    return _package(point) if point else ""


def hidden(kind: str) -> list[Plugin]:
    """Installed ones that are not used, since one of that name is built in."""
    return [plugin for plugin in plugins(kind) if plugin.package and plugin.name in BUILT_IN[kind]]


def plugins_of_mlagents() -> list[Plugin]:
    """The plug-ins that other packages have installed for ML-Agents, which are never loaded."""
    found = [Plugin(group, point.name, point.value, _package(point)) for group in _MLAGENTS for point in _group(group)]
    return [plugin for plugin in found if plugin.target.partition(".")[0] != "mlagents"]


def misplaced_plugins() -> list[Plugin]:
    """The plug-ins in a group `rl_tui.<kind>` that there is not, which are never loaded."""
    groups = [group for group in _entry_points(tuple(sys.path)) if group not in (*_groups(), *_MLAGENTS)]
    return [Plugin(group, point.name, point.value, _package(point)) for group in groups for point in _group(group)]


def _implementation_of(settings: type) -> str:
    return str(getattr(settings, "implementation", ""))


def resolve(target: str) -> type:
    """The class named "module:Class", imported now."""
    module, _, attribute = target.partition(":")
    found: type = getattr(importlib.import_module(module), attribute)
    return found


def _find(kind: str, name: str) -> EntryPoint | None:
    """The entry point of an installed one; None if it is built in or unknown. Raises PluginError for two of a name."""
    if name in BUILT_IN[kind]:
        return None
    found = [point for point in _installed(kind) if point.name == name]
    if len(found) > 1:
        packages = " and ".join(map(_package, found))
        raise PluginError(f"{name} ({kind}) is provided by {packages}: uninstall one of them")
    return found[0] if found else None


def _installed(kind: str) -> list[EntryPoint]:
    return _group(f"rl_tui.{kind}")


def _group(group: str) -> list[EntryPoint]:
    return _entry_points(tuple(sys.path))[group]


@lru_cache(maxsize=4)
def _entry_points(_path: tuple[str, ...]) -> dict[str, list[EntryPoint]]:
    """Those that concern this program by group; the packages of a search path are looked through once."""
    found = entry_points()
    unknown = sorted(group for group in found.groups if group.startswith("rl_tui."))
    return {
        group: sorted(found.select(group=group), key=lambda point: (point.name, _package(point)))
        for group in dict.fromkeys([*_groups(), *_MLAGENTS, *unknown])
    }


def _groups() -> list[str]:
    return [f"rl_tui.{kind}" for kind in BUILT_IN]


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"


def _require_class(found: object) -> type:
    if not isinstance(found, type):
        raise TypeError(f"must be a class, got {found!r}")
    return found
