"""What a person who plays knows and can do: the episode in figures, the choices and their keys, earlier episodes."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.engine.session.playing import Turn
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.watching import Scene
from rl_tui.tui.drawing.lines import Line, Span, cells, line, pack, padded, wrap
from rl_tui.tui.drawing.text import left
from rl_tui.tui.keys.play_keys import choice_keys, shown_choice_keys
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.watched import number, past_lines

LABEL_WIDTH = 12
FIGURES = 4  # lines
NOT_NOW = ", not now"
MOST_NUMBERS, NUMBER_WIDTH = 4, 10  # of an observation that is shown
AT_THE_END = "q writes the complete episodes; the one under way is discarded"
AFTER_FAILURE = "r begins another episode in a new environment; q writes the complete ones"


class PlayedPane(Pane):
    """One turn. turn: None before the first. num_episodes: after how many complete ones the play ends; None: never."""

    def __init__(self, num_episodes: int | None) -> None:
        super().__init__()
        self.turn: Turn | None = None
        self._num_episodes = num_episodes

    def heading(self, frame: Frame) -> str:
        """Its name."""
        return "Episode"

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Figures and choices, as far as there is room: the choices come first, in several columns where needed."""
        if self.turn is None:
            return []
        choices = choice_lines(self.turn, frame)
        figures = self._figures(self.turn)
        if height < FIGURES + len(choices) + 1:
            return [pack(self._short_figures(self.turn), width), *in_columns(choices, width, height - 1)]
        upper = [*figures, line(), *choices, line()]
        seen = observation_lines(self.turn.scene, width)
        if len(upper) + len(seen) < height:
            upper = [*figures, *seen, *upper[len(figures) :]]
        advice = AFTER_FAILURE if self.turn.scene.state == "failed" else AT_THE_END
        lower = [line(Span(f" {row}", "dim")) for row in wrap(advice, width - 2, 3)]
        room = height - len(upper) - len(lower) - 1
        if room < 0:
            return upper
        past = past_lines(self.turn.scene, room)
        return [*upper, *past, *[line()] * (room - len(past) + 1), *lower]

    def _episode(self, turn: Turn) -> str:
        of_all = "" if self._num_episodes is None else f" of {self._num_episodes:,}"
        return f"{turn.scene.episode:,}{of_all}"

    def _figures(self, turn: Turn) -> list[Line]:
        scene = turn.scene
        return [
            _figure("episode", self._episode(turn)),
            _figure("step", f"{scene.step:,}"),
            _figure("return", number(scene.total), strong=True),
            _figure("reward", number(scene.reward)),
        ]

    def _short_figures(self, turn: Turn) -> list[Line]:
        scene = turn.scene
        return [
            line(Span(" return ", "dim"), Span(number(scene.total), "strong")),
            line(Span("step ", "dim"), f"{scene.step:,}"),
            line(Span("reward ", "dim"), number(scene.reward)),
            line(Span("episode ", "dim"), self._episode(turn)),
        ]


def choice_lines(turn: Turn, frame: Frame) -> list[Line]:
    """A line for each choice: whether it was the last one, its keys, its name, and that it is not allowed."""
    keys = [shown_choice_keys(each, is_ascii=not frame.glyphs.braille) for each in choice_keys(turn.choices)]
    key_width = max(map(len, keys))
    lines = []
    for index, (name, is_allowed) in enumerate(zip(turn.choices, turn.is_allowed, strict=True)):
        marker = frame.glyphs.marker if index in turn.scene.discrete else " "
        words = safe_text(name) or f"action {index}"
        if is_allowed:
            row = line(Span(f"{marker} {left(keys[index], key_width)} ", "accent"), Span(f" {words}"))
        else:
            row = line(Span(f"{marker} {left(keys[index], key_width)}  {words}{NOT_NOW}", "faint"))
        lines.append(row)
    return lines


def observation_lines(scene: Scene, width: int) -> list[Line]:
    """The observations that are a few numbers, or the number of one choice among several."""
    lines: list[Line] = []
    for seen in scene.seen:
        if len(seen.shape) != 1 or not seen.is_whole:
            continue
        if len(seen.values) > 1 and sorted(seen.values)[-2:] == [0, 1] and sum(seen.values) == 1:
            words = [str(seen.values.index(1))]
        elif len(seen.values) <= MOST_NUMBERS:
            words = [f"{value:<{NUMBER_WIDTH}.3g}" for value in seen.values]
        else:
            continue
        name = f"observed {seen.name}" if seen.name.isdigit() else safe_text(seen.name)
        per_row = max(1, (width - LABEL_WIDTH - 1) // NUMBER_WIDTH)
        rows = ["".join(words[at : at + per_row]) for at in range(0, len(words), per_row)]
        lines += [_figure("" if index else name, row) for index, row in enumerate(rows)]
    return lines


def in_columns(rows: Sequence[Line], width: int, height: int) -> list[Line]:
    """The rows side by side, in as few columns as have all of them, where the width allows."""
    if height < 1:
        return []
    widest = max(map(cells, rows)) + 1
    num_columns = min(max(1, width // widest), -(-len(rows) // height))
    num_rows = max(-(-len(rows) // num_columns), 1)
    columns = [rows[first : first + num_rows] for first in range(0, len(rows), num_rows)]
    return [
        tuple(span for column in columns if at < len(column) for span in padded(column[at], widest))
        for at in range(min(num_rows, height))
    ]


def _figure(label: str, words: str, *, strong: bool = False) -> Line:
    return line(Span(f" {left(label, LABEL_WIDTH - 1)} ", "dim"), Span(words, "strong" if strong else "text"))
