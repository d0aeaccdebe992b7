"""What the settings of every writer have in common, and how a key of `writers` chooses their class.

Those built in are in engine/running/writers/settings.py.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, SerializeAsAny, ValidationInfo

from rl_tui.engine.config.plugin_settings import PluginSettings, read_plugin_mapping, settings_of_plugin

KIND = "writers"
TENSORBOARD = "tensorboard"  # the one that is there without being named


class WriterSettings(PluginSettings):
    """The settings of one writer of statistics."""


def writer_settings(name: str) -> type[WriterSettings]:
    """The class of a writer's settings. Raises NotSupportedError, PluginError."""
    return settings_of_plugin(KIND, name, WriterSettings)


def _read(value: object, info: ValidationInfo) -> object:
    """Settings by name, TensorBoard's first."""
    return default_writers() | read_plugin_mapping(KIND, WriterSettings, value, info, has_null=True)


def default_writers() -> dict[str, WriterSettings | None]:
    """TensorBoard's files, which every run has unless they are turned off."""
    return {TENSORBOARD: writer_settings(TENSORBOARD)()}


Writers: TypeAlias = Annotated[dict[str, SerializeAsAny[WriterSettings] | None], BeforeValidator(_read)]
