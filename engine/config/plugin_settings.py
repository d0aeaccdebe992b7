"""The settings of plug-ins: the class of each is found in the registry by the name that a file has for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeVar

from pydantic import (
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    create_model,
    model_validator,
)
from pydantic_core import PydanticUseDefault

from rl_tui.engine import registry
from rl_tui.engine.config.diagnostics import describe, must_be_one_of
from rl_tui.engine.config.types import Settings, refusal
from rl_tui.engine.errors import PluginError, RlTuiError


class PluginSettings(Settings):
    """The settings of what the registry names: a trainer, a reward signal, an environment, an encoder, a writer."""

    model_config = ConfigDict(validate_default=True)  # a plug-in's may be wrong

    # "module:Class", imported when it is used; empty: built in and not supported yet
    implementation: ClassVar[str] = ""
    needs: ClassVar[Mapping[str, str]] = {}  # modules that may be missing, each with the package that has it
    extra: ClassVar[str] = ""  # of rl-tui, which installs them

    @model_validator(mode="wrap")
    @classmethod
    def _guard(cls, value: object, read: ModelWrapValidatorHandler[Self]) -> Self:
        """Whatever a validator of an installed plug-in raises is a refusal of its settings."""
        try:
            return read(value)
        except (ValidationError, RlTuiError):
            raise
        except Exception as error:
            raise refusal(f"{cls.__module__}:{cls.__name__} raised {type(error).__name__}: {error}") from error


P = TypeVar("P", bound=PluginSettings)
_INSTALLED = "`rl-tui plugins` lists what is installed"
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_TARGET = re.compile(rf"{_MODULE.pattern}:[^\W\d]\w*")


def load_plugins(kind: str, base: type[P]) -> tuple[dict[str, type[P]], list[str]]:
    """The class of every plug-in's settings by name, and one line for each that cannot be used. Imports them all."""
    found: dict[str, type[P]] = {}
    problems = []
    for name in registry.names(kind):
        try:
            found[name] = settings_of_plugin(kind, name, base)
        except PluginError as error:
            problems.append(str(error))
    return found, problems


def settings_of_plugins(kind: str, base: type[P]) -> dict[str, type[P]]:
    """The class of every plug-in's settings by name, without those that cannot be used: they are refused where they are
    named."""
    return load_plugins(kind, base)[0]


def supported_names(kind: str, base: type[PluginSettings]) -> list[str]:
    """The plug-ins that a run can use."""
    return [name for name, settings in settings_of_plugins(kind, base).items() if settings.implementation]


def settings_of_plugin(kind: str, name: str, base: type[P]) -> type[P]:
    """The class of a plug-in's settings. Raises NotSupportedError where there is none of that name, PluginError."""
    found = registry.settings_class(kind, name)
    with registry.blaming(kind, name):
        if not issubclass(found, base):
            raise TypeError(f"must be a subclass of {base.__name__}, got {found.__name__}")
        if registry.package_of(kind, name):
            _require_variables(found, base)
            _require_complete(found)
    return found


@lru_cache
def _require_variables(settings: type[PluginSettings], base: type[PluginSettings]) -> None:
    """Raises TypeError where what a class says of itself is not what the base class has there."""
    for name in sorted(base.__class_vars__):
        if name in settings.model_fields:
            raise TypeError(f"{name} must be a ClassVar, as in `{name}: ClassVar = ...`, got a field")
        value, default = getattr(settings, name), getattr(base, name)
        if name == "implementation":
            if not (isinstance(value, str) and _TARGET.fullmatch(value)):
                raise TypeError(f'implementation must be "module:Class", got {describe(value)}')
        elif not isinstance(value, type(default)):
            raise TypeError(f"{name} must be a {type(default).__name__}, got {value!r}")
    needed: list[tuple[object, object]] = [*settings.needs.items()]
    for module, package in needed:
        if not (isinstance(module, str) and isinstance(package, str) and _MODULE.fullmatch(module) and package):
            raise TypeError(f"needs must have a package for each module, as text, got {{{module!r}: {package!r}}}")


@lru_cache
def _require_complete(settings: type[PluginSettings]) -> None:
    """Raises what pydantic does where the type of a field is unknown, or means nothing in a file."""
    settings.model_rebuild()
    settings.model_json_schema()


def plugin_name(kind: str, base: type[PluginSettings]) -> BeforeValidator:
    """Of a key that names a plug-in: there is one, and its settings can be read."""

    def check(name: object) -> object:
        if not isinstance(name, str) or not registry.has(kind, name):
            text = must_be_one_of(supported_names(kind, base), name)
            raise refusal(f"{text}{'' if text.endswith('?') else '.'} {_INSTALLED}")
        _named(kind, name, base)
        return name

    return BeforeValidator(check)


def plugin_settings(kind: str, base: type[PluginSettings], named_by: str) -> BeforeValidator:
    """Of a key with the settings of the plug-in that another key names, which is declared before it."""

    def read(value: object, info: ValidationInfo) -> object:
        if named_by not in info.data:
            raise PydanticUseDefault  # there is no such plug-in, so no key is known to be wrong
        return settings_of_plugin(kind, info.data[named_by], base).model_validate(value, context=info.context)

    return BeforeValidator(read)


def plugin_mapping(kind: str, base: type[P], classes: Mapping[str, type[P]], has_null: bool = False) -> type[Settings]:
    """A section with a key for each plug-in of a kind; all may be left out. has_null: or be null, for none."""
    return _mapping(kind, base, tuple(classes.items()), has_null)


class _PluginMapping(Settings):
    kind: ClassVar[str]
    base: ClassVar[type[PluginSettings]]
    elsewhere: ClassVar[str] = f". {_INSTALLED}"

    @classmethod
    def offered(cls) -> list[str]:
        return sorted(supported_names(cls.kind, cls.base))


@lru_cache(maxsize=64)
def _mapping(
    kind: str, base: type[PluginSettings], classes: tuple[tuple[str, type[PluginSettings]], ...], has_null: bool
) -> type[Settings]:
    fields: dict[str, Any] = {name: (found | None if has_null else found, None) for name, found in classes}
    words = f"One entry per {kind.removesuffix('s').replace('_', ' ')}{'; null: none' if has_null else ''}."
    made = create_model(kind.title().replace("_", ""), __base__=_PluginMapping, __doc__=words, **fields)
    made.kind, made.base = kind, base
    return made


def read_plugin_mapping(
    kind: str, base: type[P], value: object, info: ValidationInfo, has_null: bool = False
) -> dict[str, P]:
    """What such a section holds, in the order in which it is written. Only the plug-ins that it names are imported."""
    written = value if isinstance(value, dict) else {}
    names = list(written) if all(registry.has(kind, name) for name in written) else registry.names(kind)
    classes = {name: _named(kind, name, base, name) if name in written else base for name in names}
    read = plugin_mapping(kind, base, classes, has_null).model_validate(value, context=info.context)
    return {name: getattr(read, name) for name in written}


def _named(kind: str, name: str, base: type[P], *at: str) -> type[P]:
    """The class of a plug-in's settings; a refusal where it cannot be used."""
    try:
        return settings_of_plugin(kind, name, base)
    except PluginError as error:
        raise refusal(str(error), *at) from error
