"""What a person who plays a game knows and can do: the seat, the opponent, the choices and how games have ended."""

from __future__ import annotations

from rl_tui.engine.session.games import GameTurn, Tally
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, line, pack, wrap
from rl_tui.tui.drawing.text import left, num_cells, right
from rl_tui.tui.keys.game_keys import choice_keys
from rl_tui.tui.keys.play_keys import shown_choice_keys
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.board import mark_span
from rl_tui.tui.panes.game_line import result_span
from rl_tui.tui.panes.played import NOT_NOW, in_columns, observation_lines
from rl_tui.tui.panes.watched import number, past_lines

LABEL_WIDTH = 10
BAR_WIDTH = 10  # of a choice that is certain
MOST_SEATS = 4  # whose games are listed apart
COLUMN = 7  # of a number of games


class GamePane(Pane):
    """One turn. turn: None before the first. has_board: it is shown, with the keys of its fields."""

    def __init__(self) -> None:
        super().__init__()
        self.turn: GameTurn | None = None
        self.has_board = False

    def heading(self, frame: Frame) -> str:
        """Its name."""
        return "Game"

    def inputs(self, frame: Frame) -> object:
        """The turn."""
        return self.turn, self.has_board

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Figures, choices and games, as far as there is room: what the person needs to act comes first."""
        turn = self.turn
        if turn is None:
            return []
        choices = self._choices(turn, frame)
        figures = figure_lines(turn, frame.glyphs, width)
        games = game_lines(turn, height)
        if height < len(figures) + len(choices) + 1:
            return [short_line(turn, frame.glyphs, width), *(in_columns(choices, width, height - 1) if choices else [])]
        upper = [*figures, *([line(), *choices] if choices else [])]
        seen = [] if self.has_board or turn.scene.pixels or turn.scene.text else observation_lines(turn.scene, width)
        if seen and len(upper) + len(seen) < height:
            upper = [*figures, *seen, *upper[len(figures) :]]
        if games and len(upper) + len(games) < height:
            upper += [line(), *games]
        lower = [line(Span(f" {row}", "dim")) for row in wrap(self._advice(turn), width - 2, 3)]
        room = height - len(upper) - len(lower)
        return upper if room < 1 else [*upper, *[line()] * room, *lower]

    def _choices(self, turn: GameTurn, frame: Frame) -> list[Line]:
        """All of them, or where the board has their keys those that the policy would take."""
        if turn.is_over or turn.scene.state == "failed" or (self.has_board and turn.advice is None):
            return []
        return advised_lines(turn, frame) if self.has_board else choice_lines(turn, frame)

    def _advice(self, turn: GameTurn) -> str:
        if turn.scene.state == "failed":
            return "n begins another game in a new environment; q leaves"
        if turn.is_over:
            return "n or enter begins the next game; q leaves"
        if self.has_board and turn.board is not None:
            return f"type the number of a {'column' if turn.board.by_column else 'field'}; h shows a hint"
        return "h shows what the policy would do"


def figure_lines(turn: GameTurn, glyphs: Glyphs, width: int) -> list[Line]:
    """Who plays, and how the game stands."""
    scene, room = turn.scene, width - LABEL_WIDTH - 1
    lines = [_figure("game", f"{scene.episode:,}")]
    if turn.is_over:
        lines = [(*lines[0], Span("  "), result_span(turn.result, glyphs))]
    if turn.opponent:
        lines += labeled_rows("opponent", safe_text(turn.opponent), marks(turn, glyphs, is_own=False), room)
        lines += [_figure("actions", turn.opponent_way)] if turn.opponent_way else []
        lines += labeled_rows("you", seat_words(turn), marks(turn, glyphs, is_own=True), room)
    lines.append(_figure("moves" if turn.board is not None else "steps", f"{scene.step:,}"))
    if turn.answers:
        lines.append(_figure("it chose", fitting_answers(turn, room)))
    if turn.board is None or scene.total != scene.reward:
        lines += [_figure("return", number(scene.total)), _figure("reward", number(scene.reward))]
    return lines


def labeled_rows(label: str, words: str, before: Line, width: int) -> list[Line]:
    """The words beside their label, in several rows where they are long. before: at the beginning of the first."""
    rows = wrap(words, width - 2 * len(before), 3)
    return [
        line(Span(f" {left(label if not at else '', LABEL_WIDTH - 1)} ", "dim"), *(before if not at else ()), row)
        for at, row in enumerate(rows)
    ]


def marks(turn: GameTurn, glyphs: Glyphs, *, is_own: bool) -> Line:
    """The mark of the person or of the others, and a blank; empty without a board."""
    if turn.board is None:
        return ()
    is_first, by_column = turn.seat.number == 1, turn.board.by_column
    return mark_span(is_own=is_own, is_first=is_first, by_column=by_column, glyphs=glyphs), Span(" ")


def seat_words(turn: GameTurn) -> str:
    """Which agent is the person's."""
    seat = turn.seat
    order = {1: "first", 2: "second", 3: "third"}.get(seat.number, f"number {seat.number}")
    words = [order if seat.count == 2 else f"{order} of {seat.count}" if seat.count > 1 else safe_text(seat.behavior)]
    words += [f"team {seat.team}"] if seat.team is not None else []
    return ", ".join(words)


