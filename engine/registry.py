"""The table of plug-ins: of each kind and name, the class of its settings, built in or installed.

The settings class says what others must know, and names in `implementation` the class that does the work, as
"module:Class". That one is imported only when it is used, so that a configuration is read without torch; an empty
string is valid in a configuration and not supported yet. An installed package adds an entry point with its settings
class to the group `rl_tui.<kind>`. docs/plugins.md describes every kind.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from rl_tui.engine.errors import NotSupportedError, PluginError

BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "trainers": {
        "ppo": "rl_tui.engine.learning.ppo.settings:PPOSettings",
        "sac": "rl_tui.engine.learning.sac.settings:SACSettings",
        "poca": "rl_tui.engine.learning.poca.settings:POCASettings",
    },
    "reward_signals": {
        "extrinsic": "rl_tui.engine.learning.rewards.settings:ExtrinsicSettings",
        "gail": "rl_tui.engine.learning.rewards.settings:GAILSettings",
        "curiosity": "rl_tui.engine.learning.rewards.settings:CuriositySettings",
        "rnd": "rl_tui.engine.learning.rewards.settings:RNDSettings",
    },
    "environments": {
        "gymnasium": "rl_tui.engine.sampling.environments.gymnasium:GymnasiumEnvironment",
        "toy": "rl_tui.engine.sampling.environments.toys.factory:ToyEnvironment",
    },
}


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

    Raises NotSupportedError for an unknown name, PluginError for an installed one that cannot be imported.
    """
    if name in BUILT_IN[kind]:
        return resolve(BUILT_IN[kind][name])
    for point in _installed(kind):
        if point.name == name:
            with _blaming(kind, point):
                return _require_class(point.load())
    raise NotSupportedError(f"{kind}: {name} is not supported yet; there are {', '.join(names(kind))}")


def settings_classes(kind: str) -> dict[str, type]:
    """The class of the settings of every name that can be imported."""
    found: dict[str, type] = {}
    for name in names(kind):
        try:
            found[name] = settings_class(kind, name)
        except PluginError:  # it fails where it is used
            continue
    return found


def is_supported(kind: str, name: str) -> bool:
    """Whether something implements it; False for what is only read yet."""
    return bool(_implementation_of(settings_class(kind, name)))


def implementation(kind: str, name: str) -> type:
    """The class that does the work. Raises NotSupportedError where there is none, PluginError as `settings_class`."""
    target = _implementation_of(settings_class(kind, name))
    if not target:
        raise NotSupportedError(f"{kind}: {name} is not supported yet")
    point = next((point for point in _installed(kind) if point.name == name), None)
    if name in BUILT_IN[kind] or point is None:
        return resolve(target)
    with _blaming(kind, point):
        return _require_class(resolve(target))


def _implementation_of(settings: type) -> str:
    return str(getattr(settings, "implementation", ""))


def resolve(target: str) -> type:
    """The class named "module:Class", imported now."""
    module, _, attribute = target.partition(":")
    found: type = getattr(importlib.import_module(module), attribute)
    return found


def _installed(kind: str) -> list[EntryPoint]:
    return sorted(entry_points(group=f"rl_tui.{kind}"), key=lambda point: (point.name, _package(point)))


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"


def _require_class(found: object) -> type:
    if not isinstance(found, type):
        raise TypeError(f"must be a class, got {found!r}")
    return found


@contextmanager
def _blaming(kind: str, point: EntryPoint) -> Iterator[None]:
    """Whatever a plug-in raises while it is imported is a PluginError that names its package."""
    try:
        yield
    except Exception as error:
        what, reason = f"{point.name} of {_package(point)}", f"{type(error).__name__}: {error}".splitlines()[0]
        raise PluginError(f"{what} ({kind}: {point.value}) cannot be used: {reason}") from error
