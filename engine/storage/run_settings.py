"""The settings of a run that are not the defaults, short enough for a list of runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeGuard

from pydantic import JsonValue

from rl_tui.engine.config.diagnostics import KeyPath, path_text
from rl_tui.engine.config.loading import LARGEST_FILE, parse_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.types import Settings
from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.process.files import open_regular
from rl_tui.engine.storage.file_names import CONFIGURATION

NAME = ("checkpoint_settings", "run_id")  # which no two runs share


def settings_of_run(folder: Path) -> dict[str, JsonValue] | None:
    """The changed settings of the run in that folder; None where its file cannot be read.

    Nothing else that the file may name is a reason to fail: a list of runs may hold those of other versions, and of
    packages that are not installed.
    """
    try:
        with os.fdopen(open_regular(folder / CONFIGURATION, follows_links=True), "rb") as file:
            content = file.read(LARGEST_FILE)
        return changed_settings(parse_config(content, CONFIGURATION))
    except (OSError, RlTuiError):
        return None


def changed_settings(config: RunConfig) -> dict[str, JsonValue]:
    """The value of each setting that is not its default, by its path, in the order of a file.

    A section that is off by default is one value.
    """
    return {path_text(path): value for path, value in _changed(config, ()) if path != NAME}


def _changed(section: Settings, path: KeyPath) -> Iterator[tuple[KeyPath, JsonValue]]:
    plain = section.model_dump(mode="json")
    for key, value in section:
        default = section.default_of(key)
        if isinstance(value, Settings) and isinstance(default, type(value)):
            yield from _changed(value, (*path, key))
        elif isinstance(default, Mapping) and _is_of_sections(value):
            yield from _changed_entries(value, default, (*path, key))
        elif value != default:
            yield (*path, key), plain[key]


def _is_of_sections(value: object) -> TypeGuard[Mapping[str, Settings]]:
    return isinstance(value, Mapping) and bool(value) and all(isinstance(each, Settings) for each in value.values())


def _changed_entries(
    entries: Mapping[str, Settings], default: Mapping[str, object], path: KeyPath
) -> Iterator[tuple[KeyPath, JsonValue]]:
    """Of sections with names of the user's, such as behaviors; one with nothing but defaults is an empty mapping."""
    for name, entry in entries.items():
        changed = list(_changed(entry, (*path, name)))
        yield from changed if changed or name in default else [((*path, name), {})]
