"""What the settings of every writer have in common, and how a key of `writers` chooses their class.

Those built in are in engine/running/writers/settings.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, SerializeAsAny, ValidationInfo, create_model

from rl_tui.engine import registry
from rl_tui.engine.config.types import PluginSettings, Settings, refusal, settings_of_plugin
from rl_tui.engine.errors import PluginError

KIND = "writers"
TENSORBOARD = "tensorboard"  # the one that is there without being named


class WriterSettings(PluginSettings):
    """The settings of one writer of statistics."""


def writer_settings(name: str) -> type[WriterSettings]:
    """The class of a writer's settings. Raises NotSupportedError, PluginError."""
    return settings_of_plugin(KIND, name, WriterSettings)


def writers_model(classes: Mapping[str, type[WriterSettings]]) -> type[Settings]:
    """The mapping of writers, each with its class or null."""
    return _model(tuple(classes.items()))


@lru_cache(maxsize=64)
def _model(classes: tuple[tuple[str, type[WriterSettings]], ...]) -> type[Settings]:
    fields: dict[str, Any] = {name: (kind | None, None) for name, kind in classes}
    return create_model("Writers", __base__=Settings, __doc__="One entry per writer; null: none.", **fields)


def _read(value: object, info: ValidationInfo) -> object:
    """Settings by name, TensorBoard's first. Only the plug-ins that are named are imported."""
    written = value if isinstance(value, dict) else {}
    is_known = all(registry.has(KIND, name) for name in written)
    names = list(written) if is_known else registry.names(KIND)
    classes = {name: _class_of(name) if name in written else WriterSettings for name in names}
    read = writers_model(classes).model_validate(value, context=info.context)
    return default_writers() | {name: getattr(read, name) for name in written}


def _class_of(name: str) -> type[WriterSettings]:
    try:
        return writer_settings(name)
    except PluginError as error:
        raise refusal(str(error), name) from error


def default_writers() -> dict[str, WriterSettings | None]:
    """TensorBoard's files, which every run has unless they are turned off."""
    return {TENSORBOARD: writer_settings(TENSORBOARD)()}


Writers: TypeAlias = Annotated[dict[str, SerializeAsAny[WriterSettings] | None], BeforeValidator(_read)]
