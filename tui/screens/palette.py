"""The command palette: every command that has a use on the screen below it, found by its words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from textual.actions import parse
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.dom import DOMNode
from textual.widgets import Input

from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.text import left
from rl_tui.tui.drawing.themes import THEMES
from rl_tui.tui.keys.keymap import Key, Place
from rl_tui.tui.panes.keys_line import works_without_run
from rl_tui.tui.runs.browsing import is_of_no_run
from rl_tui.tui.screens.context import Context
from rl_tui.tui.textual_private import PagingPalette

Owners: TypeAlias = Sequence[tuple[DOMNode, tuple[Place, ...]]]

KEY_WIDTH, CHROME = 15, 8  # cells of the keys, and of frame, blanks and scroll bar around a command
LARGEST_WIDTH = 100  # of the palette, as in app.tcss
ARROWS = {"up", "down", "left", "right", "pageup", "pagedown"}  # these move the palette's own cursor


@dataclass(frozen=True, slots=True)
class Offer:
    """A command as the palette has it. node: the part of the screen whose key it is; shown: the key, "" for one choice
    of a command that has several, which is only listed when its words are typed."""

    node: DOMNode
    action: str
    shown: str
    words: str


class Palette(PagingPalette):
    """The dialog; it goes away with the command that is chosen. offers: the commands that can be chosen now."""

    def __init__(self, offers: Callable[[], Iterator[Offer]]) -> None:
        super().__init__([Commands], placeholder="a command")
        self.offers = offers

    def on_mount(self) -> None:
        """A cursor that blinks would be sent twice a second."""
        self.query_one(Input).cursor_blink = False


class Commands(Provider):
    """The commands that the palette on top offers."""

    async def search(self, query: str) -> Hits:
        """Those whose words match."""
        matcher = self.matcher(query)
        for offer in self._offers():
            if (score := matcher.match(offer.words)) > 0:
                display = self._columns(offer, matcher.highlight(offer.words))
                name = offer.words.partition(":")[0]  # those whose name matches come before those explained so
                score += 10 * matcher.match(name) + 100 * name.casefold().startswith(query.strip().casefold())
                yield Hit(score, display, self._running(offer), text=offer.words)

    async def discover(self) -> Hits:
        """All that have a key."""
        for offer in self._offers():
            if offer.shown:
                yield DiscoveryHit(self._columns(offer, Content(offer.words)), self._running(offer), text=offer.words)

    def _offers(self) -> Iterator[Offer]:
        return self.app.screen.offers() if isinstance(self.app.screen, Palette) else iter(())

    def _columns(self, offer: Offer, words: Content) -> Content:
        """The key, and beside it the words, wrapped in their column."""
        room = min(LARGEST_WIDTH, self.app.size.width) - CHROME - KEY_WIDTH
        rows = words.wrap(max(8, room))
        keys = [left(offer.shown, KEY_WIDTH), *[" " * KEY_WIDTH] * (len(rows) - 1)]
        return Content("\n").join(Content(key) + row for key, row in zip(keys, rows, strict=True))

    def _running(self, offer: Offer) -> Callable[[], Awaitable[bool]]:
        return partial(self.app.run_action, offer.action, offer.node)


def offers(context: Context, owners: Owners) -> Iterator[Offer]:
    """The commands that have a use now, in the order of the keymap. owners: see RunScreen.key_owners."""
    for key in context.keymap.keys:
        node = next((node for node, places in owners if not set(key.places).isdisjoint(places)), None)
        if node is None or not is_useful(key, context) or key.id == "palette" or ARROWS.issuperset(key.keys):
            continue
        for action, shown, words in _variants(key, context.view):
            _, name, parameters = parse(action)
            if node.check_action(name, parameters):
                yield Offer(node, action, shown, words)


def is_useful(key: Key, context: Context) -> bool:
    """Whether the run is in a state, and of a size, in which the command does something."""
    selected = context.controls.selected
    if key.id == "watch" and (selected is None or context.watching.why_not(selected.name)):
        return False
    if is_of_no_run(context.view) and not works_without_run(key):
        return False
    has_run = not context.controls.why_not()
    has_several = len(context.view.behaviors) > 1
    return (has_run or not (key.needs_run or key.changes)) and (has_several or not key.needs_several)


def _variants(key: Key, view: RunView) -> Iterator[tuple[str, str, str]]:
    """Action, key and words; a command that takes a number is one for each behavior."""
    if key.id == "theme":
        yield key.action, key.shown, f"{key.label}: the next colors; type theme to choose some by name"
        for name, words in THEMES.items():
            yield f"theme('{name}')", "", f"{key.label} {name}: {words}"
        return
    if "{n}" not in key.action:
        yield key.action, key.shown, f"{key.label}: {key.explained}"
        return
    for name, number in zip(view.behaviors, key.keys, strict=False):
        words = f"{key.label} {safe_text(name)}"
        yield key.action.replace("{n}", number), number, words
