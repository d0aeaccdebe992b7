"""The settings that a Python program passes: a mapping, a file or preset, or settings objects."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.diagnostics import DEEPEST, KeyPath, Mark, path_text, visible
from rl_tui.engine.config.loading import load_config, read_document_settings
from rl_tui.engine.config.origins import PYTHON, Origins, all_from
from rl_tui.engine.config.presets import preset_hint, preset_names, preset_path, trainer_of_profile
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.yaml_document import Document, key_paths
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.profiles import profiled_config

SettingsLike: TypeAlias = "Mapping[str, object] | str | os.PathLike[str] | BehaviorConfig | RunConfig"

DEFAULT_BEHAVIOR = "Agent"  # of settings that name none, where nothing else does


def keyword_of(dotted: str) -> str:
    """The keyword argument that sets a path: named after its last part."""
    return dotted.rpartition(".")[2]


def read_run_config(
    settings: SettingsLike,
    overrides: Mapping[str, object] | None = None,
    behavior: str | None = None,
    name_of: Callable[[str], str] = keyword_of,
) -> RunConfig:
    """The settings of a run, with `overrides` by dotted path on top, which messages call by `name_of`.

    settings: the path of a file, the name of a preset, or a file's content as a mapping; or the settings of one
    behavior, a mapping too, which is then called `behavior`. Raises ConfigError with one line for everything wrong.
    """
    overrides = {path: _plain_value(value, (path,)) for path, value in (overrides or {}).items()}
    if isinstance(settings, str) and (trainer := trainer_of_profile(settings)) and not Path(settings).exists():
        return profiled_config(trainer, overrides, name_of, only_profiled=True)
    if isinstance(settings, str | os.PathLike):
        return load_config(_file(os.fspath(settings)), overrides, name_of)
    own_name, found = behavior or DEFAULT_BEHAVIOR, cast(object, settings)
    written: Iterable[KeyPath] | None = None  # None: everything; an object does not know what its maker wrote
    origin: str | Origins = PYTHON
    match found:
        case RunConfig():
            values, only, written = _plain(found.model_dump()), None, found.source.keys
            origin = found.source.origins or all_from(found.model_dump(exclude_unset=True), PYTHON)
        case BehaviorConfig():
            values, only, written = {"behaviors": {own_name: _plain(found.model_dump())}}, own_name, ()
            origin = all_from({"behaviors": {own_name: found.model_dump(exclude_unset=True)}}, PYTHON)
        case Mapping():
            values, only = _plain(found), None
            if not _is_whole_file(values):
                values, only = {"behaviors": {own_name: values}}, own_name
        case _:
            expected = "a mapping, the path of a file, the name of a preset, a BehaviorConfig or a RunConfig"
            raise ConfigError(f"settings: must be {expected}, got {type(found).__name__}")
    keys = dict.fromkeys(key_paths(values) if written is None else written, Mark(1, 1))
    document = Document(values, keys, dict(keys))
    return read_document_settings(document, "", overrides, name_of, origin, only)


def is_of_one_behavior(settings: SettingsLike) -> bool:
    """Whether they are the settings of a behavior, without its name."""
    return isinstance(settings, BehaviorConfig) or (isinstance(settings, Mapping) and not _is_whole_file(settings))


def _file(name: str) -> Path:
    """The file of that name, or else the preset of that name."""
    path = Path(name)
    if path.exists():
        return path
    if name in preset_names():
        return preset_path(name)
    raise ConfigError(f"settings: {visible(name, limit=400)}: no such file or preset.{preset_hint(name)}")


def _is_whole_file(settings: Mapping[str, object] | Mapping[object, object]) -> bool:
    """Whether it has a section of a file; else it is about one behavior."""
    sections = {*RunConfig.model_fields, *RunConfig.synonyms}
    return any(key in sections for key in settings)


def _plain(settings: Mapping[object, object] | Mapping[str, object]) -> dict[str, object]:
    """A copy of what a file could hold. Raises ConfigError naming what it could not."""
    copied = _plain_value(settings, ())
    assert isinstance(copied, dict)
    return copied


def _plain_value(value: object, path: KeyPath) -> object:
    if len(path) > DEEPEST:
        raise ConfigError(f"settings: {path_text(path)}: must be at most {DEEPEST} levels deep")
    match value:
        case Mapping():
            for key in value:
                if not isinstance(key, str):
                    raise ConfigError(f"settings: {path_text(path)}: keys must be text, got {key!r}")
            return {str(key): _plain_value(inner, (*path, key)) for key, inner in value.items()}
        case list() | tuple():
            return [_plain_value(inner, (*path, index)) for index, inner in enumerate(value)]
        case np.generic():
            return _plain_value(value.item(), path)
        case float() if not math.isfinite(value):
            raise ConfigError(f"settings: {path_text(path)}: must be finite, got {value}")
        case None | bool() | int() | float() | str():
            return value
        case os.PathLike():
            return os.fspath(value)
        case _:
            raise ConfigError(f"settings: {path_text(path)}: must be a plain value, got {type(value).__name__}")
