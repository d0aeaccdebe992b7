"""The colors of the screen, by theme and by what they mean."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from textual.app import App
from textual.filter import NoColor
from textual.theme import BUILTIN_THEMES, Theme

from rl_tui.tui.textual_private import filter_by, follow_terminal_colors

DEFAULT, FOR_16_COLORS = "rl-dark", "ansi"

# Columns: see THEMES. The first two and the last are exact entries of xterm's 256 colors, so that a terminal or tmux
# without true color shows the same; the other two are the terminal's own sixteen. The series follow Okabe and Ito
# (2008): blue, orange, green, vermilion, sky, purple, moved apart to differ for every kind of color blindness.
# Among the sixteen no six are that far apart. The first three are, and stand out from their ground, in every palette
# that terminals come with; the later ones also differ by their numbers and dashes. On a light ground green, cyan and
# yellow are next to invisible in most of these palettes: what is well is blue there.
_COLORS: Mapping[str, tuple[str, str, str, str, str]] = {
    "ground": ("#121212", "#ffffff", "ansi_default", "ansi_default", "#000000"),
    "raised": ("#1c1c1c", "#eeeeee", "ansi_default", "ansi_default", "#000000"),
    "frame": ("#3a3a3a", "#b2b2b2", "ansi_bright_black", "ansi_bright_black", "#bcbcbc"),
    "text-plain": ("#c6c6c6", "#303030", "ansi_default", "ansi_default", "#ffffff"),
    "text-dim": ("#8a8a8a", "#626262", "ansi_white", "ansi_bright_black", "#d0d0d0"),
    "text-faint": ("#626262", "#808080", "ansi_bright_black", "ansi_bright_black", "#a8a8a8"),
    "text-strong": ("#eeeeee", "#000000", "ansi_default", "ansi_default", "#ffffff"),
    "accent-color": ("#5fafff", "#005faf", "ansi_bright_cyan", "ansi_blue", "#5fffff"),
    "accent-text": ("#121212", "#ffffff", "ansi_black", "ansi_bright_white", "#000000"),
    "good": ("#5faf5f", "#005f00", "ansi_green", "ansi_blue", "#5fff5f"),
    "wait": ("#5fafaf", "#005f87", "ansi_cyan", "ansi_blue", "#5fffff"),
    "warn": ("#d7af5f", "#875f00", "ansi_yellow", "ansi_magenta", "#ffff00"),
    "bad": ("#ff5f5f", "#af0000", "ansi_bright_red", "ansi_red", "#ff8787"),
    "flag-text": ("#121212", "#ffffff", "ansi_black", "ansi_black", "#000000"),
    "flag-ground": ("#d7af5f", "#875f00", "ansi_yellow", "ansi_yellow", "#ffff00"),
    "series-1": ("#0087d7", "#0000d7", "ansi_bright_cyan", "ansi_blue", "#5fafff"),
    "series-2": ("#ffd75f", "#af8700", "ansi_bright_yellow", "ansi_red", "#ffd700"),
    "series-3": ("#87ffaf", "#5f875f", "ansi_bright_red", "ansi_black", "#00ffaf"),
    "series-4": ("#d75f00", "#870000", "ansi_bright_blue", "ansi_magenta", "#ff875f"),
    "series-5": ("#afd7ff", "#0087ff", "ansi_magenta", "ansi_bright_red", "#afffff"),
    "series-6": ("#d787af", "#d75faf", "ansi_bright_green", "ansi_bright_black", "#ff87d7"),
}
THEMES: Mapping[str, str] = {  # in the order of the columns, with words for a list of them
    "rl-dark": "light on dark",
    "rl-light": "dark on light",
    "ansi": "the terminal's own colors, on a dark ground",
    "ansi-light": "the terminal's own colors, on a light ground",
    "high-contrast": "white on black, nothing faint",
}


class Themes:
    """Runs in the app's thread. Gives the app its colors.

    last: the theme that was chosen last, "" for none. save: saves the name of the one that is chosen; may take a while.
    """

    def __init__(self, app: App[Any], last: str, save: Callable[[str], None] | None) -> None:
        self._app, self._last, self._save = app, last, save

    def apply_first(self, requested: str | None) -> None:
        """The app has the requested colors, else those chosen last, else what suits the terminal. Call it on load."""
        for name in THEMES:
            self._app.register_theme(textual_theme(name))
        suited = FOR_16_COLORS if self._app.console.color_system == "standard" else DEFAULT
        name = next(name for name in (requested or "", self._last, suited) if name in THEMES)
        self._app.set_reactive(App.theme, name)  # assigning it would read app.tcss twice: 80 ms
        self._app.set_class("light" not in name, "-dark-mode")
        self._app.set_class("light" in name, "-light-mode")
        self._app.stylesheet.set_variables(self._app.get_css_variables())
        follow_terminal_colors(self._app)
        if self._app.no_color:  # Textual turns colors to grays; NO_COLOR asks for none at all
            filter_by(self._app, NoColor())

    def choose(self, name: str = "") -> str:
        """Choose that theme, or the next one without a name; returns its name."""
        names = list(THEMES)
        chosen = name or names[(names.index(self._app.theme) + 1) % len(names)]
        self._app.theme = chosen
        if self._save is not None:
            asyncio.get_running_loop().run_in_executor(None, self._save, chosen)
        return chosen


def colors_of(name: str) -> Mapping[str, str]:
    """The colors of that theme: the variables of app.tcss."""
    column = list(THEMES).index(name)
    return {meaning: colors[column] for meaning, colors in _COLORS.items()}


def textual_theme(name: str) -> Theme:
    """The theme for Textual, whose own widgets use it too."""
    colors, is_dark, is_ansi = colors_of(name), "light" not in name, name.startswith("ansi")
    of_widgets = BUILTIN_THEMES["ansi-dark" if is_dark else "ansi-light"].variables if is_ansi else {}
    return Theme(
        name=name,
        primary=colors["accent-color"],
        secondary=colors["accent-color"],
        accent=colors["accent-color"],
        warning=colors["warn"],
        error=colors["bad"],
        success=colors["good"],
        foreground=colors["text-plain"],
        background=colors["ground"],
        surface=colors["raised"],
        panel=colors["raised"],
        dark=is_dark,
        ansi=is_ansi,
        variables={**of_widgets, **colors},
    )
