"""Every plug-in with what it is, or why it cannot be used: what `rl-tui plugins` lists."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rl_tui.engine import registry
from rl_tui.engine.config.encoders import EncoderSettings
from rl_tui.engine.config.environments import EnvironmentSettings
from rl_tui.engine.config.hyperparameters import Hyperparameters
from rl_tui.engine.config.plugin_settings import PluginSettings, settings_of_plugin
from rl_tui.engine.config.requirements import missing_library
from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.config.writers import WriterSettings
from rl_tui.engine.errors import PluginError

BASES: Mapping[str, type[PluginSettings]] = {
    "trainers": Hyperparameters,
    "reward_signals": RewardSignalSettings,
    "encoders": EncoderSettings,
    "environments": EnvironmentSettings,
    "writers": WriterSettings,
}
State: TypeAlias = Literal["usable", "not supported yet", "unusable", "hidden", "not loaded"]


@dataclass(frozen=True, slots=True)
class ListedPlugin:
    """One line of the list.

    kind: of the registry, or a group of entry points that is not loaded. package: name and version; "" if built in.
    target: the class of its settings. about: what it is, in a sentence. problem: why it cannot be used, or "".
    """

    kind: str
    name: str
    package: str
    target: str
    state: State
    about: str = ""
    problem: str = ""


def list_plugins() -> list[ListedPlugin]:
    """Those of every kind, then those in unknown groups and those of ML-Agents.

    Imports their settings, and looks for what implements them.
    """
    found = [_listed(plugin) for kind in BASES for plugin in registry.plugins(kind)]
    unknown = "no group of plug-ins of rl-tui"
    found += [_with(plugin, "not loaded", problem=unknown) for plugin in registry.misplaced_plugins()]
    of_mlagents = registry.plugins_of_mlagents()
    return [*found, *(_with(plugin, "not loaded", problem="a plug-in of ML-Agents") for plugin in of_mlagents)]


def _listed(plugin: registry.Plugin) -> ListedPlugin:
    if plugin in registry.hidden(plugin.kind):
        return _with(plugin, "hidden", problem="that is the name of a built-in one; give it another name")
    about = ""
    try:
        settings = settings_of_plugin(plugin.kind, plugin.name, BASES[plugin.kind])
        about = _first_sentence(settings)
        if not settings.implementation:
            return _with(plugin, "not supported yet", about)
        if missing := missing_library(settings):
            return _with(plugin, "unusable", about, missing)
        if plugin.package:
            registry.require_implementation(plugin.kind, plugin.name)
    except PluginError as error:
        return _with(plugin, "unusable", about, str(error).rpartition(" cannot be used: ")[2])
    return _with(plugin, "usable", about)


def _with(plugin: registry.Plugin, state: State, about: str = "", problem: str = "") -> ListedPlugin:
    return ListedPlugin(plugin.kind, plugin.name, plugin.package, plugin.target, state, about, problem)


def _first_sentence(settings: type[PluginSettings]) -> str:
    """Of its own docstring."""
    text = " ".join(inspect.cleandoc(vars(settings).get("__doc__") or "").split())
    return re.split(r"(?<=\.) (?=[A-Z])", text, maxsplit=1)[0]
