"""The top line: which run, what it does, how long still, how fast, how safe."""

from __future__ import annotations

from dataclasses import dataclass

from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.charts.percent import bar
from rl_tui.tui.drawing.lines import Line, Span, Tone, cells, line, state_tone
from rl_tui.tui.drawing.pacing import LINK_SLOW
from rl_tui.tui.drawing.text import count, duration, fit, left, percent, right, size, time_of_day
from rl_tui.tui.panes.base import BEAT, Frame, Pane
from rl_tui.tui.panes.behaviors import awaited_words
from rl_tui.tui.panes.devices import DISK_LOW_BYTES
from rl_tui.tui.panes.environments import has_only_notice, restarting_forms, waiting_forms
from rl_tui.tui.runs.browsing import is_of_no_run

STALE_SECONDS = 5.0  # the engine samples devices every second, so this much silence means it is stuck
BAR_CELLS = 10
DONE_CELLS = 6  # " 100% "
NARROWEST_NAME = 8
LAST_RANK = 99
LONGEST_TITLE_NAME = 40  # cells: the tab of a terminal has less
CROWDED = 120  # columns below which the parts stand nearer together


@dataclass(frozen=True, slots=True)
class Part:
    """Some words of the line. rank: the lower, the longer they stay; forms: the longest first."""

    rank: int
    forms: tuple[Line, ...]


class StateLine(Pane):
    """One line; what does not fit goes in order of importance."""

    seconds = BEAT

    def inputs(self, frame: Frame) -> object:
        """What is more than a figure."""
        view = frame.view
        states = [behavior.state for behavior in view.behaviors.values()]
        waits = waiting_forms(view), restarting_forms(view)
        return states, waits, frame.notes, len(view.warnings), _silent_seconds(frame) > 0, view.last_checkpoint_at

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """One line."""
        return [state_line(frame, width)]


def state_line(frame: Frame, width: int) -> Line:
    """The run's line, as much of it as fits `width`; its progress stands at the right end."""
    view, glyphs = frame.view, frame.glyphs
    is_waiting = has_only_notice(view)
    sign = glyphs.waiting if is_waiting else glyphs.of(view.state)
    tone: Tone = "wait" if is_waiting else state_tone(view.state)
    state = line(Span(f"{sign} {'WAITING' if is_waiting else _state_word(view)}", tone))
    if is_of_no_run(view):
        state = line(Span("no run", "dim"))
    if cells(state) >= width:
        state = line(Span(sign, tone))
    parts = [*_name_parts(frame, width), Part(0, (state,))]
    if frame.is_frozen:
        parts.append(_said(1, "flag", " VIEW FROZEN ", " FROZEN "))
    parts += [_said(2, "warning", *(f"{glyphs.warning} {words}" for words in alarm)) for alarm in _alarms(frame)]
    parts += [_said(2, "wait", *(f"{glyphs.waiting} {words}" for words in forms)) for forms in _waits(frame)]
    parts += _figures(frame)
    parts += [_said(LAST_RANK if note == LINK_SLOW else 7, "accent", note) for note in frame.notes]
    share = share_done(view)
    done = line(f" {percent(share, 1.0):3}% ") if share is not None and cells(state) + DONE_CELLS < width else ()
    gap = 2 if width < CROWDED else 3
    kept = line(" ", *arranged(parts, width - 1 - cells(done), gap))
    if share is None or not done:
        return kept
    room = width - cells(kept)
    bars = (line(*bar(share, length, glyphs, "accent"), *done) for length in (2 * BAR_CELLS, BAR_CELLS))
    end = next((end for end in bars if gap + cells(end) <= room), done)
    return line(*kept, " " * (room - cells(end)), *end)


def arranged(parts: list[Part], width: int, gap: int) -> Line:
    """The parts in their order: each short before any is long, and the more important before the less.

    One of LAST_RANK shortens no other.
    """
    by_rank = sorted(range(len(parts)), key=lambda at: parts[at].rank)
    last = [at for at in by_rank if parts[at].rank == LAST_RANK]
    chosen: dict[int, Line] = {}
    room = width + gap
    for group in (by_rank[: len(by_rank) - len(last)], last):
        for at in group:
            shortest = parts[at].forms[-1]
            if cells(shortest) + gap <= room:
                chosen[at] = shortest
                room -= cells(shortest) + gap
        for at in filter(chosen.__contains__, group):
            spare = room + cells(chosen[at])
            chosen[at] = next(form for form in parts[at].forms if cells(form) <= spare)
            room = spare - cells(chosen[at])
    return tuple(span for at in sorted(chosen) for span in (Span(" " * gap), *chosen[at]))[1:]


def _said(rank: int, tone: Tone, *forms: str) -> Part:
    return Part(rank, tuple(line(Span(words, tone)) for words in forms))


