"""The keys, made from the keymap: those that do something now at one glance, and on demand all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from rl_tui.engine.config.diagnostics import one_of
from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.drawing.painting import Patch
from rl_tui.tui.drawing.text import left, wrapped
from rl_tui.tui.keys.keymap import Key, Keymap, Place, bindings
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.blocks import Block, BlocksPane
from rl_tui.tui.panes.filter_line import FilterLine, filtering
from rl_tui.tui.panes.help_columns import help_columns
from rl_tui.tui.panes.list import Entry, same
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.dialog import PaneDialog

KEY_WIDTH = 15
ELSEWHERE = "when another pane has the focus"  # a nearer command has its keys
FOREIGN: dict[Place, str] = {  # where a key works that does not work here
    "leaving": "in the leave dialog", "confirming": "in a yes or no question", "asking": "in a prompt",
    "filtering": "while typing a filter", "picking": "in the list of metrics",
    "evaluating": "during an evaluation", "help": "on this page", "list": "in a list", "replay": "in a replay",
}  # fmt: skip


class HelpScreen(PaneDialog):
    """First the keys that have a use now, in columns; its own key shows all, in a list that scrolls and is searched.

    There is one, kept from its first use on: making and mounting it again would take three times as long as showing it.
    """

    BINDINGS = bindings("help")

    def __init__(self, context: Context) -> None:
        self._keys = HelpPane()
        super().__init__(self._keys)
        self._page = Vertical(self._keys, id="help", classes="dialog")
        self._shared = context

    def compose(self) -> ComposeResult:
        """The page, and its title in the frame."""
        yield self._page

    def show_keys(self, screen_name: str, pane: Pane | None, here: Sequence[Place]) -> None:
        """Be about what has the keys: a screen and its pane; here: whose keys work there, nearest first."""
        self._forget()
        self._page.border_title = Content(title(screen_name, pane.topic if pane is not None else ""))
        self._keys.show_blocks(blocks(self._shared.keymap, here), here)
        self._show_all(False)

    def draw(self, frame: Frame) -> list[Patch]:
        """Bring the page up to `frame` and return what is to be painted."""
        return super().draw(replace(frame, focus=self._keys.topic))

    def on_descendant_focus(self) -> None:
        """The filter has gone."""
        self._shared.redraw()

    def action_redraw(self) -> None:
        """Draw, now."""
        self._shared.redraw()

    def action_all_keys(self) -> None:
        """Show all keys, or those that have a use now."""
        self._forget()
        self._show_all(not self._keys.shows_all)
        self.call_after_refresh(self._shared.redraw)

    def action_filter(self) -> None:
        """Let the user type what to look for, in all keys."""
        self._show_all(True)
        if filtering(self) is None:
            line = FilterLine(self._keys, self._shared.state, self._shared.redraw)
            self.query_one("#help").mount(line)

    def action_close(self) -> None:
        """Back to the screen before; what was looked for here is no concern of the run."""
        self._forget()
        self.dismiss()

    def _show_all(self, shows_all: bool) -> None:
        self._keys.shows_all = shows_all
        self.set_class(shows_all, "-all")
        key = self._shared.keymap.of_id("all-keys").shown
        more = "keys of this screen" if shows_all else "all keys"
        self._page.border_subtitle = Content(f"{key} {more}   / search   esc close")

    def _forget(self) -> None:
        self._shared.state.filters.pop(self._keys.topic, None)
        self._shared.state.cursors.pop(self._keys.topic, None)


class HelpPane(BlocksPane):
    """The keys that have a use now in columns, or all with one block per command below the headings."""

    topic = "keys"

    def __init__(self) -> None:
        super().__init__()
        self.shows_all = False
        self._entries: Sequence[Entry] = ()
        self._here: Sequence[Place] = ()

    def show_blocks(self, blocks: Sequence[tuple[str, Sequence[tuple[Key, str]]]], here: Sequence[Place]) -> None:
        """Show these commands from the next drawing on. here: whose keys work, nearest first."""
        self._here = here
        self._entries = [entry for heading, keys in blocks for entry in _entries(heading, keys)][1:]
        self.forget_lines()

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """Every command, where all are shown."""
        return self._entries if self.shows_all else ()

    def wanted_height(self, frame: Frame, width: int) -> int:
        """That of the columns."""
        return super().wanted_height(frame, width) if self.shows_all else len(help_columns(frame, self._here, width))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The columns, or the list."""
        return super().lines(frame, width, height) if self.shows_all else help_columns(frame, self._here, width)


def title(screen_name: str, topic: str) -> str:
    """Whose keys they are: "Keys for the overview: behaviors pane"."""
    where = "the overview" if screen_name == "overview" else f"the {screen_name} screen"
    return f"Keys for {where}: {topic} pane" if topic and topic != screen_name else f"Keys for {where}"


def blocks(keymap: Keymap, here: Sequence[Place]) -> list[tuple[str, list[tuple[Key, str]]]]:
    """Headings, each with its commands and where these work: first what works here, nearest first, then the others."""
    shadowed = keymap.shadowed(*here)
    near = [key for place in here if place != "run" for key in keymap.of(place) if key not in shadowed]
    rest = [key for key in keymap.keys if key not in near]
    groups = [("Here", [(key, "") for key in dict.fromkeys(near)])] if near else []
    for group in dict.fromkeys(key.group for key in rest):
        keys = [key for key in rest if key.group == group]
        groups.append((group, [(key, _where_now(key, here, shadowed)) for key in keys]))
    return groups


def _where_now(key: Key, here: Sequence[Place], shadowed: Sequence[Key]) -> str:
    """Where the command works; shadowed: those that have lost their keys here."""
    return ELSEWHERE if key in shadowed else where(key, here)


def where(key: Key, here: Iterable[Place]) -> str:
    """Where the command works, "" when that is here or everywhere."""
    if any(place in here or place == "anywhere" for place in key.places):
        return ""
    screens = [place for place in key.places if place not in FOREIGN]
    others = [FOREIGN[place] for place in key.places if place in FOREIGN]
    return " or ".join([*([f"in {one_of(screens)}"] if screens else []), *others])


def _entries(heading: str, keys: Iterable[tuple[Key, str]]) -> Iterable[Entry]:
    yield Entry(f"before {heading}", "", same(()))
    yield Entry(f"# {heading}", heading, same(line(Span(heading, "strong"))))
    for key, place in keys:
        explanation = f"{key.explained} ({place})" if place else key.explained
        text = f"{heading} {key.shown} {key.label} {explanation} {key.id}"
        yield Block(
            f"{heading} {key.id}", text, partial(_first_line, key, explanation), partial(_other_lines, explanation)
        )


def _first_line(key: Key, explanation: str, width: int) -> Line:
    rows = wrapped(explanation, max(2, width - KEY_WIDTH))
    return line(Span(left(key.shown, KEY_WIDTH - 1), "accent"), " ", rows[0])


def _other_lines(explanation: str, width: int) -> list[Line]:
    return [line(" " * KEY_WIDTH, row) for row in wrapped(explanation, max(2, width - KEY_WIDTH))[1:]]
