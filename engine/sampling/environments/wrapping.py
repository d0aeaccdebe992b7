"""Puts the wrappers of a file around copies of an environment."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rl_tui.engine.config.wrappers import Wrapper
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.process.installation import command_for_extra
from rl_tui.engine.sampling.environments.named_callable import find_callable

T = TypeVar("T")
PLACE = "env_settings.wrappers"


def wrap(copies: Sequence[T], wrappers: Sequence[Wrapper], is_one: Callable[[object], bool], kind: str) -> list[T]:
    """Each copy inside its own wrappers, the first of which is the innermost.

    is_one: whether something is an environment of that kind, like "gymnasium.Env". Raises ConfigError for a wrapper
    that nothing has the name of, whose arguments do not fit, or that returns anything else.
    """
    found = [(wrapper, require_wrapper(wrapper.name)) for wrapper in wrappers]
    return [_wrap_one(copy, found, is_one, kind) for copy in copies]


def require_wrapper(name: str) -> Callable[..., Any]:  # Any: a user's class
    """What has that name; its module is imported. Raises ConfigError and InstanceFailure."""
    try:
        return find_callable(name)
    except ConfigError as error:
        raise ConfigError(f"{PLACE}: {error}") from error


def _wrap_one(
    copy: T, found: Sequence[tuple[Wrapper, Callable[..., Any]]], is_one: Callable[[object], bool], kind: str
) -> T:
    import gymnasium  # takes long, and only some environments need it

    for wrapper, make in found:
        try:
            inspect.signature(make).bind(copy, **wrapper.arguments)
        except TypeError as error:
            called = f"{wrapper.name.partition(':')[2]}{inspect.signature(make)}"
            raise ConfigError(f"{PLACE}: {wrapper.name}: invalid arguments: {called} {error}") from error
        is_of_gymnasium = isinstance(make, type) and issubclass(make, gymnasium.Wrapper)
        if is_of_gymnasium and not isinstance(copy, gymnasium.Env):
            raise ConfigError(f"{PLACE}: {wrapper.name} must be for a {kind}, and is for Gymnasium's environments")
        try:
            made = make(copy, **wrapper.arguments)
        except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
            raise ConfigError(f"{PLACE}: {wrapper.name}: {_missing(str(error))}") from error
        if not is_one(made):
            raise ConfigError(f"{PLACE}: {wrapper.name} must return a {kind}, got {type(made).__name__}")
        copy = made
    return copy


def _missing(reason: str) -> str:
    """What is not installed, with our own command where Gymnasium's would install another build of it."""
    if "opencv" not in reason and "cv2" not in reason:
        return reason
    return f"it needs OpenCV, which is not installed. Install it with: {command_for_extra('atari')}"
