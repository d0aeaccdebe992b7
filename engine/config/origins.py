"""Where each setting of a configuration came from: the file, a preset, a flag, a Python program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from rl_tui.engine.config.diagnostics import KeyPath

SettingPath: TypeAlias = tuple[str, ...]  # as settings are listed: entries of a list by position, from 0
Origins: TypeAlias = Mapping[SettingPath, str]  # in a word; a setting that is not there has its default

FILE, PRESET, PROFILE, PYTHON = "file", "preset", "profile", "Python"


def origins_of(
    raw: Mapping[str, object], origin: str | Origins, flags: Mapping[KeyPath, str]
) -> dict[SettingPath, str]:
    """The origins of everything that was written, or set by a flag.

    raw: the settings, those of the flags among them, before behaviors are merged over default_settings. origin: of what
    no flag has set. flags: the name of each in messages, by path.
    """
    found: dict[SettingPath, str] = {}
    for path in written_paths(raw):
        listed = _listed(path)
        prefixes = (path[:length] for length in range(len(path), 0, -1))
        flag = next((flags[prefix] for prefix in prefixes if prefix in flags), None)
        if flag is not None:
            found[listed] = flag.partition(" ")[0] if flag.startswith("--") else PYTHON
        elif isinstance(origin, str):
            found[listed] = origin
        elif listed in origin:
            found[listed] = origin[listed]
    return found


def all_from(values: Mapping[str, object], origin: str) -> dict[SettingPath, str]:
    """Every setting in there has that origin."""
    return {_listed(path): origin for path in written_paths(values)}


def with_inherited(origins: Origins, behaviors: Iterable[str]) -> dict[SettingPath, str]:
    """With what each of the behaviors has from default_settings."""
    inherited = [(path[1:], origin) for path, origin in origins.items() if path[:1] == ("default_settings",)]
    below = {("behaviors", name, *path): origin for name in behaviors for path, origin in inherited}
    return {**below, **origins}


def written_paths(value: object, above: KeyPath = ()) -> Iterator[KeyPath]:
    """The path of each setting. A list is one, unless there are lists or mappings in it."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from written_paths(inner, (*above, key))
    elif isinstance(value, list) and any(isinstance(entry, dict | list) for entry in value):
        for position, inner in enumerate(value):
            yield from written_paths(inner, (*above, position))
    else:
        yield above


def _listed(path: KeyPath) -> SettingPath:
    return tuple(map(str, path))
