"""The line in which a list's filter is typed; the list follows with every letter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Input, Static

from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.line_input import LineInput
from rl_tui.tui.panes.list import ListPane, mistake
from rl_tui.tui.state.choices import ScreenState


class FilterLine(Horizontal):
    """Stands where the outcomes stand, as long as it has the keys. pane: the list that it filters."""

    def __init__(self, pane: ListPane, state: ScreenState, redraw: Callable[[], None]) -> None:
        super().__init__()
        self._pane, self._state, self._redraw = pane, state, redraw
        self._is_open = True

    def compose(self) -> ComposeResult:
        """What it is, the pattern, what is wrong with it."""
        yield Static(f" filter {self._pane.topic}: /", classes="label")
        yield FilterInput(self, self._pane, self._state.filters.get(self._pane.topic, ""))
        yield Static(classes="words")

    def on_mount(self) -> None:
        """It has the keys from now on."""
        self.screen.add_class("-filtering")
        self.query_one(FilterInput).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """The list follows."""
        event.stop()
        self._take(event.value)
        self.query_one(".words", Static).update(mistake(event.value), layout=True)
        self._redraw()

    def on_descendant_blur(self) -> None:
        """The keys went elsewhere; that the whole terminal lost them does not count."""
        if self.app.app_focus:
            self.close()

    def clear(self) -> None:
        """All entries are shown again."""
        self._take("")
        self.close()

    def close(self) -> None:
        """The list has the keys again, with the filter as it is."""
        if not self._is_open:
            return
        self._is_open = False
        if isinstance(self.screen.focused, FilterInput):
            self._pane.focus()
        self.screen.remove_class("-filtering")
        self.remove()

    def _take(self, pattern: str) -> None:
        if pattern:
            self._state.filters[self._pane.topic] = pattern
        else:
            self._state.filters.pop(self._pane.topic, None)


class FilterInput(LineInput):
    """Letters are typed; enter, esc and the arrows act. pane: the list that it filters."""

    BINDINGS = bindings("filtering")

    def __init__(self, owner: FilterLine, pane: ListPane, value: str) -> None:
        super().__init__(value)
        self.pane = pane
        self._owner = owner

    def action_keep(self) -> None:
        """The filter stays."""
        self._owner.close()

    def action_clear(self) -> None:
        """The filter goes."""
        self._owner.clear()

    def action_cursor(self, by: int) -> None:
        """Move the list's cursor."""
        self.pane.action_cursor(by)


def filtering(screen: Screen[Any]) -> ListPane | None:
    """The list whose filter is being typed; None when none is."""
    return screen.focused.pane if isinstance(screen.focused, FilterInput) else None