def _name_parts(frame: Frame, width: int) -> list[Part]:
    """Which program, where there is much room, and which run."""
    name = safe_text(frame.view.run.run_id if frame.view.run else frame.config_name)
    if not name:
        return []
    longest = max(NARROWEST_NAME, width // 3)
    forms = [line(Span(fit(name, room, frame.glyphs.ellipsis), "strong")) for room in (longest, NARROWEST_NAME)]
    branded = [line(Span("rl-tui ", "dim"), *forms[0])] if width >= CROWDED else []
    return [Part(5, (*branded, *forms))]


def _alarms(frame: Frame) -> list[tuple[str, ...]]:
    """What is wrong with the run as a whole, and how many warnings there are: each in words, and in fewer."""
    view, silent = frame.view, _silent_seconds(frame)
    alarms: list[tuple[str, ...]] = []
    if silent:
        alarms.append((f"no data for {duration(silent)}", f"no data {duration(silent)}"))
    awaited = [words for words in (awaited_words(b, frame) for b in view.behaviors.values()) if words]
    training = [b for b in view.behaviors.values() if b.state == "training"]
    if awaited and len(awaited) == len(training) and not frame.is_frozen:
        alarms.append((awaited[0], awaited[0].replace(" for", "")))
    if view.devices is not None and view.devices.disk_free_bytes < DISK_LOW_BYTES and not view.is_over:
        free = size(view.devices.disk_free_bytes)
        alarms.append((f"disk {free} free", f"disk {free}"))
    if view.warnings:
        alarms.append((f"{len(view.warnings)} warning{'s' if len(view.warnings) > 1 else ''}",))
    return alarms


def _waits(frame: Frame) -> list[tuple[str, ...]]:
    """What the environments wait for, if no notice says so, and which of their workers are restarting."""
    view = frame.view
    waits = [] if has_only_notice(view) else [waiting_forms(view)]
    return [forms for forms in (*waits, restarting_forms(view)) if forms]


def _silent_seconds(frame: Frame) -> float:
    """For how long a training run has reported nothing; 0 while that is no cause for alarm."""
    silent = frame.now - frame.view.now
    return silent if frame.view.state == "training" and not frame.is_frozen and silent > STALE_SECONDS else 0.0


def _state_word(view: RunView) -> str:
    if view.run is None and view.state == "starting":
        return "starting engine"
    if view.state == "training" and view.behaviors:
        training = sum(behavior.state == "training" for behavior in view.behaviors.values())
        return f"TRAINING {training}/{len(view.behaviors)}"
    code = f" (exit {view.exit_code})" if view.exit_code is not None and view.is_over else ""
    return view.state.upper() + code


def _figures(frame: Frame) -> list[Part]:
    """Each of a fixed width, so that none moves while another changes."""
    view = frame.view
    if view.started_at is None:
        return []
    up = left(duration(frame.time - view.started_at), 5)
    figures = [Part(8, (line(Span("up ", "dim"), up), line(up)))]
    if view.is_over:
        return figures
    remaining = eta_seconds(view)
    if remaining is not None:
        eta = left(duration(remaining), 5)
        end = left(f"{duration(remaining)} ({time_of_day(frame.time + remaining, seconds=False)})", 13)
        figures.append(Part(6, (line(Span("ETA ", "dim"), end), line(Span("ETA ", "dim"), eta))))
    if view.steps_per_second > 0:
        rate = right(count(view.steps_per_second), 5)
        figures.append(Part(9, tuple(line(rate, Span(unit, "dim")) for unit in (" steps/s", " st/s"))))
    saved_at = view.last_checkpoint_at
    if saved_at is not None:
        age = duration(frame.time - saved_at)
        figures.append(
            Part(4, (line(Span("checkpoint ", "dim"), left(f"{age} ago", 9)), line(Span("ckpt ", "dim"), left(age, 5))))
        )
    return figures


def share_done(view: RunView) -> float | None:
    """Of all the steps that the behaviors are to make; None where they have no end."""
    behaviors = [each for each in view.behaviors.values() if each.max_steps > 0 and not view.is_absent(each)]
    if not behaviors:
        return None
    made = sum(min(behavior.step, behavior.max_steps) for behavior in behaviors)
    return made / sum(behavior.max_steps for behavior in behaviors)


def eta_seconds(view: RunView) -> float | None:
    """Seconds until the last of the training behaviors reaches max_steps; None if unknown."""
    times = [behavior.remaining_seconds for behavior in view.behaviors.values()]
    return max((seconds for seconds in times if seconds is not None), default=None)


def title_of(view: RunView, config_name: str) -> str:
    """The title of the terminal's window: "rl-tui CartPole 42% training"."""
    share = share_done(view)
    done = f" {percent(share, 1.0)}%" if share is not None else ""
    name = fit(safe_text(view.run.run_id if view.run else config_name), LONGEST_TITLE_NAME)
    return " ".join(f"rl-tui {name}{done} {view.state}".split())
