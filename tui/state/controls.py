"""What the user wants of the run, as commands; a wish that cannot be is refused with its reason."""

from __future__ import annotations

from collections.abc import Callable

from rl_tui.engine.session.messages import (
    AddNote,
    Command,
    ExportPolicy,
    Pause,
    Resume,
    RollBack,
    SaveCheckpoint,
    SetHyperparameter,
    Stop,
)
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import COMMAND_WORDS, BehaviorView, RunView
from rl_tui.tui.state.choices import ScreenState
from rl_tui.tui.state.command_status import Outcomes

Wish = Pause | Resume | SaveCheckpoint | ExportPolicy | SetHyperparameter | RollBack | AddNote


class Controls:
    """Owned by the app. refuses: why nothing may be changed, such as --readonly; "" when it may."""

    def __init__(
        self,
        view: RunView,
        state: ScreenState,
        outcomes: Outcomes,
        send: Callable[[Command], None],
        refuses: str = "",
    ) -> None:
        self.refuses = refuses
        self._view = view
        self._state = state
        self._outcomes = outcomes
        self._send = send
        self._open: list[Wish] = []

    @property
    def selected(self) -> BehaviorView | None:
        """The behavior that keys act upon; None while the run has none."""
        return self._state.behavior_in(self._view)

    def pause(self, everything: bool) -> None:
        """Pause what trains, or let go on what is paused."""
        concerned = list(self._view.behaviors.values()) if everything else [self.selected] if self.selected else []
        alive = [behavior for behavior in concerned if behavior.state in ("starting", "training", "paused")]
        is_paused = bool(alive) and all(self._will_be_paused(behavior) for behavior in alive)
        target = self._target(everything)
        for wish in self._open_wishes():
            if isinstance(wish, Pause | Resume) and wish.behavior == target:
                self._outcomes.forget(wish.id)  # what was taken back before it came about is no failure
        self.ask(Resume(target) if is_paused else Pause(target))

    def checkpoint(self, everything: bool) -> None:
        """Save a checkpoint of the selected behavior, or of each."""
        self.ask(SaveCheckpoint(self._target(everything)))

    def export(self, everything: bool) -> None:
        """Export the policy of the selected behavior, or of each."""
        self.ask(ExportPolicy(self._target(everything)))

    def note(self, text: str, about_run: bool) -> None:
        """Write something down about the selected behavior, or about the run."""
        self.ask(AddNote(text, self._target(about_run)))

    def ask(self, command: Wish) -> None:
        """Send the command, or say why not."""
        label = label_of(command)
        if self.may(label):
            self._outcomes.ask(command.id, label)
            self._open = [*self._open_wishes(), command]
            self._send(command)

    def may(self, label: str) -> bool:
        """Whether something can be asked of the run; says why not. label: what it would be called."""
        reason = self.why_not()
        if reason:
            self._outcomes.say(f"{label}: not possible, {reason}")
        return not reason

    def why_not(self) -> str:
        """Why nothing can be asked of the run; "" when it can."""
        if self.refuses:
            return self.refuses
        if self._view.is_over:
            return "the run is over"
        if self._view.run is None:
            return "the engine is starting"
        return ""

    def is_changing(self, behavior: BehaviorView) -> bool:
        """Whether another hyperparameter or checkpoint was asked for that has not come into force yet."""
        return any(
            isinstance(wish, SetHyperparameter | RollBack) and wish.behavior == behavior.name
            for wish in self._open_wishes()
        )

    def stop(self, stop: Stop) -> None:
        """Ask the run to stop; how to leave is the app's business."""
        self._send(stop)

    def _open_wishes(self) -> list[Wish]:
        """What was asked and has no outcome yet, oldest first."""
        return [wish for wish in self._open if self._outcomes.is_open(wish.id)]

    def _will_be_paused(self, behavior: BehaviorView) -> bool:
        """Whether it is paused once what was asked is done."""
        for wish in reversed(self._open_wishes()):
            if isinstance(wish, Pause | Resume) and wish.behavior in (None, behavior.name):
                return isinstance(wish, Pause)
        return behavior.state == "paused"

    def _target(self, everything: bool) -> str | None:
        return None if everything or self.selected is None else self.selected.name


def label_of(command: Wish) -> str:
    """What a user calls the command: "checkpoint Walker"."""
    words = COMMAND_WORDS[type(command).__name__]
    if isinstance(command, SetHyperparameter):
        words = f"{words} {safe_text(command.name)} of"
    elif isinstance(command, AddNote):
        return words
    return f"{words} {safe_text(command.behavior) if command.behavior else 'all'}"
