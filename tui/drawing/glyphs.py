"""The symbols of the screen, in Unicode and in ASCII."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rl_tui.engine.session.states import BehaviorState, RunState

Colors: TypeAlias = Literal["truecolor", "256", "standard", ""]  # of a terminal, as Rich names them; "": none


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One cell each, except the ellipsis; levels: empty to full, for sparklines."""

    running: str = "●"
    paused: str = "‖"
    waiting: str = "◌"
    done: str = "✓"
    stopped: str = "□"
    failed: str = "✗"
    warning: str = "!"
    best: str = "★"
    saved: str = "▴"
    lesson: str = "◆"
    changed: str = "Δ"
    rolled_back: str = "↺"
    note: str = "¶"
    evaluation: str = "■"
    rising: str = "▲"
    falling: str = "▼"
    marker: str = "▸"
    opened: str = "▾"
    closed: str = "▹"
    bar: str = "━"
    bar_rest: str = "─"
    tick: str = "┤"
    wall: str = "│"
    corner: str = "└"
    floor: str = "─"
    rule: str = "┈"
    dot: str = "·"
    ellipsis: str = "…"
    levels: str = "▁▂▃▄▅▆▇"
    full: str = "█"
    braille: bool = True

    @property
    def beyond(self) -> tuple[str, str]:
        """Marks of a curve that continues above and below the axis."""
        return self.rising, self.falling

    def of(self, state: RunState | BehaviorState) -> str:
        """The symbol of a state, which is always shown next to its word."""
        signs: dict[RunState | BehaviorState, str] = {
            "training": self.running,
            "paused": self.paused,
            "finished": self.done,
            "stopped": self.stopped,
            "unsaved": self.failed,
            "failed": self.failed,
            "interrupted": self.warning,
        }
        return signs.get(state, self.waiting)


UNICODE = Glyphs()
ASCII = Glyphs(
    running="*",
    paused="=",
    waiting="o",
    done="+",
    stopped="#",
    failed="x",
    best="*",
    saved="^",
    lesson="L",
    changed="u",
    rolled_back="<",
    note="n",
    evaluation="E",
    rising="^",
    falling="v",
    marker=">",
    opened="-",
    closed="+",
    bar="#",
    bar_rest="-",
    tick="+",
    wall="|",
    corner="+",
    floor="-",
    rule=" ",
    dot="-",
    ellipsis="~",
    levels="_.-~=+*",
    full="#",
    braille=False,
)


def glyphs_for(environment: Mapping[str, str], is_ascii: bool = False) -> Glyphs:
    """The symbols that the terminal can show, by its environment variables."""
    if is_ascii or environment.get("TERM") == "linux" or is_monochrome(environment):  # their fonts have no braille
        return ASCII
    names = (environment.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale_name = next((name for name in names if name), "")
    has_unicode = "utf8" in locale_name.lower().replace("-", "") or (not locale_name and sys.flags.utf8_mode == 1)
    return UNICODE if has_unicode else ASCII


def is_monochrome(environment: Mapping[str, str]) -> bool:
    """Whether the terminal is one of DEC's (vt100, vt220), which have neither colors nor Unicode."""
    return re.fullmatch(r"vt\d{2,3}(-.*)?", environment.get("TERM", "")) is not None
