"""Everything known about one behavior, to read."""

from __future__ import annotations

from textual import events

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.drawing.text import count, duration, fit_path, left, number, percent, right, time_of_day, wrapped
from rl_tui.tui.keys.keymap import Place, bindings
from rl_tui.tui.panes.base import BEAT, Frame, Pane
from rl_tui.tui.panes.behaviors import awaited_words, state_sign
from rl_tui.tui.panes.checkpoint_list import good_checkpoint
from rl_tui.tui.panes.detail import (
    NAME_WIDTH,
    VALUE_WIDTH,
    course_lines,
    environment_line,
    heading_of,
    metric_pairs,
    pair_lines,
    setup_pairs,
    time_lines,
    warnings_of,
)
from rl_tui.tui.panes.environments import awaited_for, awaited_of_user, num_restarts, restarts_of, standing_lines
from rl_tui.tui.panes.histogram import returns_lines
from rl_tui.tui.panes.hyperparameter_list import label_of, moved_to
from rl_tui.tui.panes.reward_streams import stream_lines

LONGEST_NAME = 17
LOW = 14  # rows below which no row is left blank
MOST_NOTES = MOST_CHANGES = 20  # the newest; the log has them all


class BehaviorPage(Pane):
    """Runs in the app's thread. One section after the other, the most urgent first; keys and the wheel scroll it.

    lists_returns: whether the distribution of the returns is among them.
    """

    can_focus = True
    BINDINGS = bindings("list")
    places: tuple[Place, ...] = ("list",)
    topic = "figures"
    seconds = BEAT

    def __init__(self) -> None:
        super().__init__()
        self._top = self._num_lines = self._num_visible = 0
        self.lists_returns = True

    def inputs(self, frame: Frame) -> object:
        """Which behavior, how much is known of it, and how far the page is scrolled."""
        one, view = frame.behavior, frame.view
        if one is None:
            return self._top, len(view.failures), awaited_of_user(view)
        happened = len(one.lessons), len(one.changes), len(one.exports), len(one.evaluations)
        environment = awaited_for(one, view), len(restarts_of(one, view)), num_restarts(one, view)
        known = len(one.metrics), happened, one.num_parameters, environment
        return self._top, self.lists_returns, one.name, one.reason, known, tuple(view.warnings), len(view.failures)

    def titled(self, frame: Frame) -> str:
        """The heading, and which lines are visible if not all are."""
        heading = self.heading(frame)
        if self._num_lines <= self._num_visible:
            return heading
        last = min(self._top + self._num_visible, self._num_lines)
        return f"{heading} {frame.glyphs.dot} lines {self._top + 1}-{last} of {self._num_lines}"

    def wanted_height(self, frame: Frame, width: int) -> int:
        """Every line."""
        return max(1, len(self.text(frame, width)))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The part that it is scrolled to."""
        text = self.text(frame, width)
        self._num_lines, self._num_visible = len(text), height
        self._top = max(0, min(self._top, len(text) - height))
        return text[self._top : self._top + height]

    def action_cursor(self, by: int) -> None:
        """Scroll by that many lines; where all are visible, an arrow selects another behavior, as on other screens."""
        if abs(by) == 1 and self._num_lines <= self._num_visible:
            self.call_later(self.run_action, f"screen.move({by})")
            return
        self._top = max(0, min(self._top + by, self._num_lines - self._num_visible))
        self.call_later(self.run_action, "screen.redraw")

    def action_page(self, by: int) -> None:
        """Scroll by pages."""
        self.action_cursor(by * max(1, self._num_visible - 1))

    def action_cursor_end(self, by: int) -> None:
        """Scroll to the first or the last line."""
        self.action_cursor(by * self._num_lines)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Three lines up."""
        self.action_cursor(-3)
        event.stop()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Three lines down."""
        self.action_cursor(3)
        event.stop()

    def heading(self, frame: Frame) -> str:
        """Which behavior."""
        return heading_of(frame)

    def text(self, frame: Frame, width: int) -> list[Line]:
        """Every section that has any lines, each at most `width` cells wide."""
        behavior = frame.behavior
        if behavior is None:
            awaited = f": {awaited_of_user(frame.view)}" if awaited_of_user(frame.view) else ""
            words = wrapped(f"the run has no behavior yet{safe_text(awaited)}", max(2, width - 2))
            return _failures(frame, width) or [line(Span(f" {row}", "dim")) for row in words]
        key = frame.keymap.of_id("copy").shown
        sections = {
            "": [_standing(behavior, frame), *standing_lines(behavior, frame, width)],
            f"Why it ended ({key} copies it)": _failures(frame, width),
            "Warnings": _warnings(behavior, frame, width),
            "Progress": course_lines(behavior, frame, width),
            "Where the time goes": time_lines(behavior.time_split, frame, width),
            "Reward streams": stream_lines(behavior.metrics, frame.glyphs, NAME_WIDTH, VALUE_WIDTH),
            "Latest summary": pair_lines(metric_pairs(behavior), width),
            "Hyperparameters": _hyperparameters(behavior, frame),
            "Returns in the last summary": self._returns(behavior, frame, width),
            "Manual changes": _changes(behavior, width),
            "Lessons": _lessons(behavior, width),
            "Notes": _notes(behavior, frame, width),
            "Exports": _exports(behavior, frame, width),
            "Setup": [*pair_lines(setup_pairs(behavior), width), *environment_line(behavior, frame, width)],
        }
        is_low = self.size.height < LOW
        rows: list[Line] = []
        for title, lines in sections.items():
            if lines:
                rows += [line(Span(f" {title}", "strong"))] if title else []
                rows += lines if is_low else [*lines, line()]
        return rows if is_low else rows[:-1]

    def _returns(self, behavior: BehaviorView, frame: Frame, width: int) -> list[Line]:
        return returns_lines(behavior.histogram, frame, width) if self.lists_returns else []


def _standing(behavior: BehaviorView, frame: Frame) -> Line:
    """State, step, and how long still."""
    steps = f"  {count(behavior.step)} steps"
    if behavior.max_steps:
        done = percent(behavior.step, behavior.max_steps)
        steps = f"  {count(behavior.step)}/{count(behavior.max_steps)}  {done}%"
    remaining = behavior.remaining_seconds
    eta = f"  ETA {duration(remaining)}" if remaining is not None else ""
    awaited = awaited_words(behavior, frame)
    silent = Span(f"  {awaited}" if awaited else "", "warning" if behavior.waits_for == "environment" else "wait")
    return line(" ", state_sign(behavior, frame), steps, Span(eta, "dim"), silent)


def failure_texts(behavior: BehaviorView | None, view: RunView) -> list[str]:
    """Why it failed, or the run before it had a behavior: in full, with the traceback where one is known."""
    name = behavior.name if behavior is not None else None
    failures = [failure for failure in view.failures if name is None or name in failure.behaviors]
    texts = [f"{time_of_day(failure.time)} {failure.reason}\n{failure.detail}".rstrip() for failure in failures]
    if behavior is not None and behavior.state == "failed" and not any(behavior.reason in text for text in texts):
        texts.append(behavior.reason)
    return [safe_text(text, multiline=True).expandtabs(4) for text in texts]


def _failures(frame: Frame, width: int) -> list[Line]:
    good = good_checkpoint(frame.behavior) if frame.behavior is not None else None
    key = frame.keymap.of_id("roll-back").shown
    offer = [] if good is None else [line(Span(f" {key} rolls it back to step {count(good[1].step)}", "accent"))]
    return offer + [
        line(Span(f" {row}", "bad" if at == 0 else "text"))
        for text in failure_texts(frame.behavior, frame.view)
        for at, row in enumerate(wrapped(text, max(2, width - 2)))
    ]


def _warnings(behavior: BehaviorView, frame: Frame, width: int) -> list[Line]:
    rows: list[Line] = []
    for since, message, advice in warnings_of(behavior, frame.view):
        text = f"{frame.glyphs.warning} {message}, for {duration(frame.time - since)}"
        rows += [line(Span(f" {row}", "warning")) for row in wrapped(text, max(2, width - 2))]
        rows += [line(f"   {row}") for row in wrapped(f"try: {advice}", max(2, width - 4))] if advice else []
    return rows


def _hyperparameters(behavior: BehaviorView, frame: Frame) -> list[Line]:
    """Those that may be changed; where a schedule has moved one, where it began."""
    rows = []
    for name, value in behavior.hyperparameters.items():
        moved = moved_to(name, behavior)
        now = value if moved is None else moved
        exact = f"{now:.4g}"
        began = f"  from {value:.4g}" if exact != f"{value:.4g}" else ""
        title = left(label_of(name), LONGEST_NAME, frame.glyphs.ellipsis)
        rows.append(
            line(
                Span(f" {title}", "dim"),
                right(exact if len(exact) <= VALUE_WIDTH else number(now), VALUE_WIDTH),
                Span(began, "dim"),
            )
        )
    return rows


def _changes(behavior: BehaviorView, width: int) -> list[Line]:
    texts = [
        f"{time_of_day(at)} {safe_text(change.name)} {change.old:.4g} -> {change.new:.4g} at step {count(change.step)}"
        for at, change in reversed(behavior.changes[-MOST_CHANGES:])
    ]
    texts += [
        f"{time_of_day(at)} rolled back from step {count(back.from_step)} to {count(back.step)}"
        for at, back in reversed(behavior.rollbacks[-MOST_CHANGES:])
    ]
    return [line(f" {row}") for text in texts for row in wrapped(text, max(2, width - 2))]


def _lessons(behavior: BehaviorView, width: int) -> list[Line]:
    texts = []
    for at, lesson in reversed(behavior.lessons):
        name = f' "{safe_text(lesson.name)}"' if lesson.name else ""
        where = f"{safe_text(lesson.parameter)} {lesson.lesson}/{lesson.num_lessons}{name}"
        texts.append(f"{time_of_day(at)} {where} at step {count(lesson.step)}")
    return [line(f" {row}") for text in texts for row in wrapped(text, max(2, width - 2))]


def _notes(behavior: BehaviorView, frame: Frame, width: int) -> list[Line]:
    texts = [
        f"{time_of_day(note.time)} at step {count(note.steps.get(behavior.name, 0))}: {safe_text(note.text)}"
        for note in reversed(frame.view.notes[-MOST_NOTES:])
        if note.behavior in (None, behavior.name)
    ]
    return [line(f" {row}") for text in texts for row in wrapped(text, max(2, width - 2))]


def _exports(behavior: BehaviorView, frame: Frame, width: int) -> list[Line]:
    rows = []
    for at, export in reversed(behavior.exports[-3:]):
        head = f" {time_of_day(at)} step {right(count(export.step), 5)}  "
        path = fit_path(safe_text(export.path), max(NAME_WIDTH, width - len(head) - 1), frame.glyphs.ellipsis)
        rows.append(line(Span(head, "dim"), path))
    return rows
