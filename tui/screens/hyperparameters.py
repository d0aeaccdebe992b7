"""The hyperparameters of the selected behavior: changed while training goes on, and taken back."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable

from textual.app import ComposeResult

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.history import History
from rl_tui.engine.session.messages import HyperparameterChanged, Range, SetHyperparameter
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.hyperparameter_chart import HyperparameterChart
from rl_tui.tui.panes.hyperparameter_list import ChangesList, HyperparameterList, figure, metric_of, moved_to
from rl_tui.tui.screens.base import RunScreen
from rl_tui.tui.screens.confirm import ConfirmScreen
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.prompt import PromptScreen, Verdict

FAR = 100  # times the value or a part of it: further than a usual single step


class HyperparametersScreen(RunScreen):
    """enter changes the one below the cursor, z takes the newest change back; both ask."""

    BINDINGS = bindings("hyperparameters")
    places = ("hyperparameters",)

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(context, name)
        self._list = HyperparameterList()

    def body(self) -> ComposeResult:
        """The values, what was changed, and where there is room the course of the one below the cursor."""
        yield self._list
        yield ChangesList()
        yield HyperparameterChart(self._list)

    def action_open(self) -> None:
        """Ask for another value of the one below the cursor."""
        behavior, entry = self.context.controls.selected, self._list.chosen()
        old = behavior.hyperparameters.get(entry.key) if behavior is not None and entry is not None else None
        if behavior is None or entry is None or old is None:
            self.say("change: no hyperparameter is selected")
        elif self._may(behavior, entry.key):
            name, allowed = entry.key, behavior.ranges.get(entry.key, Range())
            title = f"{safe_text(name)} of {safe_text(behavior.name)}{', ' if allowed.words else ''}{allowed.words}"
            prompt = PromptScreen(title, lambda text: verdict(text, old, allowed), figure(old))
            self.open_dialog(prompt, lambda text: self._confirm(behavior, name, new_value(text, old)))

    def action_undo(self) -> None:
        """Ask, and then give the hyperparameter that was changed last its old value."""
        behavior = self.context.controls.selected
        change = newest_standing(change for _, change in behavior.changes) if behavior is not None else None
        if behavior is None:
            self.say("undo: there is no behavior yet")
        elif self.context.controls.is_changing(behavior):
            self.say("undo: the last change has not been applied yet; try again then")
        elif change is None:
            self.say(f"undo: {_why_no_change(behavior)}")
        elif self._may(behavior, change.name):
            self._confirm(behavior, change.name, change.old)

    def _may(self, behavior: BehaviorView, name: str) -> bool:
        may = self.context.controls.may(f"change {safe_text(name)} of {safe_text(behavior.name)}")
        if not may:
            self.context.redraw()
        return may

    def _confirm(self, behavior: BehaviorView, name: str, new: float) -> None:
        command = SetHyperparameter(behavior.name, name, new)
        dialog = ConfirmScreen(
            f"Change {safe_text(name)} of {safe_text(behavior.name)}?",
            consequences(behavior, name, new),
            yes="change it",
        )
        self.open_dialog(
            dialog, lambda is_yes: self._ask_again(behavior, command) if is_yes else self._say_unchanged(behavior, name)
        )

    def _ask_again(self, behavior: BehaviorView, command: SetHyperparameter) -> None:
        """Change it; by more than FAR times, most likely a slip of the hand, after another question."""
        name, old = safe_text(command.name), behavior.hyperparameters.get(command.name, math.nan)
        factor = abs(command.value / old) if old else math.nan
        if not (factor > FAR or 0 < factor < 1 / FAR):
            self.context.controls.request(command)
            return
        words = [f"That is {factor:.3g} times what it is. A change this large may ruin training."]
        dialog = ConfirmScreen(f"Change {name} from {figure(old)} to {figure(command.value)}?", words, yes="do it")
        request = self.context.controls.request
        self.open_dialog(
            dialog, lambda is_yes: request(command) if is_yes else self._say_unchanged(behavior, command.name)
        )

    def _say_unchanged(self, behavior: BehaviorView, name: str) -> None:
        self.say(f"{safe_text(name)} stays {figure(behavior.hyperparameters.get(name, math.nan))}")


def _why_no_change(behavior: BehaviorView) -> str:
    if behavior.changes:
        return f"every change of {safe_text(behavior.name)} has been undone already"
    return f"no hyperparameter of {safe_text(behavior.name)} has been changed"


def consequences(behavior: BehaviorView, name: str, new: float) -> list[str]:
    """What the change does, a paragraph each."""
    old, moved = behavior.hyperparameters.get(name, math.nan), _scheduled(name, behavior)
    rows = [f"{safe_text(name)} {figure(old)} -> {figure(new)}, applies from the next update."]
    if moved is not None and not math.isclose(moved, old, rel_tol=1e-3):
        rows.append(f"The schedule has moved it to {moved:.4g}; it continues from the new value, at the same point.")
    rows.append("It is saved in checkpoints; z undoes it.")
    return rows


def _scheduled(name: str, behavior: BehaviorView) -> float | None:
    """What the last summary has for the value; None while it may still be of values before the newest change.

    A summary is a mean, so the first one after a change is of both.
    """
    changed_at = max((change.step for _, change in behavior.changes if change.name == name), default=None)
    history = behavior.histories.get(metric_of(name), History())
    if changed_at is not None and len(history) - bisect_right(history.steps, changed_at) < 2:
        return None
    return moved_to(name, behavior)


def verdict(text: str, old: float, allowed: Range) -> Verdict:
    """What entering that text would do."""
    try:
        new = new_value(text, old)
    except ValueError as error:
        return Verdict(str(error), is_good=False)
    if not allowed.holds(new):
        return Verdict(f"must be {allowed.words}, got {figure(new)}", is_good=False)
    return Verdict(f"{figure(old)} -> {figure(new)}, from the next update on")


def new_value(text: str, old: float) -> float:
    """The number in `text`: 3e-4, or *0.5 and /2 of the old one. Raises ValueError with a sentence."""
    found = re.fullmatch(r"\s*([*/]?)\s*(\S+)\s*", text)
    try:
        number = float(found[2]) if found else math.nan
    except ValueError:
        number = math.nan
    if found is None or not math.isfinite(number) or (found[1] == "/" and number == 0):
        raise ValueError("type a number, such as 0.0003 or 3e-4, or *0.5 or /2 to scale it")
    new = {"": number, "*": old * number, "/": old / (number or 1.0)}[found[1]]
    if not math.isfinite(new):
        raise ValueError("that number is too large")
    if new == old:
        raise ValueError(f"it is {figure(old)} now; type another number, or *0.5 or /2 of it")
    return new


def newest_standing(changes: Iterable[HyperparameterChanged]) -> HyperparameterChanged | None:
    """The newest change that no later one has taken back."""
    standing: list[HyperparameterChanged] = []
    for change in changes:
        last = standing[-1] if standing else None
        if last is not None and (change.name, change.old, change.new) == (last.name, last.new, last.old):
            standing.pop()
        else:
            standing.append(change)
    return standing[-1] if standing else None
