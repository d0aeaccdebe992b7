"""Everything known about the selected behavior, in figures."""

from __future__ import annotations

from itertools import islice

from engine.session.messages import TimeSplit
from engine.session.text import safe_text
from engine.session.view import BehaviorView
from tui.charts.bar import bar
from tui.lines import Line, Span, line, state_tone, wrap
from tui.panes.base import Frame, Pane
from tui.text import count, fit, fit_path, left, number, percent, right

METRICS = {  # short name by ML-Agents' tag, in order of interest; others follow under their own names
    "Environment/Cumulative Reward": "avg reward",
    "Policy/Entropy": "entropy",
    "Losses/Policy Loss": "policy loss",
    "Losses/Value Loss": "value loss",
    "Policy/Learning Rate": "learn rate",
    "Policy/KL Divergence": "KL",
    "Policy/Clip Fraction": "clipped",
    "Policy/Explained Variance": "expl. var",
    "Policy/Epsilon": "epsilon",
    "Policy/Beta": "beta",
    "Policy/Extrinsic Value Estimate": "value",
    "Policy/Extrinsic Reward": "extrinsic",
}
SHOWN_ELSEWHERE = frozenset(("Environment/Episode Length", "Is Training"))
NAME_WIDTH, VALUE_WIDTH = 11, 8  # "environment"; the longest of `number`


class DetailPane(Pane):
    """Figures in two columns, then where the time goes."""

    seconds = 0.9  # figures that change faster cannot be read

    def inputs(self, frame: Frame) -> object:
        """How much there is to tell."""
        one = frame.behavior
        return one and (one.reason, one.num_parameters, len(one.metrics), one.time_split is None)

    def heading(self, frame: Frame) -> str:
        """Which behavior."""
        behavior = frame.behavior
        if behavior is None:
            return "Detail"
        algorithm = f" {frame.glyphs.dot} {safe_text(behavior.algorithm).upper()}" if behavior.algorithm else ""
        return fit(safe_text(behavior.name), 30, frame.glyphs.ellipsis) + algorithm

    def wanted_height(self, frame: Frame, width: int) -> int:
        """All of it."""
        return len(self.lines(frame, width, 0))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """What is most asked for comes first, for a low pane is cut at its end."""
        behavior = frame.behavior
        if behavior is None:
            return []
        split = time_lines(behavior.time_split, frame, width)
        top = [*_reason(behavior, width), *_pairs(_core(behavior), width)]
        setup = [*_pairs(_setup(behavior), width), *_environment(behavior, frame, width)]
        parts = [*top, *_pairs(_metrics(behavior), width)], split, setup
        rows = [row for part in parts if part for row in (*part, line())]
        return rows[:-1]


def _reason(behavior: BehaviorView, width: int) -> list[Line]:
    if not behavior.reason:
        return []
    tone = state_tone(behavior.state)
    return [line(Span(f" {row}", tone)) for row in wrap(safe_text(behavior.reason), width - 2, 4)] + [line()]


def _core(behavior: BehaviorView) -> list[tuple[str, str]]:
    return [
        ("reward", number(behavior.mean_return)),
        ("best", number(behavior.best_return)),
        ("length", number(behavior.mean_length)),
        ("episodes", count(behavior.num_episodes)),
        ("steps/s", count(behavior.steps_per_second)),
        ("updates", count(behavior.num_updates)),
    ]


def _metrics(behavior: BehaviorView) -> list[tuple[str, str]]:
    known = [(name, behavior.metrics[tag]) for tag, name in METRICS.items() if tag in behavior.metrics]
    others = [
        (safe_text(tag.rpartition("/")[2]).lower(), value)
        for tag, value in behavior.metrics.items()
        if tag not in METRICS and tag not in SHOWN_ELSEWHERE
    ]
    return [(name, number(value)) for name, value in known + others]


def _setup(behavior: BehaviorView) -> list[tuple[str, str]]:
    if not behavior.num_parameters:
        return []
    return [
        ("agents", count(behavior.num_agents)),
        ("parameters", count(behavior.num_parameters)),
        ("sampled", count(behavior.sampled)),
        ("threaded", "yes" if behavior.threaded else "no"),
    ]


def _environment(behavior: BehaviorView, frame: Frame, width: int) -> list[Line]:
    if not behavior.environment:
        return []
    name = fit_path(safe_text(behavior.environment), width - NAME_WIDTH - 2, frame.glyphs.ellipsis)
    return [line(Span(" " + left("environment", NAME_WIDTH + 1), "dim"), name)]


def _pairs(pairs: list[tuple[str, str]], width: int) -> list[Line]:
    """Names and values, as many pairs to a line as fit, at least one."""
    per_line = max(1, width // (NAME_WIDTH + VALUE_WIDTH + 2))
    rest = iter(pairs)
    rows = []
    while row := list(islice(rest, per_line)):
        spans = [
            span
            for name, value in row
            for span in (Span(left(name, NAME_WIDTH), "dim"), Span(right(value, VALUE_WIDTH)), Span("  "))
        ]
        rows.append(line(" ", *spans))
    return rows


def time_lines(split: TimeSplit | None, frame: Frame, width: int) -> list[Line]:
    """A bar and a percentage for each part of a behavior's wall time; nothing before the first is known."""
    if split is None:
        return []
    parts = {
        "environment": split.environment_seconds,
        "inference": split.inference_seconds,
        "update": split.update_seconds,
        "waiting": split.waiting_seconds,
        "other": split.other_seconds,
    }
    whole = sum(parts.values())
    if whole <= 0:
        return []
    bar_width = max(4, width - NAME_WIDTH - 9)
    return [
        line(
            Span(" " + left(name, NAME_WIDTH + 1), "dim"),
            *bar(seconds / whole, bar_width, frame.glyphs, "accent"),
            right(f"{percent(seconds, whole)}%", 5),
        )
        for name, seconds in parts.items()
        if seconds > 0 or name != "waiting"
    ]
