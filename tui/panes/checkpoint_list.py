"""Every checkpoint of the selected behavior with its figures, and all about the one below the cursor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.messages import CheckpointSaved
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.lines import Line, Span, labeled, line
from rl_tui.tui.drawing.text import count, duration, fit_path, left, number, right, size, time_of_day
from rl_tui.tui.panes.base import BEAT, Frame, Pane
from rl_tui.tui.panes.checkpoint_words import has_return, score_of, score_width
from rl_tui.tui.panes.list import Entry, ListPane

REASON_WIDTH = 12  # "interrupted" is the longest


class CheckpointList(ListPane):
    """Newest first; a star marks the best. An entry's key is the checkpoint's path."""

    topic = "checkpoints"
    seconds = BEAT  # their ages show seconds

    def inputs(self, frame: Frame) -> object:
        """The checkpoints, too."""
        return super().inputs(frame), [saved.path for _, saved in _checkpoints(frame)]

    def heading(self, frame: Frame) -> str:
        """Whose they are and how many."""
        name = safe_text(frame.behavior.name) if frame.behavior else "no behavior yet"
        number_of = len(_checkpoints(frame))
        return f"Checkpoints of {name}" + (f" {frame.glyphs.dot} {number_of}" if number_of else "")

    def header(self, frame: Frame, width: int) -> Line:
        """The columns of `_row`."""
        all_saved = _checkpoints(frame)
        how_good = "return" if not all_saved or any(has_return(saved) for _, saved in all_saved) else "held out"
        figures = f"{'step':>6} {how_good:>{score_width(all_saved)}}{'age':>8}{'size':>6}{'took':>7}"
        words = f"  {figures}  {'reason':<{REASON_WIDTH}}path"
        return line(" " * self.cursor_width, Span(words, "dim"))

    def empty(self, frame: Frame) -> str:
        """How to get one."""
        return "none on disk yet" if frame.refuses else "none on disk yet; c saves one now"

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """One for each that is on disk."""
        newest_first = _checkpoints(frame)[::-1]
        best = frame.behavior.best_checkpoint if frame.behavior is not None else None
        return [
            Entry(
                saved.path,
                safe_text(f"{count(saved.step)} {score_of(saved)} {saved.reason} {saved.path}"),
                partial(_row, saved, duration(frame.time - at), saved is best, frame),
            )
            for at, saved in newest_first
        ]


class CheckpointDetails(Pane):
    """All about the checkpoint that the cursor of `checkpoints` stands on."""

    seconds = BEAT

    def __init__(self, checkpoints: CheckpointList) -> None:
        super().__init__()
        self._list = checkpoints

    def inputs(self, frame: Frame) -> object:
        """Which one it is, and what is known of it."""
        behavior = frame.behavior
        return self._key(frame), (len(behavior.exports), len(behavior.checkpoints)) if behavior else None

    def heading(self, frame: Frame) -> str:
        """Its name."""
        return "Details"

    def wanted_height(self, frame: Frame, width: int) -> int:
        """All of it."""
        return max(1, len(self.lines(frame, width, 0)))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """What it is, how good, where, and what going back to it costs."""
        behavior, key = frame.behavior, self._key(frame)
        found = next(((at, saved) for at, saved in _checkpoints(frame) if saved.path == key), None)
        if behavior is None or found is None:
            return [line(Span(" no checkpoint is selected", "dim"))]
        at, saved = found
        best = ", the best" if saved is behavior.best_checkpoint else ""
        why = f"{saved.reason}{best}" + (", until the next one by the clock" if saved.reason == "clock" else "")
        rows = [
            ("saved", f"{time_of_day(at)}, {duration(frame.time - at)} ago, in {saved.seconds:.1f}s: {why}"),
            ("step", f"{saved.step:,} of {behavior.max_steps:,}" if behavior.max_steps else f"{saved.step:,}"),
            ("return" if has_return(saved) else "loss", standing(saved, behavior)),
            *([("lessons", lessons_of(saved))] if saved.lessons else []),
            ("path", safe_text(saved.path)),
            ("ONNX", export_at(saved.step, behavior)),
            ("roll back", f"{given_up(behavior, at, saved, frame.time)}; {set_aside(behavior, saved)}"),
        ]
        return [each for label, text in rows for each in labeled(label, text, width)]

    def _key(self, frame: Frame) -> str:
        entry = self._list.current(frame)
        return entry.key if entry is not None else ""


def good_checkpoint(behavior: BehaviorView) -> tuple[float, CheckpointSaved] | None:
    """The newest from before it diverged, and when it was saved; None while it has not, or without any."""
    saved = reversed(behavior.checkpoints) if behavior.can_roll_back else ()
    return next(((at, each) for at, each in saved if each.reason != "error"), None)


def standing(saved: CheckpointSaved, behavior: BehaviorView) -> str:
    """Its return, or without one its held-out loss, and how it ranks among those on disk."""
    if not has_return(saved):
        losses = [other.held_out_loss for _, other in behavior.checkpoints if other.held_out_loss is not None]
        rank = 1 + sum(other < (saved.held_out_loss or 0.0) for other in losses)
        return f"{number(saved.held_out_loss)} of what is held out, rank {rank} of {len(losses)} on disk"
    if saved.mean_return is None or not math.isfinite(saved.mean_return):
        which = "no episode of its lessons" if saved.lessons else "no episode"
        return f"none: {which} had ended" if saved.mean_return is None else str(saved.mean_return)
    known = [other for _, other in behavior.checkpoints if other.mean_return is not None]
    returns = [other.mean_return for other in known if other.lessons == saved.lessons]
    rank = 1 + sum(other is not None and other > saved.mean_return for other in returns)
    where = "on disk" if len(returns) == len(known) else "of its lessons on disk"
    return f"{number(saved.mean_return)}, rank {rank} of {len(returns)} {where}"


def lessons_of(saved: CheckpointSaved) -> str:
    """The lesson of each parameter that has some, from 1."""
    return ", ".join(f"{safe_text(name)} {lesson}" for name, lesson in saved.lessons.items())


def export_at(step: int, behavior: BehaviorView) -> str:
    """The policy of that step as ONNX, if it was exported."""
    exported = next((event for _, event in reversed(behavior.exports) if event.step == step), None)
    if exported is None:
        return "not exported at this step"
    return f"{safe_text(exported.path)} (max difference {exported.max_difference:.1g})"


def given_up(behavior: BehaviorView, at: float, saved: CheckpointSaved, now: float) -> str:
    """What going on from a checkpoint saved at time `at` would cost."""
    steps = behavior.step - saved.step
    if steps <= 0:
        return "no step is lost"
    return f"the {count(steps)} steps of the {duration(now - at)} since then are lost"


def set_aside(behavior: BehaviorView, saved: CheckpointSaved) -> str:
    """The fate of the checkpoints after it."""
    newer = [other for _, other in behavior.checkpoints if other.step > saved.step]
    if not newer:
        return "no checkpoint is newer"
    words = f"{len(newer)} newer checkpoints are set aside" if len(newer) > 1 else "the newer checkpoint is set aside"
    best = behavior.best_checkpoint
    if best is None or best not in newer:
        return words
    value = f"return {number(best.mean_return)}" if has_return(best) else f"held-out loss {number(best.held_out_loss)}"
    which = f"the best of all at step {count(best.step)}, {value}"
    return f"{words}, among them {which}" if len(newer) > 1 else f"{words}, {which}"


def _checkpoints(frame: Frame) -> list[tuple[float, CheckpointSaved]]:
    return frame.behavior.checkpoints if frame.behavior is not None else []


def _row(saved: CheckpointSaved, age: str, is_best: bool, frame: Frame, width: int) -> Line:
    glyphs = frame.glyphs
    figures = f"{right(count(saved.step), 6)} {right(score_of(saved), score_width(_checkpoints(frame)))}"
    rest = f"{right(age, 8)}{right(size(saved.size_bytes), 6)}{right(f'{saved.seconds:.1f}s', 7)}"
    reason = left("best" if is_best else saved.reason, REASON_WIDTH)
    room = width - 2 - len(figures) - len(rest) - 2 - len(reason)
    path = fit_path(safe_text(saved.path), room, glyphs.ellipsis) if room > 0 else ""
    return line(
        Span(f"{glyphs.best if is_best else ' '} ", "warning"), figures, Span(rest, "dim"), f"  {reason}",
        Span(path, "dim"),
    )  # fmt: skip
