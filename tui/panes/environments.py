"""Environments in words: what they wait for, and which of their workers are restarting."""

from __future__ import annotations

import re

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.environment_view import WorkersView, bare_reason, worker_word
from rl_tui.engine.session.messages import EnvironmentRestarting
from rl_tui.engine.session.text import one_line, safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.lines import Line, Span, Tone, line, wrap
from rl_tui.tui.drawing.text import duration, fit
from rl_tui.tui.panes.base import Frame, Pane

EDITOR = "unity:editor"
NOTICE_WIDTH = 72  # cells of its longest line: longer ones are hard to read
NOTICE_LINES = 12  # rows below which none is left blank
SHORT_WAIT = 11  # cells of what the user has to do, where there is little room
EDITOR_HINTS = (
    "There is no hurry: this waits as long as it takes",
    "To train in another environment, name it: --env gymnasium:CartPole-v1, or --env PATH for a player that was built",
)
_CLAUSE_ENDS = re.compile(r"; |\. ")


class NoticePane(Pane):
    """In the place of the other panes while the user has to do something before any behavior can train."""

    def heading(self, frame: Frame) -> str:
        """Which environment."""
        waiting = [name for name, environment in frame.view.environments.items() if environment.awaited]
        return f"Waiting for {safe_text(waiting[0])}" if waiting else "Waiting"

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """What to do, a little above the middle; then what else is worth knowing."""
        return notice_lines(frame, width, height)


def notice_lines(frame: Frame, width: int, height: int) -> list[Line]:
    """The first clause of what is awaited as a headline, and below it the others, each in lines of its own."""
    first, *others = clauses(awaited_of_user(frame.view))
    editor = frame.view.environments.get(EDITOR)
    others += EDITOR_HINTS if editor is not None and editor.awaited else ()
    room, is_low = min(width - 4, NOTICE_WIDTH), height < NOTICE_LINES
    rows = [Span(row, "strong") for row in wrap(f"{frame.glyphs.waiting} {first}", room, 3)]
    for clause in others:
        rows += [] if is_low else [Span("", "text")]
        rows += [Span(row, "dim") for row in wrap(clause, room, 3)]
    widest = max(len(row.text) for row in rows)
    indent, top = " " * max(1, (width - widest) // 2), max(0, (height - len(rows)) // 3)
    return [line()] * top + [line(indent, row) for row in rows]


def clauses(text: str) -> list[str]:
    """The text in its parts, each with a capital letter; one empty part where there is none."""
    return [part[:1].upper() + part[1:] for part in _CLAUSE_ENDS.split(one_line(safe_text(text, multiline=True)))]


def awaited_of_user(view: RunView) -> str:
    """What the user has to do before an environment goes on; "" for nothing."""
    if view.is_over:
        return ""
    return next((environment.awaited for environment in view.environments.values() if environment.awaited), "")


def has_only_notice(view: RunView) -> bool:
    """Whether an environment waits for the user, and no behavior has begun to train."""
    return bool(awaited_of_user(view)) and not any(behavior.has_started for behavior in view.behaviors.values())


def awaited_for(behavior: BehaviorView, view: RunView) -> str:
    """What the user has to do before this behavior's environment goes on; "" for nothing."""
    environment = view.environments.get(behavior.environment)
    return "" if environment is None or view.is_over else environment.awaited


def restarts_of(behavior: BehaviorView, view: RunView) -> list[tuple[float, EnvironmentRestarting]]:
    """The workers of its environment that are restarting, since when and why, by number."""
    environment = view.environments.get(behavior.environment)
    if environment is None or view.is_over:
        return []
    return [at for _, at in sorted(environment.restarting.items()) if behavior.name in at[1].behaviors]


def workers_of(behavior: BehaviorView, view: RunView) -> WorkersView | None:
    """The worker processes of its environment; None where there are none."""
    return next((each for each in view.workers if behavior.name in each.behaviors), None)


def restarting_in(workers: WorkersView, view: RunView) -> dict[int, tuple[float, EnvironmentRestarting]]:
    """Those of these workers that are restarting, since when and why, by number."""
    environment = view.environments.get(workers.environment)
    if environment is None or view.is_over:
        return {}
    found = environment.restarting.items()
    return {number: at for number, at in found if at[1].behaviors[:1] == workers.behaviors[:1]}


def standing_lines(behavior: BehaviorView, frame: Frame, width: int) -> list[Line]:
    """What its environment waits for, and each of its workers that is restarting, at most two lines each."""
    rows: list[Line] = []
    if awaited := awaited_for(behavior, frame.view):
        rows += _signed(frame.glyphs.waiting, clauses(awaited)[0], "wait", width)
    for since, event in restarts_of(behavior, frame.view):
        who = f"{worker_word(event.environment)} {event.worker} is restarting"
        text = f"{who} for {duration(max(0.0, frame.time - since))}: {bare_reason(event)}"
        rows += _signed(frame.glyphs.waiting, text, "wait", width)
    return rows


def _signed(sign: str, text: str, tone: Tone, width: int) -> list[Line]:
    first, *rest = wrap(text, width - 4, 2)
    return [line(Span(f" {sign} {first}", tone)), *(line(Span(f"   {row}", tone)) for row in rest)]


def restarting_forms(view: RunView) -> tuple[str, ...]:
    """All workers that are restarting in words, and in fewer; empty for none."""
    restarting = [event for each in view.environments.values() for _, event in each.restarting.values()]
    if not restarting or view.is_over:
        return ()
    word = worker_word(restarting[0].environment)
    if len(restarting) == 1:
        return f"{word} {restarting[0].worker} is restarting", f"{word} {restarting[0].worker} restarts"
    return f"{len(restarting)} {word}s are restarting", f"{len(restarting)} {word}s restart"


def waiting_forms(view: RunView) -> tuple[str, ...]:
    """What the user has to do, in words and in fewer; empty for nothing."""
    if not (awaited := awaited_of_user(view)):
        return ()
    whole = clauses(awaited)[0]
    return whole, whole.partition(",")[0], fit(whole, SHORT_WAIT)


def num_restarts(behavior: BehaviorView, view: RunView) -> int:
    """Of its environment's workers, so far."""
    environment = view.environments.get(behavior.environment)
    return 0 if environment is None else environment.num_restarts