def fitting_answers(turn: GameTurn, width: int) -> str:
    """The newest of what the others have chosen, in words or by their keys."""
    names = [safe_text(turn.choices[choice]) or choice_key(turn, choice) for choice in turn.answers]
    while len(names) > 1 and len(", ".join(names)) > width:
        names.pop(0)
    return ", ".join(names)


def choice_words(turn: GameTurn, choice: int) -> str:
    """A choice, as the person knows it: its name, or "column 4"."""
    thing = "action" if turn.board is None else "column" if turn.board.by_column else "field"
    return safe_text(turn.choices[choice]) or f"{thing} {choice + 1}"


def choice_key(turn: GameTurn, choice: int) -> str:
    """Its last key, which is a digit where there are few choices."""
    keys = choice_keys(turn.choices)
    return keys[choice][-1] if choice < len(keys) and keys[choice] else str(choice + 1)


def choice_lines(turn: GameTurn, frame: Frame) -> list[Line]:
    """A line for each choice: whether it was the last one, its keys, its name, and how likely the policy takes it."""
    keys = [shown_choice_keys(each, is_ascii=not frame.glyphs.braille) for each in choice_keys(turn.choices)]
    names = [choice_words(turn, choice) for choice in range(len(turn.choices))]
    key_width, name_width = max(map(len, keys)), max(map(num_cells, names))
    lines = []
    for index, (words, is_allowed) in enumerate(zip(names, turn.is_allowed, strict=True)):
        marker = frame.glyphs.marker if index in turn.scene.discrete else " "
        if not is_allowed:
            lines.append(line(Span(f"{marker} {left(keys[index], key_width)}  {words}{NOT_NOW}", "faint")))
            continue
        row = line(Span(f"{marker} {left(keys[index], key_width)} ", "accent"), Span(f" {left(words, name_width)}"))
        lines.append((*row, *hint_spans(turn, index, frame.glyphs)))
    return lines


def advised_lines(turn: GameTurn, frame: Frame) -> list[Line]:
    """What the policy would do, the likeliest first."""
    advice = turn.advice
    assert advice is not None
    allowed = [index for index, is_allowed in enumerate(turn.is_allowed) if is_allowed]
    chances = advice.chances or tuple(float(index == advice.choice) for index in range(len(turn.choices)))
    order = sorted(allowed, key=lambda index: (index != advice.choice, -chances[index]))
    shown = order if advice.chances else order[:1]
    return [
        line(Span(f"  {choice_key(turn, index)} ", "accent"), *hint_spans(turn, index, frame.glyphs)) for index in shown
    ]


def hint_spans(turn: GameTurn, index: int, glyphs: Glyphs) -> Line:
    """How likely the policy takes a choice; nothing without a hint."""
    advice = turn.advice
    if advice is None:
        return ()
    is_best = index == advice.choice
    sign = Span(f" {glyphs.best if is_best else ' '} ", "good")
    if not advice.chances:
        return line(sign)
    chance = advice.chances[index]
    bar = glyphs.bar * round(chance * BAR_WIDTH)
    return line(sign, f"{right(f'{100 * chance:.0f}', 3)} % ", Span(bar, "good" if is_best else "dim"))


def game_lines(turn: GameTurn, height: int) -> list[Line]:
    """How games have ended, by seat; or the returns of a game without opponents."""
    if not turn.opponent:
        return past_lines(turn.scene, min(height, 8))
    head = line(Span(" " * LABEL_WIDTH + "".join(right(word, COLUMN) for word in ("won", "drawn", "lost")), "dim"))
    rows = [("games", turn.tally)]
    if 1 < len(turn.tallies) <= MOST_SEATS and not turn.seat.is_fixed:
        words = ("first", "second", "third", "fourth")
        rows = [(words[at], tally) for at, tally in enumerate(turn.tallies)] + [("all", turn.tally)]
    return [head, *(_tally_row(label, tally) for label, tally in rows)]


def short_line(turn: GameTurn, glyphs: Glyphs, width: int) -> Line:
    """The figures where there is one line for them."""
    parts = [line(" ", result_span(turn.result, glyphs))] if turn.is_over else []
    parts += [line(Span(" you ", "dim"), seat_words(turn))] if turn.opponent else []
    parts += [line(Span("it chose ", "dim"), fitting_answers(turn, width // 2))] if turn.answers else []
    parts += [line(Span(f"{'moves' if turn.board else 'steps'} ", "dim"), f"{turn.scene.step:,}")]
    parts += [line(Span("return ", "dim"), number(turn.scene.total))]
    return pack(parts, width)


def _tally_row(label: str, tally: Tally) -> Line:
    numbers = (tally.won, tally.drawn, tally.lost)
    return line(
        Span(f" {left(label, LABEL_WIDTH - 1)}", "dim"), "".join(right(f"{each:,}", COLUMN) for each in numbers)
    )


def _figure(label: str, words: str) -> Line:
    return line(Span(f" {left(label, LABEL_WIDTH - 1)} ", "dim"), Span(words))
