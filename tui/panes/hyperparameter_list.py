"""What may be changed of the selected behavior while it trains, and what was."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.messages import HyperparameterChanged
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.drawing.text import count, duration, left, num_cells, right, time_of_day
from rl_tui.tui.panes.base import BEAT, Frame
from rl_tui.tui.panes.list import Entry, ListPane, same

NAME_WIDTH, WIDEST_NAME = 22, 40
VALUE_WIDTH = 12
OF_SIGNALS = "reward_signals."  # what names of reward signals' numbers begin with


class HyperparameterList(ListPane):
    """One line each, in the order of the trainer. An entry's key is the name."""

    topic = "hyperparameters"
    seconds = BEAT  # the age of a change shows seconds

    def inputs(self, frame: Frame) -> object:
        """The values, too."""
        values = dict(frame.behavior.hyperparameters) if frame.behavior else None
        return super().inputs(frame), values

    def heading(self, frame: Frame) -> str:
        """Whose they are."""
        return f"Hyperparameters of {safe_text(frame.behavior.name) if frame.behavior else 'no behavior yet'}"

    def header(self, frame: Frame, width: int) -> Line:
        """The columns of `_value_row`."""
        words = f"{'name':<{_name_width(frame)}}{'value':>{VALUE_WIDTH}}{'last summary':>{VALUE_WIDTH + 2}}   changed"
        return line(" " * self.cursor_width, Span(words, "dim"))

    def empty(self, frame: Frame) -> str:
        """Why there are none."""
        if frame.behavior is None or frame.behavior.state == "starting":
            return "available once training starts"
        return "no hyperparameter of this behavior can be changed now"

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """One for each that may be changed."""
        behavior = frame.behavior
        if behavior is None:
            return []
        newest = {change.name: (at, change) for at, change in behavior.changes}
        name_width = _name_width(frame)
        return [
            Entry(
                name,
                f"{safe_text(name)} {figure(value)}",
                same(
                    _value_row(
                        left(label_of(name), name_width), value, moved_to(name, behavior), newest.get(name), frame.time
                    )
                ),
            )
            for name, value in behavior.hyperparameters.items()
        ]


class ChangesList(ListPane):
    """What was changed while this behavior trained, newest first."""

    topic = "changes"

    def inputs(self, frame: Frame) -> object:
        """The changes, too."""
        return super().inputs(frame), len(frame.behavior.changes) if frame.behavior else None

    def heading(self, frame: Frame) -> str:
        """Its name."""
        return "Changes"

    def empty(self, frame: Frame) -> str:
        """None."""
        return "none in this run"

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """One for each."""
        changes = list(enumerate(frame.behavior.changes if frame.behavior is not None else ()))
        return [_change_entry(number, at, change) for number, (at, change) in reversed(changes)]


def figure(value: float) -> str:
    """A hyperparameter in as many digits as people write: 0.0003, 0.995, 3e-05."""
    return f"{value:.6g}"


def metric_of(name: str) -> str:
    """The metric that has the value as a schedule moved it, if any has: `Policy/Learning Rate` for `learning_rate`."""
    return f"Policy/{name.replace('_', ' ').title()}"


def moved_to(name: str, behavior: BehaviorView) -> float | None:
    """The value in the last summary; None if no metric has it."""
    return behavior.metrics.get(metric_of(name))


def label_of(name: str) -> str:
    """The name in a list: `curiosity.learning_rate` for `reward_signals.curiosity.learning_rate`."""
    return safe_text(name).removeprefix(OF_SIGNALS)


def _name_width(frame: Frame) -> int:
    """As wide as the longest name, within limits, and a space."""
    names = frame.behavior.hyperparameters if frame.behavior is not None else ()
    return min(WIDEST_NAME, max([NAME_WIDTH, *(num_cells(label_of(name)) + 1 for name in names)]))


def _value_row(
    name: str, value: float, moved: float | None, changed: tuple[float, HyperparameterChanged] | None, now: float
) -> Line:  # fmt: skip
    changed_text = ""
    if changed is not None:
        at, change = changed
        changed_text = f"{figure(change.old)} -> {figure(change.new)}, {duration(now - at)} ago"
    return line(
        name,
        Span(right(figure(value), VALUE_WIDTH), "strong"),
        Span(right("-" if moved is None else f"{moved:.4g}", VALUE_WIDTH + 2), "dim"),
        Span(f"   {changed_text}", "dim"),
    )


def _change_entry(number: int, at: float, change: HyperparameterChanged) -> Entry:
    change_text = f"{label_of(change.name)} {figure(change.old)} -> {figure(change.new)}"
    text = f"{time_of_day(at)}  {change_text}  at step {count(change.step)}"
    return Entry(str(number), text, same(line(text)))
