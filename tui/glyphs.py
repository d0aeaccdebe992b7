"""The few signs the screen is drawn with, and what stands for them where only ASCII is safe."""

from __future__ import annotations

from dataclasses import dataclass

from engine.session.messages import BehaviorState, RunState


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One cell each, except the ellipsis; levels: empty to full, for sparklines."""

    running: str = "●"
    paused: str = "‖"
    waiting: str = "◌"
    done: str = "✓"
    failed: str = "✗"
    warning: str = "!"
    best: str = "★"
    saved: str = "▴"
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
    braille: bool = True

    def of(self, state: RunState | BehaviorState) -> str:
        """The sign of a state; the state's word always stands beside it."""
        match state:
            case "training":
                return self.running
            case "paused":
                return self.paused
            case "finished":
                return self.done
            case "failed":
                return self.failed
            case _:
                return self.waiting


UNICODE = Glyphs()
ASCII = Glyphs(
    running="*",
    paused="=",
    waiting="o",
    done="+",
    failed="x",
    best="*",
    saved="^",
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
    braille=False,
)
