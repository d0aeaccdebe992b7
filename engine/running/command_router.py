"""How a run carries out commands."""

from __future__ import annotations

import queue
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.supervisor import Supervisor
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.command_desk import CommandDesk, Outcome
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

TICK_SECONDS = 0.5  # between checks of the workers where nothing has happened: every check delays learning
NOTE_LENGTH = 500  # a remark; more is a document


@dataclass(slots=True)
class CommandRouter:
    """Used by the coordinator. Carries out commands itself or forwards them to learners, which report to the desk.

    commands: None where something has happened to a thread of the run. enter: publishes a state of the run. stop: the
    run's, once one was requested. passes_on: whether a stop is left to rank 0, which then stops this one, too.
    """

    commands: queue.Queue[Command | None]
    desk: CommandDesk
    supervisor: Supervisor
    bus: EventBus
    enter: Callable[[RunState, str], None]
    lessons: Lessons
    stop: Stop | None = None
    passes_on: Callable[[Stop], bool] = lambda _: False
    _pauses: dict[str, list[str]] = field(default_factory=dict)  # by command id: behaviors that have not parked yet
    _stops: list[str] = field(default_factory=list)  # command ids

    def receive(self) -> None:
        """Wait a moment for a command, and carry it out."""
        with suppress(queue.Empty):
            command = self.commands.get(timeout=TICK_SECONDS)
            if command is not None:
                self._carry_out(command)

    def finish_pauses(self) -> None:
        """Those that have had their effect by now."""
        for command_id, names in list(self._pauses.items()):
            has_parked = self.supervisor.has_parked(names)
            if has_parked is not None:
                how = "paused" if has_parked else "resumed or ended before it was paused"
                self.desk.finish(command_id, has_parked, f"{', '.join(names)} {how}")
                del self._pauses[command_id]

    def end(self) -> None:
        """Finish every command: what could not be done has failed."""
        self.finish_pauses()
        for command_id in self._stops if self.supervisor.has_ended else ():
            self.desk.finish(command_id, True, "stopped")
        self.desk.close()

    def halt(self, stop: Stop) -> None:
        """Let every worker leave; of several stops, the first exit code but 0 counts and the most urgent mode."""
        if self.stop is not None:
            mode: StopMode = "now" if "now" in (stop.mode, self.stop.mode) else "checkpoint"
            stop = Stop(mode, self.stop.exit_code or stop.exit_code)
        self.stop = stop
        self.enter("stopping", "saving" if stop.mode == "checkpoint" else "")
        self.supervisor.stop(stop.mode)

    def _carry_out(self, command: Command) -> None:
        supervisor, desk = self.supervisor, self.desk
        match command:
            case Stop() if self.passes_on(command):
                desk.finish(command.id, True, "rank 0 stops all")
            case Stop():
                self.halt(command)
                self._stops.append(command.id)
            case Pause():
                names = supervisor.pause(command.behavior)
                if names:
                    self._pauses[command.id] = names
                else:
                    desk.finish(command.id, False, self._why_none(command, "nothing trains"))
            case Resume():
                names = supervisor.resume(command.behavior)
                done = f"{', '.join(names)} training"
                desk.finish(command.id, bool(names), done if names else self._why_none(command, "nothing is paused"))
            case SaveCheckpoint() | ExportPolicy() | SetHyperparameter() | RollBack():
                names = supervisor.names(command.behavior)
                desk.expect(command.id, names)
                supervisor.forward(command, names)
                if not names:
                    desk.finish(command.id, False, self._why_none(command, "there is no behavior"))
            case SetLesson():
                desk.finish(command.id, *self._set_lesson(command))
            case AddNote():
                desk.finish(command.id, *self._note(command))

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

    def _why_none(self, command: Command, otherwise: str) -> str:
        """Why the command affected no behavior."""
        name = None if isinstance(command, Stop) else command.behavior
        return otherwise if name is None or self.supervisor.names(name) else f"there is no behavior {name}"
