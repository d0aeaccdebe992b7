"""What is remembered from one start to the next: theme, first keys, and for each run what the user chose to see."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import json
import math
import os
import threading
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from rl_tui.engine.session.view import RunView
from rl_tui.tui.charts.y_range import is_range
from rl_tui.tui.state.choices import RunsColumn, RunsOrder, ScreenState

if TYPE_CHECKING:
    from pydantic import TypeAdapter

RUNS_KEPT = 200
LARGEST_BYTES = 64_000
SECONDS_BETWEEN = 60.0  # that much of what was chosen is lost when the program is killed
NOT_KEPT: dict[str, Any] = {
    "selected": True,
    "cursors": True,
    "runs": True,  # the same for all: see Memory.runs_order
    "chart": {"crosshair", "page"},
}  # the next time they would mean something else


class Memory:
    """The files in `folder`, which need not exist. One that cannot be used counts as none and is a problem to tell."""

    def __init__(self, folder: Path) -> None:
        self._settings = folder / "settings.json"
        self._runs = folder / "runs"
        self._problems: list[str] = []

    def take_problems(self) -> list[str]:
        """What could not be read or written since the last call, one sentence each."""
        taken, self._problems = self._problems, []
        return taken

    def theme(self) -> str:
        """The theme chosen last; "" when none was."""
        name = self._read(self._settings).get("theme")
        return name if isinstance(name, str) else ""

    def keep_theme(self, name: str) -> None:
        """That theme is chosen at the next start."""
        self._keep_setting("theme", name)

    def knows_keys(self) -> bool:
        """Whether the user has seen a run before, or has pressed one of the keys that matter first."""
        return self._read(self._settings).get("knows_keys") is True or any(self._runs.glob("*.json"))

    def keep_keys_known(self) -> None:
        """Nobody is new at the next start."""
        self._keep_setting("knows_keys", True)

    def runs_order(self) -> RunsOrder:
        """How lists of runs were looked at last."""
        found = self._read(self._settings).get("runs")
        if not isinstance(found, dict) or found.get("column") not in get_args(RunsColumn):
            return RunsOrder()
        return RunsOrder(found["column"], found.get("is_reversed") is True, found.get("is_grouped") is True)

    def keep_runs_order(self, order: RunsOrder) -> None:
        """Lists of runs are looked at like that at the next start."""
        self._keep_setting("runs", asdict(order))

    def recall(self, run: Path) -> tuple[ScreenState, str] | None:
        """What was chosen in that run's folder, and the name of the selected behavior ("" without one)."""
        found = self._read(self._path(run))
        if not found:
            return None
        try:
            return _adapter().validate_python(found.get("state")), str(found.get("behavior", ""))
        except ValueError:
            self._problems.append(f"{self._path(run)}: is not what a screen has written, so it counts for nothing")
            return None

    def keep(self, run: Path, written: str) -> None:
        """What `as_text` gave of that run's screen is recalled at the next start. Takes a few milliseconds."""
        self._write(self._path(run), {"run": str(run.absolute()), **json.loads(written)})
        for forgotten in sorted(self._runs.glob("*.json"), key=_age)[RUNS_KEPT:]:
            with contextlib.suppress(OSError):  # the next one who writes tries again
                forgotten.unlink()

    def _keep_setting(self, name: str, value: object) -> None:
        self._write(self._settings, {**self._read(self._settings), name: value})

    def _path(self, run: Path) -> Path:
        return self._runs / f"{hashlib.sha256(os.fsencode(run.absolute())).hexdigest()[:24]}.json"

    def _read(self, path: Path) -> dict[str, object]:
        try:
            if not path.is_file():
                return {}
            if path.stat().st_size > LARGEST_BYTES:
                raise ValueError(f"longer than {LARGEST_BYTES} bytes")
            found = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(found, dict):
                raise ValueError("no JSON object")
        except (OSError, ValueError, RecursionError) as error:  # what is no UTF-8 or no JSON is a ValueError
            self._problems.append(f"{path}: cannot be read, so it counts for nothing: {error}")
            return {}
        return found

    def _write(self, path: Path, content: object) -> None:
        """The file is replaced as a whole, or stays as it is."""
        beside = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")  # two threads may write at once
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps(content, indent=1), encoding="utf-8")
            beside.replace(path)
        except OSError as error:
            self._problems.append(f"{path}: cannot be written: {error}")
            with contextlib.suppress(OSError):
                beside.unlink()


class RunMemory:
    """Lives in the app's thread. Brings back what was chosen as soon as the run's folder is known, and keeps it.

    Without a memory it does nothing.
    """

    def __init__(self, memory: Memory | None, view: RunView, state: ScreenState) -> None:
        self._memory, self._view, self._state = memory, view, state
        self._run: Path | None = None
        self._awaited = ""  # name of the behavior to be selected when it appears
        self._kept = ""
        self._kept_at = 0.0

    def recall(self) -> bool:
        """Show what was chosen the last time, once; returns whether anything has changed."""
        if self._memory is None or self._view.run is None:
            return False
        if self._run is None:
            self._run = Path(self._view.run.path)
            found = self._memory.recall(self._run)
            if found is not None:
                adopt(self._state, found[0])
                self._awaited = found[1]
            self._kept = as_text(self._state, self._awaited)
            return found is not None
        if self._awaited not in self._view.behaviors:
            return False
        if self._state.selected == 0:  # else the user was quicker
            self._state.selected = list(self._view.behaviors).index(self._awaited)
        self._awaited = ""
        return True

    def keep_seldom(self, now: float) -> None:
        """From time to time, what has changed is written in a thread. Call it in the app's loop."""
        if now - self._kept_at >= SECONDS_BETWEEN:
            self._kept_at = now
            if self._has_changed():
                asyncio.get_running_loop().run_in_executor(None, self._write)

    def keep(self) -> None:
        """What has changed is written."""
        if self._has_changed():
            self._write()

    def _has_changed(self) -> bool:
        if self._run is None:
            return False
        names = list(self._view.behaviors)
        selected = names[min(self._state.selected, len(names) - 1)] if names else ""
        before, self._kept = self._kept, as_text(self._state, self._awaited or selected)
        return before != self._kept

    def _write(self) -> None:
        if self._memory is not None and self._run is not None:
            self._memory.keep(self._run, self._kept)


def as_text(state: ScreenState, behavior: str) -> str:
    """All of the state that is worth keeping, as one line of JSON."""
    kept = _adapter().dump_python(state, mode="json", exclude=NOT_KEPT)
    return json.dumps({"behavior": behavior, "state": kept})


def adopt(state: ScreenState, remembered: ScreenState) -> None:
    """`state` is like `remembered`, except for what is not kept and for windows and ranges that are none."""
    window = remembered.chart.window
    if window is not None and not (window[0] < window[1] and math.isfinite(window[1] - window[0])):
        remembered.chart.window = None
    remembered.chart.y_ranges = {tag: each for tag, each in remembered.chart.y_ranges.items() if is_range(each)}
    for field in fields(state):
        if NOT_KEPT.get(field.name) is not True:
            setattr(state, field.name, getattr(remembered, field.name))


@functools.cache
def _adapter() -> TypeAdapter[ScreenState]:
    from pydantic import TypeAdapter  # here: it takes as long as half the time to the first picture

    return TypeAdapter(ScreenState)


def _age(path: Path) -> float:
    """Larger the older the file is."""
    try:
        return -path.stat().st_mtime
    except OSError:  # another screen has removed it
        return 0.0
