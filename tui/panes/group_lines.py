"""What groups of agents earn, how many there are, and how many of their agents end early."""

from __future__ import annotations

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.group_tags import EARLY_ENDS, GROUP_RETURN, GROUP_SIZE, GROUPS
from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.drawing.text import count, left, number, right

TAGS = frozenset((GROUP_RETURN, GROUPS, GROUP_SIZE, EARLY_ENDS))


def group_line(behavior: BehaviorView, trend: Line, name_width: int, value_width: int) -> list[Line]:
    """What they earned in the newest summary. trend: of that; nothing where there are none."""
    if GROUP_RETURN not in behavior.metrics:
        return []
    earned = Span(right(number(behavior.metrics[GROUP_RETURN]), value_width))
    return [line(Span(" " + left("group total", name_width), "dim"), earned, "  ", *trend)]


def group_pairs(behavior: BehaviorView) -> list[tuple[str, str]]:
    """How many they were in the newest summary, how many agents each had, and how many of these ended early."""
    metrics = behavior.metrics
    if GROUPS not in metrics:
        return []
    sizes = [("group size", GROUP_SIZE), ("early ends", EARLY_ENDS)]
    return [
        ("groups", count(metrics[GROUPS])),
        *((name, number(metrics[tag])) for name, tag in sizes if tag in metrics),
    ]
