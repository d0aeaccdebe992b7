"""From the name of a PettingZoo environment to what makes it, and what is missing for that."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Literal, TypeAlias

from rl_tui.engine.config.diagnostics import closest, one_of
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.process.installation import command_for, command_for_extra
from rl_tui.engine.sampling.environments.modules import import_named
from rl_tui.engine.sampling.environments.pettingzoo.episodes import Env
from rl_tui.engine.sampling.failures import InstanceFailure

Form: TypeAlias = Literal["parallel", "aec"]
_REGISTRIES: tuple[Form, ...] = ("parallel", "aec")  # the best first, as the next
_FORMS = ("parallel_env", "env", "raw_env")  # what a module may offer

# Packages of environments, by the module that cannot be imported: our extra, or else the name of the package.
_OF_EXTRAS = {"pettingzoo": "pettingzoo", "mpe2": "pettingzoo", "pygame": "pettingzoo", "Box2D": "box2d"}
_PACKAGES = {"pyspiel": "open_spiel", "shimmy": "shimmy[openspiel]", "multi_agent_ale_py": "multi-agent-ale-py"}


@dataclass(frozen=True, slots=True)
class Found:
    """What makes an environment, and the module that it is from."""

    make: Callable[..., Env]
    module: str

    @property
    def render_modes(self) -> list[str]:
        """Those that its class lists."""
        raw = getattr(importlib.import_module(self.module), "raw_env", None)
        modes: list[str] = list(getattr(raw, "metadata", {}).get("render_modes", ["rgb_array"]))
        return modes


def find(name: str) -> Found:
    """What makes the environment of that name: a registered id, a module, or MODULE:ID for a module that registers it.

    Raises ConfigError if there is none, or a package is missing, and InstanceFailure where importing a module fails.
    """
    module, colon, identifier = name.rpartition(":")
    try:
        import pettingzoo  # noqa: F401  # everything else needs it
    except ModuleNotFoundError as error:
        raise ConfigError(f"pettingzoo:{name}: {missing(error)}") from error
    if colon:
        _import(name, module)
    for form in _REGISTRIES:
        if (spec := _spec(form, identifier)) is not None:
            return _registered(name, form, spec)
    if colon or "/" in identifier:
        raise ConfigError(f"pettingzoo:{name}: no such PettingZoo environment{_hint(identifier)}")
    found = _import(name, name)
    for attribute in _FORMS:
        if hasattr(found, attribute):
            return Found(getattr(found, attribute), found.__name__)
    raise ConfigError(f"pettingzoo:{name}: the module must have {one_of(_FORMS)}{_hint(name)}")


def missing(error: BaseException) -> str:
    """What is not installed, and the command that installs it; "" if an error is about something else."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ModuleNotFoundError):
        cause = cause.__cause__
    if cause is None or not cause.name:
        return ""
    module = cause.name.partition(".")[0]
    extra = _OF_EXTRAS.get(module)
    command = command_for_extra(extra) if extra else command_for(_PACKAGES.get(module, module))
    return f"it needs {module}, which is not installed. Install it with: {command}"


def _registered(name: str, form: Form, spec: Any) -> Found:  # Any: an EnvSpec
    """What makes a registered environment. Raises ConfigError if its package is missing."""
    import pettingzoo

    make = partial(pettingzoo.make, form, spec.id)
    if not isinstance(spec.entry_point, str):
        return Found(make, str(spec.entry_point.__module__))
    module = spec.entry_point.partition(":")[0]
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"pettingzoo:{name}: {missing(error) or error}") from error
    return Found(make, module)


def _spec(form: Form, identifier: str) -> Any:  # Any: an EnvSpec, or None
    import pettingzoo
    from pettingzoo.env_registry.exceptions import PettingZooRegistryError

    try:
        return pettingzoo.spec(form, identifier)
    except PettingZooRegistryError:
        return None


def _import(name: str, module: str) -> ModuleType:
    """A module of the user's or of a package. name: of the environment, for messages."""
    top = module.partition(".")[0]
    try:
        return import_named(f"pettingzoo:{name}", module)
    except ModuleNotFoundError as error:
        is_known = top in _OF_EXTRAS and error.name == top
        text = missing(error) if is_known else f"no module named {error.name!r}{_hint(name)}"
        raise ConfigError(f"pettingzoo:{name}: {text}") from error
    except InstanceFailure as failure:
        if top not in _OF_EXTRAS or not (text := missing(failure)):
            raise
        raise ConfigError(f"pettingzoo:{name}: {text}") from failure


def _hint(name: str) -> str:
    """What was probably meant."""
    import pettingzoo

    word = re.split(r"[/.:]", name)[-1]
    if re.match(r"simple(_|$)", word) and not name.startswith("mpe2."):  # they have a package of their own
        return f". Did you mean pettingzoo:mpe2.{word}?"
    package, _, module = name.rpartition(".")
    modules = [found.name for found in pkgutil.iter_modules(getattr(sys.modules.get(package), "__path__", []))]
    if (near := closest(module, modules)) is not None:
        return f". Did you mean pettingzoo:{package}.{near}?"
    ids = [identifier.replace("-v", "_v") for identifier in pettingzoo.aec_registry]
    known = {identifier.rpartition("/")[2]: identifier for identifier in ids}
    near = closest(word, known)
    return f". Did you mean pettingzoo:{known[near]}?" if near else ""
