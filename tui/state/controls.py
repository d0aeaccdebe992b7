"""The user's requests to the run, as commands; one that is not possible is refused with its reason."""

from __future__ import annotations

from collections.abc import Callable

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.messages import (
    AddNote,
    Command,
    ExportPolicy,
    Pause,
    Resume,
    RollBack,
    SaveCheckpoint,
    SetHyperparameter,
    SetLesson,
)
from rl_tui.engine.session.sentences import label_of
from rl_tui.tui.state.choices import ScreenState
from rl_tui.tui.state.command_status import CommandStatus

RunCommand = Pause | Resume | SaveCheckpoint | ExportPolicy | SetHyperparameter | SetLesson | RollBack | AddNote


class Controls:
    """Owned by the app. One of the screens that show a run controls it."""

    def __init__(
        self,
        live: LiveView,
        state: ScreenState,
        status: CommandStatus,
        send: Callable[[Command], None],
        refuses: str = "",
        screen: str = "",
    ) -> None:
        """refuses: why this one may never change anything, such as --readonly; "" when it may. screen: its name among
        those that show the run; "" where no other can."""
        self.never, self.screen = refuses, screen
        self._live = live
        self._state = state
        self._status = status
        self._send = send

    @property
    def other(self) -> str:
        """The other screen that controls the run; "" where this one may."""
        controller = self._live.view.controller
        return "" if not self.screen or controller == self.screen else controller

    @property
    def refuses(self) -> str:
        """Why nothing may be changed; "" when it may."""
        return self.never or (f"{self.other} controls the run" if self.other else "")

    @property
    def selected(self) -> BehaviorView | None:
        """The behavior that keys act on; None while the run has none."""
        return self._state.behavior_in(self._live.view)

    def pause(self, everything: bool) -> None:
        """Pause what trains, or resume what is paused."""
        chosen = list(self._live.view.behaviors.values()) if everything else [self.selected] if self.selected else []
        alive = [behavior for behavior in chosen if behavior.state in ("starting", "training", "paused")]
        is_paused = bool(alive) and all(self._will_be_paused(behavior) for behavior in alive)
        target = self._target(everything)
        self.request(Resume(target) if is_paused else Pause(target))

    def checkpoint(self, everything: bool) -> None:
        """Save a checkpoint of the selected behavior, or of each."""
        self.request(SaveCheckpoint(self._target(everything)))

    def export(self, everything: bool) -> None:
        """Export the policy of the selected behavior, or of each."""
        self.request(ExportPolicy(self._target(everything)))

    def note(self, text: str, about_run: bool) -> None:
        """Add a note about the selected behavior, or about the run."""
        self.request(AddNote(text, self._target(about_run)))

    def request(self, command: RunCommand) -> None:
        """Send the command, or say why not."""
        if self.may(label_of(command)):
            self._send(command)

    def may(self, label: str) -> bool:
        """Whether commands are possible; says why not. label: what the user calls the command."""
        reason = self.why_not()
        if reason:
            self._status.say(f"{label}: not possible, {reason}")
        return not reason

    def why_not(self) -> str:
        """Why no command is possible; "" when they are."""
        if self.refuses:
            return self.refuses
        if self._live.view.is_over:
            return "the run is over"
        if self._live.view.run is None:
            return "the engine is starting"
        return ""

    def is_changing(self, behavior: BehaviorView) -> bool:
        """Whether a change of a hyperparameter, or a roll back, is pending."""
        names = "SetHyperparameter", "RollBack"
        return any(each.name in names and each.behavior == behavior.name for each in self._live.view.pending_commands)

    def _will_be_paused(self, behavior: BehaviorView) -> bool:
        """Whether it is paused once the pending commands are done."""
        for command in reversed(self._live.view.pending_commands):
            if command.name in ("Pause", "Resume") and command.behavior in (None, behavior.name):
                return command.name == "Pause"
        return behavior.state == "paused"

    def _target(self, everything: bool) -> str | None:
        return None if everything or self.selected is None else self.selected.name
