"""The list of plug-ins as text: paragraphs for people, JSON lines for programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby

from rl_tui.engine.config.plugins import ListedPlugin
from rl_tui.engine.session.text import safe_text

HEADINGS = {  # of each kind: what names one in a file
    "trainers": "trainers (trainer_type)",
    "reward_signals": "reward signals (a key of reward_signals)",
    "encoders": "encoders of images (vis_encode_type)",
    "environments": "environments (the word before the colon of env)",
    "writers": "writers of statistics (a key of writers)",
}
NARROWEST = 60  # columns; a narrower terminal breaks lines itself


def paragraphs(plugins: Sequence[ListedPlugin], width: int) -> str:
    """One paragraph for each kind, and a line for each plug-in: its name, its package and what it is."""
    columns = [max(len(text) for text in texts) for texts in zip(*map(_names, plugins), strict=True)]
    lines: list[str] = []
    for kind, of_kind in groupby(plugins, key=lambda plugin: plugin.kind):
        lines += [*([""] if lines else []), _heading(kind)]
        for plugin in of_kind:
            lines += _lines(plugin, columns, max(width, NARROWEST))
    return "".join(line + "\n" for line in lines)


def json_lines(plugins: Iterable[ListedPlugin]) -> str:
    """One object for each plug-in, with every field."""
    return "".join(json.dumps(asdict(plugin)) + "\n" for plugin in plugins)


def _heading(kind: str) -> str:
    of_whom = "in an unknown group" if kind.startswith("rl_tui.") else "of ML-Agents"
    return HEADINGS.get(kind, f"{of_whom} ({kind})")


def _names(plugin: ListedPlugin) -> tuple[str, str]:
    return safe_text(plugin.name), safe_text(plugin.package or "built in")


def _lines(plugin: ListedPlugin, columns: Sequence[int], width: int) -> Iterator[str]:
    start = "  ".join(["", *(f"{text:{column}}" for text, column in zip(_names(plugin), columns, strict=True)), ""])
    words = safe_text(_words(plugin))
    yield from textwrap.wrap(start + words, width, subsequent_indent=" " * len(start)) if words else [start.rstrip()]


def _words(plugin: ListedPlugin) -> str:
    match plugin.state:
        case "usable":
            return plugin.about
        case "not supported yet":
            return f"Not supported yet. {plugin.about}".rstrip()
        case "unusable":
            return f"{plugin.about} Cannot be used: {plugin.problem}".lstrip()
        case "hidden":
            return f"Not used: {plugin.problem}"
        case "not loaded":
            return f"Not loaded: {plugin.problem}"
