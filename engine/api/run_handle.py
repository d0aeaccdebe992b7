"""A run that trains in the background of a Python program: its events, its state and the commands it accepts."""

from __future__ import annotations

import atexit
import gc
import logging
import math
import os
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self, get_args

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.errors import CommandError, RlTuiError
from rl_tui.engine.process.tracebacks import forget_locals
from rl_tui.engine.running.hooks import NO_HOOKS, Hooks, StopOn
from rl_tui.engine.running.launch import Launch
from rl_tui.engine.running.threads import spawn
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.messages import (
    AddNote,
    Command,
    Envelope,
    ExportPolicy,
    Pause,
    Resume,
    RollBack,
    SaveCheckpoint,
    SetHyperparameter,
    SetLesson,
    Stop,
)
from rl_tui.engine.session.session import Session
from rl_tui.engine.session.view import RunView

POLL_SECONDS = 0.25  # between looks at what has happened: more often would slow learning down
FOLDER_SECONDS = 0.05  # between looks for the folder of a run that starts
ENDING_SECONDS = 90.0  # more than a run takes to write its last files, or gives up

logger = logging.getLogger(__name__)


class SentCommand:
    """A command that was sent to a run."""

    def __init__(self, command: Command, live: LiveView):
        self.command = command
        self._live = live

    def __repr__(self) -> str:
        outcome = self._live.outcome(self.command.id)
        state = "not finished" if outcome is None else f"{'done' if outcome.ok else 'refused'}: {outcome.message}"
        return f"<{type(self.command).__name__}, {state}>"

    def wait(self, timeout: float | None = None) -> str:
        """What was done, such as the path of the checkpoint, once it is done.

        Raises CommandError if the run refused the command or could not carry it out, TimeoutError after so many
        seconds.
        """
        outcome = self._live.await_outcome(self.command.id, timeout)
        if outcome is None:
            raise TimeoutError(f"{type(self.command).__name__} is not finished after {timeout:g} s")
        if not outcome.ok:
            raise CommandError(outcome.message)
        return outcome.message


def _require_command(command: object) -> None:
    """A run does not check what its own threads get. Raises CommandError."""
    if not isinstance(command, get_args(Command)):
        raise CommandError(f"must be a command of rl_tui.messages, such as Stop(), got {command!r}")
    for name in ("behavior", "name", "path", "text"):
        value = getattr(command, name, "")
        if not isinstance(value, str) and not (name == "behavior" and value is None):
            raise CommandError(f"{name}: must be text, got {value!r}")


