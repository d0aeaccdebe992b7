"""The list of runs as text: a table for people, JSON lines for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from rich.cells import cell_len

from rl_tui.engine.session.summaries import BehaviorSummary, RunSummary, plain
from rl_tui.engine.session.text import counted, safe_text
from rl_tui.tui.drawing.text import count, duration, fit, left, number, right, round_count, score

HEADINGS = ("RUN", "STATE", "BEHAVIOR", "STEPS", "BEST CKPT", "MEAN 100", "AGE", "PATH")
NAMES = (HEADINGS.index("RUN"), HEADINGS.index("BEHAVIOR"))  # columns that shrink first
NUMBERS = tuple(HEADINGS.index(heading) for heading in ("STEPS", "BEST CKPT", "MEAN 100", "AGE"))
NARROWEST = 8  # of a column of names
GAP = "  "
ELLIPSIS = "..."  # a list may be read by anything


def table(runs: Sequence[RunSummary], results_dir: str, now: float, width: int = 80) -> str:
    """One line per run and behavior in `width` columns, without color; paths where there is room for all of them.

    Which process trains a run, if one does, and its note are below it. The last line counts the runs and names the
    folder.
    """
    where = safe_text(results_dir)
    if not runs:
        return f"no runs in {where}\n"
    rows = [(run, _rows(run, now)) for run in runs]
    widths = _widths([HEADINGS, *(row for _, of_run in rows for row in of_run)], width)
    lines = [_line(HEADINGS, widths)]
    for run, of_run in rows:
        lines += [_line(row, widths) for row in of_run]
        live = f"live: {run.process}, rl-tui attach {run.path}" if run.process else ""
        lines += [fit(f"{GAP}{safe_text(words)}", width, ELLIPSIS) for words in (live, run.note) if words]
    lines.append(f"{counted(len(runs), 'run')} in {where}")
    return "".join(line + "\n" for line in lines)


def json_lines(runs: Iterable[RunSummary], settings_of: Callable[[str], Mapping[str, object] | None]) -> str:
    """One object per run, as docs/runs.md describes it. settings_of: those of the run in a folder that differ from the
    defaults; None where they are unknown."""
    return "".join(json.dumps({**plain(run), "settings": settings_of(run.path)}) + "\n" for run in runs)


def _rows(run: RunSummary, now: float) -> list[tuple[str, ...]]:
    """The run's line, and one more for every further behavior."""
    age = "-" if run.last_event_at is None else duration(now - run.last_event_at)
    behaviors = [_cells(behavior) for behavior in run.behaviors] or [("-",) * 4]
    first = (safe_text(run.run_id), run.state, *behaviors[0], age, safe_text(run.path))
    return [first, *(("", "", *cells, "", "") for cells in behaviors[1:])]


def _cells(behavior: BehaviorSummary) -> tuple[str, ...]:
    steps = count(behavior.step)
    if behavior.max_steps:
        steps += f"/{round_count(behavior.max_steps)}"
    best = score(behavior.best_return, behavior.best_loss)
    last = number(behavior.last_return) if behavior.rating is None else f"elo {behavior.rating:.0f}"
    return safe_text(behavior.name), steps, best, last


def _widths(rows: Sequence[tuple[str, ...]], width: int) -> list[int]:
    """The width of each column; missing ones at the end are not drawn."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    if _total(widths) > width:
        widths.pop()
    while _total(widths) > width and max(widths[name] for name in NAMES) > NARROWEST:
        widths[max(NAMES, key=lambda name: widths[name])] -= 1
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        (right if column in NUMBERS else left)(row[column], width, ELLIPSIS) for column, width in enumerate(widths)
    ]
    return GAP.join(cells).rstrip()
