"""Changed cells straight to the terminal: Textual 8.2.8 would first compose their whole rows again (measured: 2 x)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from rich.console import COLOR_SYSTEMS, Console
from rich.style import Style
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from rl_tui.tui.textual_private import CompositorUpdate, visible_widgets

Spot: TypeAlias = tuple[Region, Region]  # where a widget is, and the part of the terminal that it may paint


class Patch(NamedTuple):
    """Part of a row. x, y: cells of the terminal; text: with its escape sequences."""

    x: int
    y: int
    text: str


class PatchUpdate(CompositorUpdate):
    """The patches and nothing else."""

    def __init__(self, patches: Sequence[Patch]) -> None:
        self._patches = patches

    def render_segments(self, console: Console) -> str:
        """What to write to the terminal."""
        return "".join(f"\x1b[{y + 1};{x + 1}H{text}" for x, y, text in self._patches)


def spots(screen: Screen[Any]) -> Mapping[Widget, Spot]:
    """Where each visible widget was laid out last."""
    return visible_widgets(screen)


def styled(text: str, style: Style, console: Console) -> str:
    """`text` between the escape sequences of `style`, in the colors that `console` has."""
    return Strip.render_style(style, text, COLOR_SYSTEMS[console.color_system or "truecolor"])


def exact_console(console: Console) -> Console:
    """A console that names colors by their number among 256, which app.tcss uses exactly, in half the bytes."""
    if console.color_system != "truecolor":
        return console
    return Console(
        color_system="256", file=console.file, force_terminal=True, markup=True, highlight=False, emoji=False,
        legacy_windows=False, safe_box=False, soft_wrap=False,
    )  # fmt: skip
