"""What `--set` and other flags may bring: no more than a file could hold."""

from __future__ import annotations

import json
from typing import TypeAlias

from rl_tui.engine.config.diagnostics import DEEPEST, LARGEST_WHOLE, KeyPath, visible
from rl_tui.engine.errors import ConfigError

Setting: TypeAlias = "bool | int | float | str | list[Setting] | dict[str, Setting] | None"

_TOO_DEEP = f"nested deeper than {DEEPEST} levels"
_TOO_LARGE = "found a number beyond 64 bits. A smaller one is right"


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


def why_unusable(path: KeyPath, value: object) -> str:
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
            return f"found {visible(surrogate)}, which is no character. Text must be UTF-8"
    return _TOO_DEEP if len(path) > DEEPEST else ""
