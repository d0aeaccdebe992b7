"""A user's own functions that are called while behaviors train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from rl_tui.engine.config.types import OFF
from rl_tui.engine.errors import ConfigError, HookError
from rl_tui.engine.process.interrupts import is_interrupt
from rl_tui.engine.process.tracebacks import name_and_text, place_of, user_traceback

if TYPE_CHECKING:
    from rl_tui.engine.learning.train_step import TrainStepHook

T = TypeVar("T")
R = TypeVar("R")
H = TypeVar("H", bound=Callable[..., object])
StopKinds: TypeAlias = type[Exception] | tuple[type[Exception], ...]


@dataclass(frozen=True, slots=True)
class Milestone:
    """A behavior has reached or crossed a multiple of an interval.

    multiple: the newest. step: how many steps it has made, the multiple or somewhat more. mean_return: of the newest
    hundred episodes of training, None before the first. evaluated_return: of the newest evaluation, None without any.
    """

    behavior: str
    multiple: int
    step: int
    num_updates: int
    mean_return: float | None
    evaluated_return: float | None


MilestoneHook: TypeAlias = Callable[[Milestone], object]


@dataclass(frozen=True, slots=True)
class Hooks:
    """Called for each behavior, in the thread of its learner, which waits for them.

    on_train_step: after every gradient step. every: with their intervals in steps, -1 for never. One that raises ends
    the run with everything saved, and with a StopIteration it ends well. Raises ConfigError for what is no function
    and for an impossible interval.
    """

    on_train_step: tuple[TrainStepHook, ...] = ()
    every: tuple[tuple[int, MilestoneHook], ...] = ()

    def __post_init__(self) -> None:
        given = [("on_train_step", hook) for hook in self.on_train_step] + [("every", hook) for _, hook in self.every]
        for keyword, hook in given:
            hook_name(hook, keyword)
        for interval, hook in self.every:
            if type(interval) is not int or (interval < 1 and interval != OFF):
                must = "must be a whole number of at least 1, or -1 for never"
                raise ConfigError(f"every: the interval of {_name(hook)} {must}, got {interval!r}")


NO_HOOKS = Hooks()


class HookStop(HookError):
    """No failure: a hook has raised StopIteration, by which it ends the run."""


class StopOn:
    """Makes hooks end the run well where they raise one of these classes. raised: the first that did."""

    def __init__(self, kinds: StopKinds):
        """Raises ConfigError for what are no classes of exceptions."""
        self._kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        given: tuple[object, ...] = self._kinds
        if wrong := [kind for kind in given if not (isinstance(kind, type) and issubclass(kind, Exception))]:
            raise ConfigError(f"stop_on: must be a class of exceptions, or a tuple of them, got {wrong[0]!r}")
        self.raised: Exception | None = None

    def __call__(self, hook: H) -> H:
        """The hook, which raises a StopIteration instead."""
        if not self._kinds or not callable(hook):
            return hook

        def call(seen: object) -> None:
            try:
                hook(seen)
            except self._kinds as error:
                self.raised = self.raised or error
                raise StopIteration().with_traceback(error.__traceback__) from error

        call.__qualname__ = _name(hook)
        return cast(H, call)


def call_hook(hook: Callable[[T], R], seen: T) -> R:
    """What it returns. What it raises is a HookError, or a HookStop, except for interrupts and what ends a program."""
    try:
        return hook(seen)
    except Exception as error:
        if is_interrupt(error):
            raise
        at = f", at {place}" if (place := place_of(error)) else ""
        if isinstance(error, StopIteration):
            raise HookStop(f"stopped by the hook {_name(hook)}{at}") from error
        reason = name_and_text(error).splitlines()[0]
        failure = HookError(f"the hook {_name(hook)} raised {reason}{at}")
        failure.detail = user_traceback(error)
        raise failure from error


def hook_name(hook: object, keyword: str) -> str:
    """Its name. Raises ConfigError for what is no function."""
    if not callable(hook):
        raise ConfigError(f"{keyword}: a hook must be a function, got {hook!r}")
    return _name(hook)


def _name(hook: Callable[..., object]) -> str:
    return getattr(hook, "__qualname__", type(hook).__qualname__)
