"""What is said of an environment parameter: its lesson, its value, and how far it is to the next lesson."""

from __future__ import annotations

from dataclasses import dataclass

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.messages import LessonChanged, ParameterStatus
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.charts.percent import bar
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, line
from rl_tui.tui.drawing.text import number, right

KINDS = {"number": "constant", "sampler": "sampler"}  # in the place of a lesson


@dataclass(frozen=True, slots=True)
class Condition:
    """One of those under which a lesson ends: what is compared, in words, and how much of it is there, from 0 to 1."""

    words: str
    share: float


def lesson_name(status: ParameterStatus) -> str:
    """Number and name of its lesson, or why it has none."""
    if status.kind != "lessons":
        return KINDS[status.kind]
    name = f' "{safe_text(status.name)}"' if status.name else ""
    return f"{status.lesson}/{status.num_lessons}{name}"


def is_last(status: ParameterStatus) -> bool:
    """Whether it is at the last of its lessons."""
    return status.kind == "lessons" and status.lesson == status.num_lessons


def stays(status: ParameterStatus) -> bool:
    """Whether another lesson follows, but never by itself: the run only plays."""
    return status.kind == "lessons" and not status.measure and not is_last(status)


def conditions(status: ParameterStatus) -> list[Condition]:
    """Those that its lesson must meet, first the measure; none without a next lesson."""
    if not status.measure:
        return []
    if status.current is None:
        conditions = [Condition("no episode yet", 0.0)]
    elif status.measure == "progress":
        words = f"progress {100 * status.current:.3g}% of {100 * status.threshold:.3g}%"
        conditions = [Condition(words, share_of(status.current, status.threshold))]
    elif status.measure == "Elo":
        words = f"Elo {status.current:,.0f} of {status.threshold:,.0f}"
        conditions = [Condition(words, share_of(status.current, status.threshold))]
    else:
        words = f"return {number(status.current)} of {number(status.threshold)}"
        conditions = [Condition(words, share_of(status.current, status.threshold))]
    if status.min_lesson_length > 0:
        words = f"episodes {status.episodes} of {status.min_lesson_length}"
        conditions.append(Condition(words, min(1.0, status.episodes / status.min_lesson_length)))
    return conditions


def share_of(current: float, threshold: float) -> float:
    """How much of the threshold is reached, from 0 to 1; of a negative one, how close the value has come to it."""
    if current > threshold:
        return 1.0
    if threshold > 0:
        return max(0.0, current / threshold)
    return threshold / current if current < 0 else 0.0  # NaN has reached nothing


def missing(status: ParameterStatus) -> Condition | None:
    """The condition that is met least; None without a next lesson."""
    return min(conditions(status), key=lambda each: each.share, default=None)


def condition_line(condition: Condition, words_width: int, bar_width: int, glyphs: Glyphs) -> Line:
    """The words, a bar, percent; without a bar where there is no room for one."""
    tone: Tone = "good" if condition.share >= 1 else "accent"
    bars = bar(condition.share, bar_width, glyphs, tone) if bar_width >= 4 else ()
    percent = right(f"{int(100 * condition.share)}%", 5)
    return line(condition.words.ljust(words_width), *bars, Span(percent, "text" if bars else "dim"))


def deciding_behavior(parameter: str, status: ParameterStatus, view: RunView) -> BehaviorView | None:
    """Whose learning ends its lessons; None where no lesson ends, or the run has no such behavior."""
    if status.behavior:
        return view.behaviors.get(status.behavior)
    reached = lessons_of(parameter, view)
    return view.behaviors.get(reached[-1][1].behavior) if reached else None


def lessons_of(parameter: str, view: RunView) -> list[tuple[float, LessonChanged]]:
    """When it has reached which lesson, oldest first."""
    known = (each for one in view.behaviors.values() for each in one.lessons if each[1].behavior == one.name)
    reached = [each for each in known if each[1].parameter == parameter]
    return sorted(reached, key=lambda each: each[0])


def lessons_decided_by(behavior: BehaviorView, view: RunView) -> list[tuple[str, ParameterStatus]]:
    """Each parameter whose lessons end by what that behavior learns.

    Before the first report of parameters, as far as lessons were reached.
    """
    newest: dict[str, LessonChanged] = {event.parameter: event for _, event in behavior.lessons}
    found = []
    for name in {**newest, **view.parameters}:
        status = view.parameters.get(name) or _status_after(newest[name])
        if status.kind == "lessons" and deciding_behavior(name, status, view) is behavior:
            found.append((name, status))
    return found


def _status_after(event: LessonChanged) -> ParameterStatus:
    return ParameterStatus("lessons", "", event.lesson, event.num_lessons, event.name)
