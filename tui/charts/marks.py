"""What happened to a behavior, as marks on the x axis."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import BehaviorView, Note
from rl_tui.tui.charts.curve import XAxis
from rl_tui.tui.charts.figure import Mark
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.text import number, round_count


def marks(
    behavior: BehaviorView, notes: Sequence[Note], x_axis: XAxis, origin: float, glyphs: Glyphs
) -> tuple[Mark, ...]:
    """The behavior's checkpoints, lessons, rollbacks and changes, and the run's notes; what is rarer lies above."""

    def place(step: float, time: float) -> float:
        return step if x_axis == "steps" else time - origin if x_axis == "relative" else time

    best = [each for each in behavior.checkpoints if each[1] is behavior.best_checkpoint]
    saved = [Mark(place(event.step, at), glyphs.saved, "dim", "checkpoint")
             for at, event in behavior.checkpoints if (at, event) not in best]  # fmt: skip
    saved += [
        Mark(place(event.step, at), glyphs.best, "warning", "best", f"best checkpoint {number(event.mean_return)}")
        for at, event in best
    ]
    lessons = [
        Mark(place(event.step, at), glyphs.lesson, "good", "lesson",
             f"{safe_text(event.parameter)} lesson {event.lesson} {safe_text(event.name)}".rstrip())
        for at, event in behavior.lessons
    ]  # fmt: skip
    changes = [
        Mark(place(event.step, at), glyphs.changed, "accent", "change",
             f"{safe_text(event.name)} {number(event.old)} to {number(event.new)}")
        for at, event in behavior.changes
    ]  # fmt: skip
    rollbacks = [Mark(place(event.step, at), glyphs.rolled_back, "bad", "rollback",
                      f"rolled back from {round_count(event.from_step)}")
                 for at, event in behavior.rollbacks]  # fmt: skip
    written = [
        Mark(place(note.steps.get(behavior.name, 0), note.time), glyphs.note, "strong", "note", safe_text(note.text))
        for note in notes
        if note.behavior in (None, behavior.name)
    ]
    return (*saved, *lessons, *changes, *rollbacks, *written)
