"""Failures of environments, with the instance and the line of the user's code."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

from rl_tui.engine.errors import (
    ConfigError,
    EnvironmentFailure,
    NonFiniteError,
    NotSupportedError,
    PluginError,
    RlTuiError,
)
from rl_tui.engine.process.interrupts import is_interrupt
from rl_tui.engine.process.tracebacks import notes_of, place_of, text_of, user_traceback


class InstanceFailure(EnvironmentFailure):
    """One instance failed. The message is one line; `detail` is a traceback, a dump of stacks, or empty.

    worker is None for an instance in this process.
    """

    def __init__(self, message: str, instance: int | None, worker: int | None = None, detail: str = "") -> None:
        super().__init__(message)
        self.instance = instance
        self.worker = worker
        self.detail = detail


class NonFiniteAnswer(InstanceFailure, NonFiniteError):
    """One instance returned a reward or an observation that is not finite. The exit code is NonFiniteError's."""

    exit_code = NonFiniteError.exit_code


class StartStopped(RlTuiError):
    """The run was stopped while its environments were starting."""


class InstanceStopped(InstanceFailure):
    """The user has stopped one instance and may start it again, as with Play in the Unity Editor: no failure counts."""


class Guard(AbstractContextManager["Guard"]):
    """Turns any exception of an environment's code into an InstanceFailure that names the environment.

    Errors of the configuration pass unchanged, and so do interrupts. Any other SystemExit is a failure: no environment
    may end the program. Set `doing` and `instance` before entering.
    """

    def __init__(self, environment: str, worker: int | None = None) -> None:
        self.environment = environment
        self.worker = worker
        self.doing = "start"
        self.instance: int | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ConfigError | NotSupportedError | PluginError | InstanceFailure):
            return
        if error is None or is_interrupt(error):
            return
        failure = NonFiniteAnswer if isinstance(error, NonFiniteError) else InstanceFailure
        is_found_here = isinstance(error, EnvironmentFailure | NonFiniteError) and not place_of(error)
        detail = "" if is_found_here else user_traceback(error, with_notes=False)  # they are part of the reason
        if isinstance(error, RlTuiError):
            detail = error.detail or detail
        raise failure(f"{self.subject}: {self._reason(error)}", self.instance, self.worker, detail) from error

    @property
    def subject(self) -> str:
        """The environment, instance and worker, in words."""
        words = [self.environment]
        if self.instance is not None:
            words.append(f"instance {self.instance}")
        if self.worker is not None:
            words.append(f"worker {self.worker}")
        return ", ".join(words)

    def _reason(self, error: BaseException) -> str:
        """One line: the call, its exception, and where in the user's code."""
        text = " ".join(_message_of(error).split())
        where = "".join(f" ({note})" for note in notes_of(error))
        if isinstance(error, EnvironmentFailure | NonFiniteError):
            return f"{self.doing} failed: {text}{where}"
        place = place_of(error)
        at = f", at {place}" if place else ""
        return f"{self.doing} raised {type(error).__name__}{f': {text}' if text else ''}{where}{at}"


def _message_of(error: BaseException) -> str:
    """Without the place, which the reason of a SyntaxError has anyway."""
    return error.msg if isinstance(error, SyntaxError) and isinstance(error.msg, str) else text_of(error)