class RunHandle(ABC):
    """A run that trains in threads of this process, or in another one. Any thread may call its methods; one at a time
    iterates over `events`.
    """

    def __init__(self, session: Session) -> None:
        """Sees every event from now on."""
        self._session = session
        self._live = session.live
        self._mail = session.subscribe()
        self._unread: deque[Envelope] = deque()

    def __repr__(self) -> str:
        with self._live.reading() as view:
            name = "" if view.run is None else f" {view.run.run_id}"
            steps = "".join(f", {each.name} at step {each.step:,}" for each in view.behaviors.values())
            return f"<run{name}: {view.state}{steps}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """What happens at the end of a `with` block. A run of this process is stopped with everything saved, and has
        ended then; one of another process is left, and trains on."""

    @property
    @abstractmethod
    def path(self) -> Path:
        """The run's folder; waits until the run has it. Raises the run's error where it could not start."""

    @property
    def view(self) -> RunView:
        """A copy of the run's state as of now, as the screen shows it: behaviors, steps, returns, curves, warnings."""
        return self._live.snapshot()

    @property
    def live(self) -> LiveView:
        """The same without a copy."""
        return self._live

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, well or badly."""
        return self._session.wait(0)

    @property
    @abstractmethod
    def exit_code(self) -> int | None:
        """What the command line would end with; None while the run goes on."""

    @property
    @abstractmethod
    def error(self) -> RlTuiError | None:
        """Why the run could not start, or what ended it early; None while it goes on, and where nothing did."""

    @property
    @abstractmethod
    def stopped_by(self) -> Exception | None:
        """What a hook has raised, of the classes in `stop_on`, and so has ended the run; None where none has."""

    def wait(self, timeout: float | None = None) -> bool:
        """Whether the run is over, waiting at most so many seconds for it; None: until it is.

        An interrupt (Ctrl-C, or the stop button of a notebook) ends the waiting, not the run.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while not self._session.wait(min(POLL_SECONDS, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return False
        return True

    def events(self, *, wait: bool = True) -> Iterator[Envelope]:
        """Every event that was not read yet, oldest first, and then those that come; ends with the run.

        A loop that was left can be continued by another one. Of more than ten thousand unread events the oldest are
        lost, progress first. wait: False ends it where there is no further event now.
        """
        is_over = False
        while True:
            self._unread.extend(self._mail.drain())
            while self._unread:
                yield self._unread.popleft()
            if is_over or not wait:
                return
            is_over = self._session.wait(POLL_SECONDS)

    def send(self, command: Command) -> SentCommand:
        """Send a command of `rl_tui.messages` and return at once. Raises CommandError for what is none."""
        _require_command(command)
        self._session.send(command)
        return SentCommand(command, self._live)

    def pause(self, behavior: str | None = None) -> SentCommand:
        """Pause one behavior, or all."""
        return self.send(Pause(behavior))

    def resume(self, behavior: str | None = None) -> SentCommand:
        """Let one behavior continue, or all."""
        return self.send(Resume(behavior))

    def checkpoint(self, behavior: str | None = None) -> SentCommand:
        """Save a checkpoint of one behavior, or of each."""
        return self.send(SaveCheckpoint(behavior))

    def export(self, behavior: str | None = None) -> SentCommand:
        """Export the policy of one behavior, or of each."""
        return self.send(ExportPolicy(behavior))

    def set_hyperparameter(self, behavior: str, name: str, value: float) -> SentCommand:
        """Change a hyperparameter from the next update on."""
        return self.send(SetHyperparameter(behavior, name, value))

    def roll_back(self, behavior: str, checkpoint: str | os.PathLike[str]) -> SentCommand:
        """Continue from an earlier checkpoint of this run, given as its folder."""
        return self.send(RollBack(behavior, os.fspath(checkpoint)))

    def set_lesson(self, parameter: str, lesson: int) -> SentCommand:
        """Let an environment parameter go to a lesson, counted from 1."""
        return self.send(SetLesson(parameter, lesson))

    def note(self, text: str, behavior: str | None = None) -> SentCommand:
        """Write a note about one behavior, or about the run, which charts mark."""
        return self.send(AddNote(text, behavior))

    def stop(self, *, now: bool = False) -> SentCommand:
        """End the run with everything saved. now: without saving what came after the last checkpoints."""
        return self.send(Stop("now" if now else "checkpoint"))


class StartedRun(RunHandle):
    """A run in threads of this process. A program that ends while it trains stops it, with everything saved."""

    def __init__(self, config: RunConfig, hooks: Hooks = NO_HOOKS, stop_on: StopOn | None = None, *, attachable: bool):
        """The run starts at once. stop_on: with which the hooks were made. attachable: whether other processes of this
        user may show and control it."""
        self._stop_on = stop_on
        bus = EventBus()
        self._launch = Launch(bus)
        super().__init__(self._launch)
        atexit.register(self._end_with_program)
        if attachable:
            self._launch.let_attach(LiveView(self._launch.subscribe()))  # with the run's past, which `view` has not
        self._launch.start(config, hooks)
        spawn("view", self._follow, bus, lambda _: None)

    def close(self) -> None:
        """Stop it with everything saved, and wait for its end."""
        if not self.is_over:
            self.stop()
        self.wait()

    @property
    def path(self) -> Path:
        """The run's folder; waits until the run has it. Raises the run's error where it could not start."""
        while True:
            is_over = self._launch.wait(FOLDER_SECONDS)
            if self._launch.error is not None:
                raise self.error or self._launch.error
            with self._live.reading() as view:
                if view.run is not None:
                    return Path(view.run.path)
            if is_over:
                raise self.error or RlTuiError("the run ended before it had a folder")

    @property
    def exit_code(self) -> int | None:
        """What the command line would end with; None while the run goes on."""
        return self._launch.exit_code if self.is_over else None

    @property
    def error(self) -> RlTuiError | None:
        """Why the run could not start, or what ended it early; None while it goes on, and where nothing did."""
        failure = self._launch.failure
        if failure is None or isinstance(failure, RlTuiError):
            return failure
        error = RlTuiError(f"an internal error ended the run: {type(failure).__name__}: {failure}")
        error.__cause__ = failure
        return error

    @property
    def stopped_by(self) -> Exception | None:
        """What a hook has raised, of the classes in `stop_on`, and so has ended the run; None where none has."""
        raised = None if self._stop_on is None or not self.is_over else self._stop_on.raised
        if raised is not None:
            forget_locals(raised)
        return raised

    def _follow(self) -> None:
        """The main of the thread `view`."""
        try:
            self._live.main(self._launch.wait)
        finally:
            atexit.unregister(self._end_with_program)
            gc.unfreeze()  # this program goes on: what the run has frozen may be garbage by now

    def _end_with_program(self) -> None:
        if not self.is_over:
            logger.warning("the program ends while %r: it is stopped, with everything saved", self)
            self.stop()
            self.wait(ENDING_SECONDS)
