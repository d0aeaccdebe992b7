"""The libraries that a plug-in needs, and how to install them."""

from __future__ import annotations

from importlib.util import find_spec

from rl_tui.engine.config.plugin_settings import PluginSettings
from rl_tui.engine.process.installation import command_for, command_for_extra


def missing_library(settings: PluginSettings | type[PluginSettings]) -> str:
    """What must be installed before a plug-in can be used; empty where nothing must."""
    absent = {module: package for module, package in settings.needs.items() if not _is_there(module)}
    if not absent:
        return ""
    command = command_for_extra(settings.extra) if settings.extra else command_for(*absent.values())
    return f"needs {next(iter(absent))}, which is not installed. Install it with: {command}"


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False
