"""Settings that a trainer lets be changed while it trains, checked as those of a file are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import ValidationError

from rl_tui.engine.config.diagnostics import one_of, suggest, visible
from rl_tui.engine.config.types import Settings, as_diagnostic
from rl_tui.engine.errors import ConfigError

S = TypeVar("S", bound=Settings)


def changeable(settings: Settings, names: Sequence[str]) -> dict[str, float]:
    """Those of the named settings that are numbers here; one that is off (null) cannot be turned on by a number."""
    values = {name: getattr(settings, name) for name in names}
    return {name: float(value) for name, value in values.items() if value is not None}


def with_value(settings: S, names: Sequence[str], name: str, value: float) -> S:
    """The settings with another value of one that is changeable.

    Raises ConfigError when it is none of those, or when a file could not hold the value.
    """
    known = list(changeable(settings, names))
    if name not in known:
        hint = suggest(name, known) or f" {one_of(known)} can be."
        raise ConfigError(f"{visible(name)}: cannot be changed while it trains.{hint}")
    try:
        return type(settings).model_validate(settings.model_dump() | {name: value})
    except ValidationError as error:
        diagnostic = as_diagnostic(error.errors()[0], None, {})
        raise ConfigError(f"{name}: {diagnostic.text}") from error
