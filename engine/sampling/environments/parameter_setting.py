"""How environment parameters reach copies that were written for other programs: attributes, or `options` of a reset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rl_tui.engine.config.diagnostics import suggest
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.parameters import Parameters


class ParameterSetter:
    """Draws parameters whenever a copy is reset.

    Copies are wrapped as Gymnasium's are, by `env`, and PettingZoo's, also by `aec_env`.
    """

    def __init__(self, copies: Sequence[Any], attributes: Mapping[str, str]) -> None:  # Any: a user's objects
        """attributes: of the copies, by the parameter that sets each."""
        self._copies = copies
        self._attributes = attributes
        self._parameters: list[Parameters] = []

    def set(self, parameters: Parameters) -> None:
        """Draw from these from now on. Raises ConfigError where a copy has no such attribute."""
        for name, attribute in self._attributes.items():
            if name in parameters:
                _holder(self._copies[0], name, attribute)
        self._parameters = [parameters.of_copy(index) for index in range(len(self._copies))]

    def prepare(self, index: int) -> dict[str, float] | None:
        """Set the attributes of one copy, which is about to be reset; its `options`, None where there is nothing."""
        if not self._parameters:
            return None
        options: dict[str, float] = {}
        for name, value in self._parameters[index].draw_all().items():
            attribute = self._attributes.get(name)
            if attribute is None:
                options[name] = value
            else:
                _assign(_holder(self._copies[index], name, attribute), attribute, value)
        return options or None


def _holder(copy: Any, parameter: str, attribute: str) -> Any:  # Any: a user's object
    """The outermost of a copy and what it wraps that has the attribute itself, which is where it is read."""
    wrapped = copy
    while attribute not in dir(wrapped):  # hasattr would also find what some wrappers pass on
        inner = getattr(wrapped, "env", None) or getattr(wrapped, "aec_env", None)
        if inner is None:
            known = [word for word in dir(copy.unwrapped) if not word.startswith("_")]
            kind, hint = type(copy.unwrapped).__name__, suggest(attribute, known)
            raise ConfigError(
                f"env_settings.parameters.{parameter}: must be an attribute of {kind}, got {attribute!r}.{hint}"
            )
        wrapped = inner
    return wrapped


def _assign(holder: Any, attribute: str, value: float) -> None:  # Any: a user's object
    """Set it; what held a whole number still does, if the value is one."""
    is_whole = type(getattr(holder, attribute)) is int and value.is_integer()
    setattr(holder, attribute, int(value) if is_whole else value)
