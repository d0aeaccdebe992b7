"""Settings that may be changed during training, validated as in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import ValidationError

from rl_tui.engine.config.diagnostics import one_of, suggest, visible
from rl_tui.engine.config.types import Settings, as_diagnostic
from rl_tui.engine.errors import ConfigError

S = TypeVar("S", bound=Settings)


def changeable(settings: Settings, names: Sequence[str]) -> dict[str, float]:
    """The named settings that have a number now; one that is off (null) cannot be turned on."""
    values = {name: getattr(settings, name) for name in names}
    return {name: float(value) for name, value in values.items() if value is not None}


def with_value(settings: S, names: Sequence[str], name: str, value: float) -> S:
    """The settings with another value of a changeable one.

    Raises ConfigError when it is not changeable, or when the value would be refused in a file.
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
