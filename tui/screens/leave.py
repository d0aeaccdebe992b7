"""The dialog before a run is left: how, and what it costs."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from textual import events

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.messages import StopMode
from rl_tui.engine.session.states import ENDS
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.lines import Line, Span, Tone, line, state_tone, wrap
from rl_tui.tui.drawing.text import count, duration, fit, left
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.dialog import PaneDialog

ANSWER_WIDTH = 22  # cells of "checkpoint and stop" and the blanks after it
KEY_WIDTH = 7
MADE_UP = "nothing is lost in a demo"
REPEATS = "repeats within 1 s count once"

CLICKED = {"l": "l", "s": "s", "k": "k", "y": "y", "esc": "escape"}  # the answer's key as it is shown, and its name


class Leaving(Protocol):
    """Whatever can end the run."""

    stop_requested_at: float | None
    context: Context

    def stop(self, mode: StopMode) -> None:
        """Ask the run to stop and leave when it has."""

    def leave_running(self) -> None:
        """Leave, and let the run go on; or say why not."""


class LeaveScreen(PaneDialog):
    """Asks; once the stop is asked for, shows each behavior's way to it. Staying is the harmless default.

    What loses steps takes another key after another question. Where nothing may be changed, no key of the dialog stops
    the run; it says what does.
    """

    BINDINGS = bindings("leaving")

    def __init__(self, leaving: Leaving) -> None:
        self._leaving, self._leave_pane = leaving, LeavePane(leaving)
        super().__init__(self._leave_pane)

    def action_leave_running(self) -> None:
        """Leave the screen alone, unless nothing trains that could go on."""
        if can_leave(self._leaving.context, self._leaving.stop_requested_at):
            self._leaving.leave_running()

    def action_stop_with_checkpoint(self) -> None:
        """Save and stop; a second time changes nothing."""
        if self._leaving.stop_requested_at is None and not self._leaving.context.controls.refuses:
            self.show_progress()
            self._leaving.stop("checkpoint")

    def show_progress(self) -> None:
        """What was asked about stopping now is answered: not yet."""
        self._leave_pane.asks_again = False

    def action_stop_now(self) -> None:
        """Stop without saving where nothing is lost; otherwise say what is, and ask again."""
        context = self._leaving.context
        if context.controls.refuses:
            return
        if context.is_made_up or loss_of(context.view) is None:
            self._leaving.stop("now")
        else:
            self._leave_pane.asks_again = True
            context.redraw()

    def action_lose_steps(self) -> None:
        """Stop without saving, once that was asked."""
        if self._leave_pane.asks_again:
            self._leaving.stop("now")

    def action_stay(self) -> None:
        """Back to the screen before."""
        self.dismiss()


class LeavePane(Pane):
    """The choices, or the progress of stopping. asks_again: instead of both, whether steps may be lost."""

    def __init__(self, leaving: Leaving) -> None:
        super().__init__()
        self.asks_again = False
        self._leaving = leaving

    def wanted_height(self, frame: Frame, width: int) -> int:
        """All of it."""
        return len(self.lines(frame, width, 20))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The choices first; once one is made, where each behavior stands."""
        asked_at = self._leaving.stop_requested_at
        if self.asks_again:
            return last_question(frame, width, is_stopping=asked_at is not None)
        cost = MADE_UP if self._leaving.context.is_made_up else cost_of_stopping(frame.view)
        if asked_at is not None:
            return progress(frame, asked_at)
        return choices(frame, width, cost, can_leave=can_leave(self._leaving.context, asked_at))

    def on_click(self, event: events.Click) -> None:
        """A click on an answer gives it."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y >= len(self._lines):
            return
        words = "".join(span.text for span in self._lines[offset.y]).split()
        key = next((CLICKED[word] for word in words[:2] if word in CLICKED), None)
        if key is not None:
            self.app.simulate_key(key)


def can_leave(context: Context, asked_at: float | None) -> bool:
    """Whether the run can go on without this screen. asked_at: when it was asked to stop, if it was."""
    ends = context.view.is_over or asked_at is not None or context.is_made_up
    return not ends and not context.why_not_leave()


def choices(frame: Frame, width: int, cost: str, *, can_leave: bool = False) -> list[Line]:
    """What can be done and what each costs; cost: of stopping without saving."""
    leave = answer("  l", "leave it running", "rl-tui attach shows it again", width) if can_leave else []
    stay = answer(f"{frame.glyphs.marker} esc", "stay", "nothing changes", width, is_default=True)
    title = [line(Span(f"Leave? {state_of_affairs(frame.view)}", "strong")), line()]
    if frame.refuses:
        text = f"{safe_text(frame.refuses)}: only ctrl+c stops the run here, and saves; {REPEATS}."
        return [*title, *(line(row) for row in wrap(text, width, 4)), line(), *leave, *stay]
    return [
        *title,
        *leave,
        *answer("  s", "checkpoint and stop", "nothing is lost", width),
        *answer("  k", "stop now", cost, width),
        *stay,
        line(),
        line(Span(f"ctrl+c again: save and stop; {REPEATS}", "dim")),
    ]


def last_question(frame: Frame, width: int, *, is_stopping: bool) -> list[Line]:
    """What stopping now loses, and what else can be done."""
    wait = ("keep watching", "the screen closes once all is saved") if is_stopping else ("stay", "nothing changes")
    return [
        line(Span("Stop without saving?", "strong")),
        line(),
        *answer("  y", "stop now", cost_of_stopping(frame.view), width),
        *([] if is_stopping else answer("  s", "checkpoint and stop", "nothing is lost", width)),
        *answer(f"{frame.glyphs.marker} esc", *wait, width, is_default=True),
    ]


def answer(key: str, words: str, consequence: str, width: int, is_default: bool = False) -> list[Line]:
    """A key, what it does and what that means."""
    first, *rest = wrap(consequence, width - KEY_WIDTH - ANSWER_WIDTH, 3)
    tone: Tone = "warning" if consequence.startswith("loses") else "dim"
    head = line(
        Span(left(key, KEY_WIDTH), "accent"),
        Span(left(words, ANSWER_WIDTH), "strong" if is_default else "text"),
        Span(first, tone),
    )
    return [head, *(line(" " * (KEY_WIDTH + ANSWER_WIDTH), Span(row, tone)) for row in rest)]


def state_of_affairs(view: RunView) -> str:
    """How many behaviors do what."""
    states = [behavior.state for behavior in view.behaviors.values()]
    counted = [(states.count(state), state) for state in ("training", "paused") if state in states]
    if counted:
        (number, state), *others = counted
        first = f"{number} behavior{'s are' if number > 1 else ' is'} {state}"
        return ", ".join([first, *(f"{number} {'are' if number > 1 else 'is'} {state}" for number, state in others)])
    has_begun = any(state != "starting" for state in states)
    return "Nothing is training any more" if has_begun else "The run has just started"


class Loss(NamedTuple):
    """What would be gone. seconds: of training, of the behavior that would lose most; None where that is unknown."""

    steps: int
    seconds: float | None
    is_saved: bool  # whether all that would lose something have a checkpoint


def cost_of_stopping(view: RunView) -> str:
    """How much work would be gone."""
    loss = loss_of(view)
    if loss is None:
        return "nothing is lost"
    seconds = f" ({duration(loss.seconds)} of training)" if loss.seconds is not None else ""
    since = "since the last checkpoint" if loss.is_saved else "that no checkpoint has"
    return f"loses {count(loss.steps)} steps{seconds} {since}"


def loss_of(view: RunView) -> Loss | None:
    """What stopping now would cost; None when nothing."""
    lost = [
        (steps, _seconds_for(steps, behavior), bool(behavior.checkpoints))
        for behavior in view.behaviors.values()
        if behavior.state in ("training", "paused") and (steps := _unsaved_steps(behavior)) > 0
    ]
    if not lost:
        return None
    seconds = [each for _, each, _ in lost if each is not None]
    return Loss(sum(steps for steps, _, _ in lost), max(seconds, default=None), all(saved for _, _, saved in lost))


def _unsaved_steps(behavior: BehaviorView) -> int:
    saved = behavior.checkpoints[-1][1].step if behavior.checkpoints else 0
    return behavior.step - max(saved, behavior.first_step)


def _seconds_for(steps: int, behavior: BehaviorView) -> float | None:
    """How long it trained for so many steps, at the speed of now, or while paused at the usual one."""
    rate, split = behavior.steps_per_second, behavior.time_split
    if behavior.state == "paused" and split is not None:
        busy = split.environment_seconds + split.inference_seconds + split.update_seconds + split.other_seconds
        rate = (behavior.step - behavior.first_step) / busy if busy > 0 else rate
    return steps / rate if rate > 0 else None


def progress(frame: Frame, asked_at: float) -> list[Line]:
    """Each behavior's way to its last checkpoint."""
    rows = [_behavior_progress(behavior, frame, asked_at) for behavior in frame.view.behaviors.values()]
    waited = duration(frame.now - asked_at)
    now_key, words = ("ctrl+c", "again: stop now") if frame.refuses else ("k", "stop now")
    return [
        line(Span(f"{frame.glyphs.waiting} Saving and stopping, {waited}", "strong")),
        line(),
        *rows[:8],
        *([line(Span(f"  and {len(rows) - 8} more", "dim"))] if len(rows) > 8 else []),
        line(),
        line(Span(f"  {now_key:<5}", "accent"), words, Span("  loses what is not saved yet", "warning")),
        line(Span("  esc  ", "accent"), "keep watching", Span("  the screen closes once all is saved", "dim")),
        line(),
        line(Span(f"ctrl+c again: stop now; {REPEATS}", "dim")),
    ]


def _behavior_progress(behavior: BehaviorView, frame: Frame, asked_at: float) -> Line:
    glyphs = frame.glyphs
    name = left(fit(safe_text(behavior.name), 16, glyphs.ellipsis), 17)
    saved = next((event for at, event in reversed(behavior.checkpoints) if at >= asked_at), None)
    if saved is not None:
        return line(Span(f"  {glyphs.done} ", "good"), name, f"saved at step {count(saved.step)}")
    if frame.view.is_absent(behavior):
        return line(Span(f"  {glyphs.waiting} ", "dim"), name, Span("absent", "dim"))
    if behavior.state in ENDS:
        return line(Span(f"  {glyphs.of(behavior.state)} ", state_tone(behavior.state)), name, behavior.state)
    return line(Span(f"  {glyphs.waiting} ", "wait"), name, "saving")
