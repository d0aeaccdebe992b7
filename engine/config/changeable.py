"""Settings of which some numbers may be changed while a behavior trains."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Self

from pydantic import ValidationError

from rl_tui.engine.config.diagnostics import one_of, suggest, visible
from rl_tui.engine.config.plugin_settings import PluginSettings
from rl_tui.engine.config.types import as_diagnostic
from rl_tui.engine.errors import ConfigError


class ChangeableSettings(PluginSettings):
    """A plug-in's settings, with what may be changed of them."""

    changeable: ClassVar[tuple[str, ...]] = ()  # numbers that may be changed while it trains

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        """Raise TypeError, where a plug-in is imported, for what would otherwise fail while it trains."""
        super().__pydantic_init_subclass__(**kwargs)
        require_kind(cls, "changeable", tuple)
        require_fields(cls, cls.changeable)

    def changeable_values(self) -> dict[str, float]:
        """What may be changed; a number that is off (null) cannot be turned on."""
        values = {name: getattr(self, name) for name in self.changeable}
        return {name: float(value) for name, value in values.items() if value is not None}

    def with_value(self, name: str, value: float, path: str = "") -> Self:
        """With one number changed. Raises ConfigError where it is not changeable, or invalid.

        path: what the error puts before the name.
        """
        require_changeable(name, self.changeable_values())
        try:
            return self.model_validate(dict(self) | {name: value})
        except ValidationError as error:
            raise ConfigError(f"{path}{name}: {as_diagnostic(error.errors()[0], None, {}).text}") from error


def require_changeable(name: str, known: Iterable[str]) -> None:
    """Raise ConfigError for a name that is not among what may be changed."""
    known = list(known)
    if name not in known:
        hint = suggest(name, known) or f" {one_of(known)} can be."
        raise ConfigError(f"{visible(name)}: cannot be changed while it trains.{hint}")


def require_kind(settings: type[PluginSettings], name: str, kind: type) -> None:
    """Raise TypeError where what a class says of itself is not of this kind."""
    value = getattr(settings, name)
    if not isinstance(value, kind):
        raise TypeError(f"{name} of {settings.__name__} must be a {kind.__name__}, got {value!r}")


def require_fields(settings: type[PluginSettings], names: Iterable[str]) -> None:
    """Raise TypeError where one of these is no field."""
    for name in names:
        if name not in settings.model_fields:
            raise TypeError(f"{settings.__name__} says that {name} can be changed, but has no such field")
