"""The environment parameters of the run: lessons, which are also changed by hand, samplers and constants."""

from __future__ import annotations

from textual.app import ComposeResult

from rl_tui.engine.session.messages import ParameterStatus, SetLesson
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.lesson_chart import LessonChart
from rl_tui.tui.panes.lesson_list import LessonDetails, LessonList, ending
from rl_tui.tui.panes.lesson_words import lessons_of, stays
from rl_tui.tui.screens.base import RunScreen
from rl_tui.tui.screens.confirm import ConfirmScreen
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.prompt import PromptScreen, Verdict


class LessonsScreen(RunScreen):
    """+ and - move the parameter below the cursor by a lesson, enter to any of them; all ask."""

    BINDINGS = bindings("lessons")
    places = ("lessons",)

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(context, name)
        self._list = LessonList()

    def body(self) -> ComposeResult:
        """The list, all about one of them, and the curve that decides on it."""
        yield self._list
        yield LessonDetails(self._list)
        yield LessonChart(self._list)

    def action_open(self) -> None:
        """Ask for a lesson."""
        found = self._movable()
        if found is not None:
            name, status = found
            title = f"Lesson of {safe_text(name)}, from 1 to {status.num_lessons}"
            prompt = PromptScreen(title, lambda text: verdict(text, status), f"{status.lesson}")
            self.open_dialog(prompt, lambda text: self._confirm(name, status, int(text)))

    def action_change_lesson(self, by: int) -> None:
        """Ask, and then go to the next lesson, or back to the one before."""
        found = self._movable()
        if found is None:
            return
        name, status = found
        if 1 <= status.lesson + by <= status.num_lessons:
            self._confirm(name, status, status.lesson + by)
        else:
            which = "last" if by > 0 else "first"
            self.say(f"lesson: {safe_text(name)} is at its {which} lesson, {status.lesson} of {status.num_lessons}")

    def _movable(self) -> tuple[str, ParameterStatus] | None:
        """The parameter below the cursor, if it can be moved to another lesson; says why not."""
        entry = self._list.chosen()
        status = self.context.view.parameters.get(entry.key) if entry is not None else None
        if entry is None or status is None:
            self.say(f"lesson: {self._why_none()}")
        elif status.kind != "lessons":
            kind = "constant" if status.kind == "number" else "drawn by a sampler"
            self.say(f"lesson: {safe_text(entry.key)} is {kind}; it has no lessons")
        elif not self.context.controls.may(f"lesson of {safe_text(entry.key)}"):
            self.context.redraw()
        else:
            return entry.key, status
        return None

    def _why_none(self) -> str:
        has_any = bool(self.context.view.parameters)
        return "no parameter matches the filter; esc shows all" if has_any else "the run has no environment parameters"

    def _confirm(self, name: str, status: ParameterStatus, lesson: int) -> None:
        command, view = SetLesson(name, lesson), self.context.view
        question = f"Change {safe_text(name)} to lesson {lesson} of {status.num_lessons}?"
        dialog = ConfirmScreen(question, consequences(name, status, lesson, view), yes="change it")
        self.open_dialog(dialog, lambda is_yes: self.context.controls.request(command) if is_yes else None)


def consequences(name: str, status: ParameterStatus, lesson: int, view: RunView) -> list[str]:
    """What the change does, a paragraph each."""
    now = f' "{safe_text(status.name)}"' if status.name else ""
    known = {event.lesson: event.name for _, event in lessons_of(name, view)}
    then = f' "{safe_text(known[lesson])}"' if known.get(lesson) else ""
    rows = [f"From lesson {status.lesson}{now} to lesson {lesson}{then}, from each agent's next episode on."]
    if status.require_reset:
        rows.append("All environments are reset; episodes that have not ended are truncated.")
    if lesson < status.lesson and not stays(status):
        rows.append("It goes forward again by itself whenever a lesson's condition is met.")
    elif status.measure:
        rows.append(f"By itself it would change {ending(status).partition(';')[0]}.")
    return rows


def verdict(text: str, status: ParameterStatus) -> Verdict:
    """What entering that text would do."""
    if not text.isdecimal() or not 1 <= int(text) <= status.num_lessons:
        return Verdict(f"must be a lesson from 1 to {status.num_lessons}", is_good=False)
    if int(text) == status.lesson:
        return Verdict(f"it is at lesson {text} now", is_good=False)
    return Verdict(f"lesson {status.lesson} -> {text}")
