"""Settings from the command line: what `--set` and other flags may hold, and how they override a file's values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from rl_tui.engine.config import run_flags
from rl_tui.engine.config.diagnostics import (
    DEEPEST,
    LARGEST_WHOLE,
    Diagnostic,
    KeyPath,
    describe,
    one_of,
    suggest,
    visible,
)
from rl_tui.engine.errors import ConfigError

Setting: TypeAlias = "bool | int | float | str | list[Setting] | dict[str, Setting] | None"

_TOO_DEEP = f"must be at most {DEEPEST} levels deep"
_TOO_LARGE = "must be a number within 64 bits, got a larger one"
_RESUME: KeyPath = ("checkpoint_settings", "resume")
_RESUME_OR_START: KeyPath = ("checkpoint_settings", "resume_or_start")
_INITIALIZE: KeyPath = ("checkpoint_settings", "initialize_from")
_FLAGS = {flag.path: flag.name for flag in run_flags.IN_PYTHON}


def read_value(flag: str, text: str) -> Setting:
    """The text as JSON where it reads as such, else as it is. Raises ConfigError, naming the flag."""
    try:
        value: Setting = json.loads(text)
    except json.JSONDecodeError:
        return text
    except RecursionError:
        raise ConfigError(f"{flag}: {_TOO_DEEP}") from None
    except ValueError:  # more digits than Python converts
        raise ConfigError(f"{flag}: {_TOO_LARGE}") from None
    return value


def set_flags(
    raw: dict[str, object], overrides: Mapping[str, object], name_of: Callable[[str], str]
) -> tuple[dict[KeyPath, str], list[Diagnostic]]:
    """Put values by dotted path into a file's; returns the name of each path in messages, and the refused values."""
    flags: dict[KeyPath, str] = {}
    refused: list[Diagnostic] = []
    in_order = sorted(overrides.items(), key=lambda one: one[0].startswith("behaviors."))  # env may name behaviors
    for dotted, value in in_order:
        path, misfit = _with_positions(_key_path(dotted, raw), raw)
        flags[path] = name_of(dotted)
        if reason := _why_unusable(path, value) or misfit or _why_misplaced(path, raw):
            refused.append(Diagnostic(path, reason))
        else:
            _set(raw, path, value)
    return flags, refused


def settle_start(raw: Mapping[str, object], flags: Mapping[KeyPath, str]) -> Iterator[str]:
    """Keep only one of resume and resume_or_start, and only one of resume and initialize_from; yields a note for each
    other one. resume_or_start and initialize_from go together.

    A flag wins over the file, then resume wins, as in ML-Agents.
    """
    section = raw.get("checkpoint_settings")
    if not isinstance(section, dict) or section.get("resume") is not True:
        return

    def named(path: KeyPath) -> str:
        return flags.get(path, str(path[-1]))

    def both(first: KeyPath, second: KeyPath) -> str:
        return f"both {named(first)} and {named(second)} are set"

    if section.get("resume_or_start") is True:
        has_flag = _RESUME in flags
        follows_resume = has_flag or _RESUME_OR_START not in flags
        section["resume"], section["resume_or_start"] = follows_resume, not follows_resume
        if has_flag == (_RESUME_OR_START in flags):
            yield f"{both(_RESUME, _RESUME_OR_START)}: {named(_RESUME)} is followed"
    if not section["resume"] or section.get("initialize_from") is None:
        return
    if _INITIALIZE in flags and _RESUME not in flags:
        section["resume"] = False
        yield f"{both(_RESUME, _INITIALIZE)}: {named(_INITIALIZE)} is followed"
    else:
        section["initialize_from"] = None
        yield f"{both(_RESUME, _INITIALIZE)}: {named(_RESUME)} is followed"


def _key_path(dotted: str, raw: Mapping[str, object]) -> KeyPath:
    """The path, cut at the dots; a behavior's own name may hold some."""
    section, _, rest = dotted.partition(".")
    behaviors = raw.get(section)
    if section == "behaviors" and isinstance(behaviors, dict):
        for name in behaviors:
            if rest.startswith(f"{name}."):
                return (section, name, *rest.removeprefix(f"{name}.").split("."))
    return tuple(dotted.split("."))


def flag_of(dotted: str) -> str:
    """The flag that sets a path: its own, or the general --set."""
    return f"--{_FLAGS[dotted]}" if dotted in _FLAGS else f"--set {visible(dotted)}"


def _set(raw: dict[str, object], path: KeyPath, value: object) -> None:
    """Put one value in, also where the file turns the section off (null). path: as `_with_positions` returns it."""
    section: Any = raw  # mappings by text, lists by position
    for part in path[:-1]:
        if (section.get(part) if isinstance(section, dict) else section[part]) is None:
            section[part] = {}
        section = section[part]
    section[path[-1]] = value


def _with_positions(path: KeyPath, raw: Mapping[str, object]) -> tuple[KeyPath, str]:
    """The path with positions in lists as numbers, from 0; and why there is no such place, else empty."""
    inside: object = raw
    for at, part in enumerate(path):
        if inside is None or isinstance(inside, dict):
            inside = inside.get(part) if inside else None
        elif not isinstance(inside, list):
            return (
                path,
                f"{visible(str(path[at - 1]))} is {describe(inside)}, which has no setting {visible(str(part))}",
            )
        elif (position := _position(str(part))) is None or position >= len(inside):
            return path, _no_entry(visible(str(path[at - 1])), part, len(inside))
        else:
            path, inside = (*path[:at], position, *path[at + 1 :]), inside[position]
    return path, ""


def _position(part: str) -> int | None:
    return int(part) if re.fullmatch("[0-9]{1,9}", part) else None


def _no_entry(of: str, part: str | int, num_entries: int) -> str:
    if not num_entries:
        return f"{of} is an empty list, which has no entry {visible(str(part))}: set the list itself, as JSON"
    numbers = f"its entries are 0 to {num_entries - 1}" if num_entries > 1 else "its only entry is 0"
    return f"{of} has no entry {visible(str(part))}: {numbers}"


def _why_misplaced(path: KeyPath, raw: Mapping[str, object]) -> str:
    """That a setting is of a behavior which the file does not have, and for which it has no defaults; else empty."""
    behaviors, environments = raw.get("behaviors"), raw.get("env_settings")
    if path[0] != "behaviors" or len(path) < 3 or not isinstance(behaviors, dict) or not behaviors:
        return ""
    mapped = environments.get("env") if isinstance(environments, dict) else None
    name = str(path[1])
    if name in behaviors or raw.get("default_settings") is not None or (isinstance(mapped, dict) and name in mapped):
        return ""
    return f"no such behavior.{suggest(name, behaviors) or f' Must be {one_of(map(visible, behaviors))}'}"


def _why_unusable(path: KeyPath, value: object) -> str:
    """Why a file could not hold this value at this path; empty when it could."""
    waiting = [(value, len(path))]
    while waiting:
        found, depth = waiting.pop()
        if isinstance(found, dict | list):
            if depth >= DEEPEST:
                return _TOO_DEEP
            inner = found.values() if isinstance(found, dict) else found
            waiting += ((one, depth + 1) for one in inner)
        elif isinstance(found, int) and abs(found) > LARGEST_WHOLE:
            return _TOO_LARGE
        elif isinstance(found, str) and (surrogate := next((c for c in found if "\ud800" <= c <= "\udfff"), "")):
            return f"must be UTF-8 text, got {visible(surrogate)}, which is no character"
    return _TOO_DEEP if len(path) > DEEPEST else ""
