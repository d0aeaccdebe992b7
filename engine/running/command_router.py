"""How a run carries out commands."""

from __future__ import annotations

import queue
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.command_ledger import CommandLedger
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.supervisor import Supervisor
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.command_desk import Outcome
from rl_tui.engine.session.messages import (
    AddNote,
    Command,
    ExportPolicy,
    NoteAdded,
    Pause,
    Resume,
    RollBack,
    SaveCheckpoint,
    SetHyperparameter,
    SetLesson,
    Stop,
    StopMode,
)
from rl_tui.engine.session.states import RunState
from rl_tui.engine.session.text import one_line

TICK_SECONDS = 0.05  # how soon a command that was carried out is noticed
CALM_SECONDS = 0.5  # between checks of the workers while no command is open: every check delays learning
NOTE_LENGTH = 500  # a remark; more is a document


@dataclass(slots=True)
class CommandRouter:
    """Used by the coordinator. Carries out commands itself or forwards them to learners; the ledger finishes them.

    enter: publishes a state of the run. stop: the run's, once one was requested.
    """

    commands: queue.Queue[Command | None]
    ledger: CommandLedger
    supervisor: Supervisor
    bus: EventBus
    enter: Callable[[RunState, str], None]
    lessons: Lessons
    stop: Stop | None = None

    def receive(self) -> None:
        """Wait a moment for a command, and carry it out."""
        is_calm = self.stop is None and not self.ledger.is_waiting and not self.supervisor.is_leaving
        with suppress(queue.Empty):
            command = self.commands.get(timeout=CALM_SECONDS if is_calm else TICK_SECONDS)
            if command is not None:
                self.ledger.open(command.id)
                self._carry_out(command)

    def halt(self, stop: Stop) -> None:
        """Let every worker leave; of several stops, the first exit code but 0 counts and the most urgent mode."""
        if self.stop is not None:
            mode: StopMode = "now" if "now" in (stop.mode, self.stop.mode) else "checkpoint"
            stop = Stop(mode, self.stop.exit_code or stop.exit_code)
        self.stop = stop
        self.enter("stopping", "saving" if stop.mode == "checkpoint" else "")
        self.supervisor.stop(stop.mode)

    def _carry_out(self, command: Command) -> None:
        supervisor, ledger = self.supervisor, self.ledger
        match command:
            case Stop():
                self.halt(command)
                ledger.expect_when(command.id, lambda: (True, "stopped") if supervisor.has_ended else None)
            case Pause():
                self._pause(command)
            case Resume():
                names = supervisor.resume(command.behavior)
                done = f"{', '.join(names)} training"
                ledger.finish(command.id, bool(names), done if names else self._why_none(command, "nothing is paused"))
            case SaveCheckpoint() | ExportPolicy() | SetHyperparameter() | RollBack():
                names = supervisor.names(command.behavior)
                ledger.expect(command.id, names)
                supervisor.forward(command, names)
                if not names:
                    ledger.finish(command.id, False, self._why_none(command, "there is no behavior"))
            case SetLesson():
                ledger.finish(command.id, *self._set_lesson(command))
            case AddNote():
                ledger.finish(command.id, *self._note(command))

    def _set_lesson(self, command: SetLesson) -> Outcome:
        try:
            return True, self.lessons.set(command.parameter, command.lesson)
        except ConfigError as error:
            return False, str(error)

    def _note(self, command: AddNote) -> Outcome:
        """Publish the note; what it is, or why it was refused."""
        text = one_line(command.text)
        if command.behavior is not None and not self.supervisor.names(command.behavior):
            return False, self._why_none(command, "")
        if not text:
            return False, "the note is empty"
        if len(text) > NOTE_LENGTH:
            return False, f"the note has {len(text)} characters, at most {NOTE_LENGTH} are kept"
        self.bus.publish(NoteAdded(text, command.behavior))
        return True, text

    def _pause(self, command: Pause) -> None:
        names = self.supervisor.pause(command.behavior)
        if not names:
            self.ledger.finish(command.id, False, self._why_none(command, "nothing trains"))
            return

        def outcome() -> Outcome | None:
            has_parked = self.supervisor.has_parked(names)
            if has_parked is None:
                return None
            how = "paused" if has_parked else "resumed or ended before it was paused"
            return has_parked, f"{', '.join(names)} {how}"

        self.ledger.expect_when(command.id, outcome)

    def _why_none(self, command: Command, otherwise: str) -> str:
        """Why the command affected no behavior."""
        name = None if isinstance(command, Stop) else command.behavior
        return otherwise if name is None or self.supervisor.names(name) else f"there is no behavior {name}"
