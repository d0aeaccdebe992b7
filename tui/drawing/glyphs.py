"""The few signs the screen is drawn with, and what stands for them where only ASCII is safe."""

from __future__ import annotations

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
    bar: str = "━"
    bar_rest: str = "─"
    tick: str = "┤"
    wall: str = "│"
    corner: str = "└"
    floor: str = "─"
    dot: str = "·"
    ellipsis: str = "…"
    levels: str = "▁▂▃▄▅▆▇"
    full: str = "█"
    braille: bool = True

    @property
    def beyond(self) -> tuple[str, str]:
        """Where a curve goes on above and below what is drawn."""
        return self.rising, self.falling

    def of(self, state: RunState | BehaviorState) -> str:
        """The sign of a state; the state's word always stands beside it."""
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
    bar="#",
    bar_rest="-",
    tick="+",
    wall="|",
    corner="+",
    floor="-",
    dot="-",
    ellipsis="~",
    levels="_.-~=+*",
    full="#",
    braille=False,
)


def glyphs_for(environment: Mapping[str, str], wants_ascii: bool = False) -> Glyphs:
    """The signs that the terminal can show, by the variables of the environment."""
    if wants_ascii or environment.get("TERM") == "linux":  # the console's font has no braille
        return ASCII
    names = (environment.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale_name = next((name for name in names if name), "")
    has_unicode = "utf8" in locale_name.lower().replace("-", "") or (not locale_name and sys.flags.utf8_mode == 1)
    return UNICODE if has_unicode else ASCII
