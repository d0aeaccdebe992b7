"""A Session over a recorded run that behaves as a run does: what can be shown of a command is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.bus import Subscription
from rl_tui.engine.session.command_desk import CommandDesk, Outcome
from rl_tui.engine.session.log_position import LogPosition
from rl_tui.engine.session.messages import (
    AddNote,
    BehaviorRolledBack,
    BehaviorStateChanged,
    CheckpointSaved,
    Command,
    Envelope,
    ExportPolicy,
    Hint,
    HyperparameterChanged,
    LessonChanged,
    NoteAdded,
    Pause,
    PolicyExported,
    Resume,
    RollBack,
    RunStateChanged,
    SaveCheckpoint,
    SetHyperparameter,
    SetLesson,
    Stop,
)
from rl_tui.engine.session.states import ENDS, BehaviorState
from rl_tui.tui.demo.recordings import SHOWN, Recordings
from rl_tui.tui.runs.playback import Playback

SHOWN_ONLY = "recorded: shown, not carried out"
UNWATCHABLE = "a recording has no policies; those of `rl-tui ppo/CartPole` can be watched"
NOT_WRITTEN = "recorded, not written"


class DemoSession:
    """Owns the recordings, the playback and the view that its screen shows, which begins with hours of the past.

    `send` belongs to the thread of the view, the playback to another, as for a replay. now: in Unix seconds.
    """

    def __init__(self, speed: float, now: Callable[[], float] = time.time) -> None:
        self.recordings = Recordings(now(), self.clock)
        self.exit_code = 0
        self._speed = speed
        self._paused: set[str] = set()  # behaviors, by the user
        self.playback = Playback(self._events, speed, start=self.recordings.past(), why_unwatchable=UNWATCHABLE)
        self.bus, self.live, self.watching = self.playback.bus, self.playback.live, self.playback.watching
        self._desk = CommandDesk(self.bus)

    def clock(self) -> float:
        """The recording's time, which began now."""
        return self.playback.clock()

    def notes(self) -> tuple[str, ...]:
        """For the state line."""
        return ("demo ended" if self.playback.has_ended else f"demo {self._speed:g}x",)

    def subscribe(self) -> Subscription:
        """A mailbox with every event from now on."""
        return self.playback.subscribe()

    def send(self, message: Command | Hint) -> None:
        """What it shows of a command is published at once, and its outcome."""
        self._desk.answer(message, self._answer)

    def wait(self, timeout: float) -> bool:
        """Always true: there is nothing to wait for."""
        return True

    def _events(self, position: LogPosition) -> Iterator[Envelope]:
        """The recording; events of a paused behavior come when it is resumed, or at the end."""
        waiting: list[Envelope] = []
        for envelope in self.recordings.follow(SHOWN, position):
            waiting.append(envelope)
            paused = self._paused
            due = [each for each in waiting if _behavior_of(each) not in paused]
            waiting = [each for each in waiting if _behavior_of(each) in paused]
            yield from due
        yield from waiting

    def _answer(self, command: Command) -> Outcome:
        if isinstance(command, Stop):
            return self._stop(command)
        if isinstance(command, AddNote):
            self.bus.publish(NoteAdded(command.text, command.behavior))
            return True, command.text
        behaviors = self._concerned(command)
        if not behaviors:
            return False, f"{command.behavior} has ended" if command.behavior else "all have ended"
        match command:
            case Pause() | Resume():
                return self._pause(command, behaviors)
            case SaveCheckpoint() | ExportPolicy():
                paths = [self._write(command, behavior) for behavior in behaviors]
                return True, f"{NOT_WRITTEN}: {'; '.join(paths)}"
            case SetHyperparameter() | SetLesson() | RollBack():
                return self._show(command, behaviors[0])

    def _concerned(self, command: Command) -> list[BehaviorView]:
        """The behaviors that it is for and that have not ended."""
        name = None if isinstance(command, Stop) else command.behavior
        return [
            each for each in self.live.view.behaviors.values() if name in (None, each.name) and each.state not in ENDS
        ]

    def _stop(self, stop: Stop) -> Outcome:
        """Of several stops, the first exit code but 0 counts."""
        self.exit_code = self.exit_code or stop.exit_code
        self.playback.stop()
        if not self.live.view.is_over:
            self._enter("stopped", self._concerned(stop))
            self.bus.publish(RunStateChanged("stopped", "a recording: nothing was to be saved", self.exit_code))
        return True, "stopped"

    def _pause(self, command: Pause | Resume, behaviors: list[BehaviorView]) -> Outcome:
        """The recording stands still while every behavior is paused."""
        state: BehaviorState = "paused" if isinstance(command, Pause) else "training"
        names = {each.name for each in behaviors}
        self._paused = self._paused | names if state == "paused" else self._paused - names
        self._enter(state, [each for each in behaviors if each.state != state])
        is_still = all(each.name in self._paused for each in self._concerned(Pause()))
        self.playback.is_held = is_still
        if is_still != (self.live.view.state == "paused"):
            self.bus.publish(RunStateChanged("paused" if is_still else "training"))
        return True, f"{', '.join(each.name for each in behaviors)} {state}"

    def _enter(self, state: BehaviorState, behaviors: list[BehaviorView]) -> None:
        for behavior in behaviors:
            self.bus.publish(BehaviorStateChanged(behavior.name, state))

    def _write(self, command: SaveCheckpoint | ExportPolicy, behavior: BehaviorView) -> str:
        """The event of a file that a run would write, and its path."""
        name, step = behavior.name, behavior.step
        if isinstance(command, SaveCheckpoint):
            path = f"{SHOWN}/{name}/checkpoints/{name}-{step}"
            size = 12 * behavior.num_parameters  # each with the two moments of Adam, of 4 bytes
            self.bus.publish(CheckpointSaved(name, step, path, "asked", behavior.mean_return, False, size, 0.4))
        else:
            path = f"{SHOWN}/{name}/{name}-{step}.onnx"
            self.bus.publish(PolicyExported(name, step, path, 1e-6, 0.4))
        return path

    def _show(self, command: SetHyperparameter | SetLesson | RollBack, behavior: BehaviorView) -> Outcome:
        """Its mark in the charts."""
        name, step = behavior.name, behavior.step
        match command:
            case SetHyperparameter():
                old = behavior.hyperparameters[command.name]
                self.bus.publish(HyperparameterChanged(name, step, command.name, old, command.value))
            case SetLesson():
                count = self.live.view.parameters[command.parameter].num_lessons
                self.bus.publish(LessonChanged(name, step, command.parameter, command.lesson, count))
            case RollBack():
                target = next((saved.step for _, saved in behavior.checkpoints if saved.path == command.path), None)
                if target is None:
                    return False, f"{command.path}: no checkpoint of {name}"
                self.bus.publish(BehaviorRolledBack(name, target, step, command.path))
        return True, SHOWN_ONLY


def _behavior_of(envelope: Envelope) -> str | None:
    return getattr(envelope.event, "behavior", None)
