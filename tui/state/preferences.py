"""Preferences that are saved from one start to the next: the theme, the first keys, and the view of each run."""

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

from rl_tui.engine.session.live_view import LiveView
from rl_tui.tui.charts.y_range import is_range
from rl_tui.tui.state.choices import RunsColumn, RunsOrder, ScreenState

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MOST_VIEWS = 200
LARGEST_BYTES = 64_000
SAVE_SECONDS = 60.0  # from one save to the next: what was chosen since is lost when the program is killed
NOT_SAVED: dict[str, Any] = {
    "selected": True,
    "cursors": True,
    "runs": True,  # the same for all: see Preferences.runs_order
    "chart": {"crosshair", "page"},
}  # the next time they would mean something else


class Preferences:
    """The files in `folder`, which need not exist. One that cannot be read is ignored, and reported as a problem."""

    def __init__(self, folder: Path) -> None:
        self._settings = folder / "settings.json"
        self._runs = folder / "runs"
        self._problems: list[str] = []

    def pop_problems(self) -> list[str]:
        """What could not be read or written since the last call, one sentence each."""
        problems, self._problems = self._problems, []
        return problems

    def theme(self) -> str:
        """The theme chosen last; "" when none was."""
        name = self._read(self._settings).get("theme")
        return name if isinstance(name, str) else ""

    def save_theme(self, name: str) -> None:
        """The next start begins with that theme."""
        self._save_setting("theme", name)

    def knows_keys(self) -> bool:
        """Whether the user has seen a run before, or has pressed one of the first keys."""
        return self._read(self._settings).get("knows_keys") is True or any(self._runs.glob("*.json"))

    def save_keys_known(self) -> None:
        """The first keys are not shown again."""
        self._save_setting("knows_keys", True)

    def runs_order(self) -> RunsOrder:
        """The order of lists of runs that was chosen last."""
        found = self._read(self._settings).get("runs")
        if not isinstance(found, dict) or found.get("column") not in get_args(RunsColumn):
            return RunsOrder()
        return RunsOrder(found["column"], found.get("is_reversed") is True, found.get("is_grouped") is True)

    def save_runs_order(self, order: RunsOrder) -> None:
        """The next start shows lists of runs in that order."""
        self._save_setting("runs", asdict(order))

    def load_view(self, run: Path) -> tuple[ScreenState, str] | None:
        """The view that was saved for that run's folder, and the name of the selected behavior ("" without one)."""
        found = self._read(self._path(run))
        if not found:
            return None
        try:
            return _adapter().validate_python(found.get("state")), str(found.get("behavior", ""))
        except ValueError:
            self._problems.append(f"{self._path(run)}: was not written by a screen, so it is ignored")
            return None

    def save_view(self, run: Path, written: str) -> None:
        """The next start begins with that view of the run, as `to_json` gives it. Takes a few milliseconds."""
        self._write(self._path(run), {"run": str(run.absolute()), **json.loads(written)})
        for oldest in sorted(self._runs.glob("*.json"), key=_age)[MOST_VIEWS:]:
            with contextlib.suppress(OSError):  # the next save tries again
                oldest.unlink()

    def _save_setting(self, name: str, value: object) -> None:
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
            self._problems.append(f"{path}: cannot be read, so it is ignored: {error}")
            return {}
        return found

    def _write(self, path: Path, content: object) -> None:
        """The file is replaced as a whole, or stays as it is."""
        temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")  # threads may write at once
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
            temporary.replace(path)
        except OSError as error:
            self._problems.append(f"{path}: cannot be written: {error}")
            with contextlib.suppress(OSError):
                temporary.unlink()


class SavedView:
    """Runs in the app's thread. Restores the saved view as soon as the run's folder is known, and saves changes.

    Without preferences it does nothing.
    """

    def __init__(self, preferences: Preferences | None, live: LiveView, state: ScreenState) -> None:
        self._preferences, self._live, self._state = preferences, live, state
        self._run: Path | None = None
        self._awaited = ""  # name of the behavior to be selected when it appears
        self._saved = ""
        self._saved_at = 0.0

    def restore(self) -> bool:
        """Show what was saved the last time, once; returns whether anything has changed."""
        if self._preferences is None or self._live.view.run is None:
            return False
        if self._run is None:
            self._run = Path(self._live.view.run.path)
            found = self._preferences.load_view(self._run)
            if found is not None:
                restore(self._state, found[0])
                self._awaited = found[1]
            self._saved = to_json(self._state, self._awaited)
            return found is not None
        if self._awaited not in self._live.view.behaviors:
            return False
        if self._state.selected == 0:  # else the user was quicker
            self._state.selected = list(self._live.view.behaviors).index(self._awaited)
        self._awaited = ""
        return True

    def save_periodically(self, now: float) -> None:
        """From time to time, what has changed is written in a thread. Call it in the app's loop."""
        if now - self._saved_at >= SAVE_SECONDS:
            self._saved_at = now
            if self._has_changed():
                asyncio.get_running_loop().run_in_executor(None, self._write)

    def save(self) -> None:
        """What has changed is written."""
        if self._has_changed():
            self._write()

    def _has_changed(self) -> bool:
        if self._run is None:
            return False
        names = list(self._live.view.behaviors)
        selected = names[min(self._state.selected, len(names) - 1)] if names else ""
        before, self._saved = self._saved, to_json(self._state, self._awaited or selected)
        return before != self._saved

    def _write(self) -> None:
        if self._preferences is not None and self._run is not None:
            self._preferences.save_view(self._run, self._saved)


def to_json(state: ScreenState, behavior: str) -> str:
    """The part of the state that is saved, in one line."""
    saved = _adapter().dump_python(state, mode="json", exclude=NOT_SAVED)
    return json.dumps({"behavior": behavior, "state": saved})


def restore(state: ScreenState, saved: ScreenState) -> None:
    """`state` is like `saved`, except for what is not saved and for windows and ranges that are empty."""
    window = saved.chart.window
    if window is not None and not (window[0] < window[1] and math.isfinite(window[1] - window[0])):
        saved.chart.window = None
    saved.chart.y_ranges = {tag: each for tag, each in saved.chart.y_ranges.items() if is_range(each)}
    for field in fields(state):
        if NOT_SAVED.get(field.name) is not True:
            setattr(state, field.name, getattr(saved, field.name))


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
