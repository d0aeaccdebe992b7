"""What groups of agents earn, how many there are, and how many of their agents end early."""

from __future__ import annotations

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.group_tags import EARLY_ENDS, GROUP_RETURN, GROUP_SIZE, GROUPS
from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.drawing.text import count, left, number, right

TAGS = frozenset((GROUP_RETURN, GROUPS, GROUP_SIZE, EARLY_ENDS))


def group_lines(behavior: BehaviorView, trend: Line, width: int, name_width: int, value_width: int) -> list[Line]:
    """Of the newest summary. trend: of what groups earn; nothing where there are none."""
    metrics = behavior.metrics
    if GROUP_RETURN not in metrics:
        return []
    earned = Span(right(number(metrics[GROUP_RETURN]), value_width))
    size, early = metrics.get(GROUP_SIZE, 0.0), metrics.get(EARLY_ENDS, 0.0)
    ends = f", {_about(early)} end early" if early else ""
    forms = f"  of {_about(size)} agent{'' if size == 1 else 's'}{ends}", f"  of {_about(size)}{ends}"
    words = next((form for form in forms if name_width + value_width + len(form) < width - 1), forms[-1])
    return [
        line(Span(" " + left("group total", name_width), "dim"), earned, "  ", *trend),
        line(
            Span(" " + left("groups", name_width), "dim"),
            Span(right(count(metrics.get(GROUPS, 0.0)), value_width)),
            Span(words, "dim"),
        ),
    ]


def _about(agents: float) -> str:
    """A mean number of agents, with a digit behind the point where it is small."""
    return f"{agents:.2g}" if agents < 10 else f"{agents:.0f}"
