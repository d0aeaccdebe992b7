"""`env_settings.wrappers`: what is put around each copy of an environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from rl_tui.engine.config.diagnostics import must_be
from rl_tui.engine.config.types import refusal

EXPECTED = "package.module:Class, or a mapping from one to its arguments"


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A class or function that is called with an environment and arguments. name: package.module:Class."""

    name: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)


def read_wrappers(entries: Sequence[JsonValue]) -> tuple[Wrapper, ...]:
    """The wrappers of a file, in their order. Raises pydantic's error for an entry that is none."""
    return tuple(_read(entry, index) for index, entry in enumerate(entries))


def _read(entry: JsonValue, index: int) -> Wrapper:
    match entry:
        case str(name) if _is_name(name):
            return Wrapper(name)
        case dict() if len(entry) == 1 and all(map(_is_name, entry)):
            ((name, arguments),) = entry.items()
            if isinstance(arguments, dict):
                return Wrapper(name, arguments)
            if arguments is None:
                return Wrapper(name)
            raise refusal(must_be("a mapping of arguments", arguments), index, name)
    raise refusal(must_be(EXPECTED, entry), index)


def _is_name(name: str) -> bool:
    module, _, attribute = name.partition(":")
    return bool(module and attribute)
