"""`rl-tui replay RUN --plot`: the curves of a recorded run as text on stdout."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

from rl_tui.engine.config.diagnostics import suggest
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.archive import Archive
from rl_tui.tui.charts.drawn_metrics import first_metrics
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.charts.headline import headline
from rl_tui.tui.charts.metrics import metric_order, metric_title
from rl_tui.tui.charts.plotext_figure import plotext_text
from rl_tui.tui.charts.run_figure import run_figure
from rl_tui.tui.charts.state import ChartState
from rl_tui.tui.command_line.command_arguments import SMALLEST_PLOT, ReplayArguments
from rl_tui.tui.drawing.glyphs import glyphs_for
from rl_tui.tui.drawing.text import number

PIPED = 80, 24  # cells where stdout is no terminal


def plot(arguments: ReplayArguments) -> str:
    """The chart, and a line for each curve. Raises ConfigError if there is no such run, behavior, or metric."""
    view = RunView()
    for envelope in Archive(Path(arguments.results_dir)).events(arguments.run):
        view.apply(envelope)
    names = list(view.behaviors)
    if not names:
        raise ConfigError(f"{arguments.run}: the run has no behavior")
    has_all = arguments.behavior is None and len(names) > 1
    chosen = names[0]
    if arguments.behavior is not None:
        chosen = _named(arguments.behavior, {name: name for name in names}, f"{arguments.run}: no behavior")
    behaviors = list(view.behaviors.values()) if has_all else [view.behaviors[chosen]]
    headline_tags = [tag for behavior in behaviors for tag in behavior.headline_metrics]
    tags = metric_order((tag for behavior in behaviors for tag in behavior.tags), headline_tags)
    known = {tag: tag for tag in tags}
    for tag in tags:
        known.setdefault(metric_title(tag), tag)
    metrics = first_metrics(behaviors)
    if arguments.plot:
        metrics = [_named(arguments.plot, known, f"{arguments.run}: no metric")]
    state = ChartState(metrics=metrics, has_all_behaviors=has_all)
    glyphs = glyphs_for(os.environ, arguments.options.is_ascii)
    figure = run_figure(view, names.index(chosen), state, glyphs)
    named = " + ".join(metric_title(metric) for metric in metrics)
    words = named, "" if has_all else chosen, arguments.run, f"smooth {state.smoothing:g}"
    title = safe_text(f" {glyphs.dot} ".join(word for word in words if word))
    below = legend(figure) if figure is not None else []
    width, height = arguments.size or _terminal_size()
    chart_height = max(SMALLEST_PLOT[1], height - len(below))
    chart = plotext_text(figure, title, named, width, chart_height, glyphs) if figure is not None else ""
    if not chart:
        reason = f"{arguments.run}: no value of {' or '.join(metrics)} is finite.{others(behaviors, tags)}"
        raise ConfigError(safe_text(reason))
    return "\n".join((chart, *below)) + "\n"


def others(behaviors: Sequence[BehaviorView], tags: Sequence[str]) -> str:
    """Which of these metrics have values, as a sentence; "" for none."""
    histories = [each for behavior in behaviors for each in behavior.histories.items()]
    known = {tag for tag, history in histories if any(map(isfinite, history.mean))}
    return f" There are values of {', '.join(tag for tag in tags if tag in known)}." if known else ""


def legend(figure: Figure) -> list[str]:
    """Label and name of each curve, and its values as it is drawn."""
    rows = []
    for curve in figure.curves:
        found = headline(figure, curve)
        if found is not None:
            values = f"last {number(found.last)}  lowest {number(found.lowest)}  highest {number(found.highest)}"
            rows.append(f" {curve.label} {curve.name}: {values}".replace("  ", " ", not curve.label))
    return rows


def _terminal_size() -> tuple[int, int]:
    """That of the terminal, without a line for the next prompt."""
    if not sys.stdout.isatty():
        return PIPED
    columns, rows = shutil.get_terminal_size()
    return max(SMALLEST_PLOT[0], columns), max(SMALLEST_PLOT[1], rows - 1)


def _named(typed: str, known: Mapping[str, str], what: str) -> str:
    """What has that name, in upper or lower case. Raises ConfigError with the most similar name, or with all."""
    lowered = {name.lower(): name for name in reversed(list(known))}
    name = typed if typed in known else lowered.get(typed.lower())
    if name is None:
        listed = f" It has {', '.join(dict.fromkeys(known.values()))}."
        raise ConfigError(safe_text(f"{what} {typed!r}.{suggest(typed, known) or listed}"))
    return known[name]
