"""What a program sees of a run while it trains."""

from __future__ import annotations

import builtins
import io
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

import rl_tui
from rl_tui.engine.api import progress
from rl_tui.engine.session.behavior_view import BehaviorView
from tests.api.test_runs import settings, start
from tests.deadline import DEADLINE_SECONDS

ROOT = Path(__file__).parent.parent.parent


def text_of(table: Any, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, force_jupyter=False)
    console.print(table)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_table_has_a_row_for_each_behavior(tmp_path: Path) -> None:
    run = start(tmp_path)
    assert "starting" in text_of(progress.table_of(run)) or run.wait(DEADLINE_SECONDS)
    assert run.wait(DEADLINE_SECONDS)
    lines = text_of(progress.table_of(run)).splitlines()
    at = next(number for number, line in enumerate(lines) if line.split()[:1] == ["behavior"])
    title, head, row = "".join(lines[:at]), lines[at], lines[at + 2]  # a long path has several lines
    assert "".join(title.split()).startswith(f"{tmp_path}/run:finished")
    assert head.split() == ["behavior", "step", "steps/s", "return", "left"]
    assert row.split()[0] == "Walker"
    assert "512 of 512" in row
    assert row.split()[-1] == "finished"


@pytest.mark.parametrize(
    ("changes", "cells"),
    [
        ({}, ("Walker", "0", "", "", "", "starting")),
        ({"state": "training", "step": 1000, "max_steps": 10_000, "steps_per_second": 1500.0},
         ("Walker", "1,000 of 10,000", "1,500", "", "0:00:06", "training")),
        ({"state": "training", "step": 10, "max_steps": 10_000, "first_update_step": 100, "steps_per_second": 9.0},
         ("Walker", "10 of 10,000", "9", "", "", "filling")),
    ],
)  # fmt: skip
def test_row_has_what_is_known(changes: dict[str, Any], cells: tuple[str, ...]) -> None:
    assert progress.row_of(BehaviorView("Walker", **changes)) == cells


def test_terminal_has_the_table_below_the_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, height=30)
    monkeypatch.setattr("rich.console.Console", lambda: console)
    rl_tui.train(settings(checkpoint_interval=-1, checkpoint_seconds=-1), run_id="run", results_dir=tmp_path)
    shown = screen.getvalue()
    assert shown.count("[WARNING] run: behaviors.Walker.checkpoint_interval: no checkpoint before the end") == 1
    assert "512 of 512" in shown.rpartition("steps/s")[2]
    assert shown.endswith("\x1b[?25h"), "the cursor is shown again"


class ZMQInteractiveShell:
    """What a notebook's get_ipython returns, as far as rich looks at it."""


def test_notebook_has_one_table_that_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[Table] = []

    def display(table: Table, *, display_id: bool) -> Any:
        assert display_id
        shown.append(table)
        return types.SimpleNamespace(update=shown.append)

    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    rl_tui.train(settings(checkpoint_interval=-1, checkpoint_seconds=-1), run_id="run", results_dir=tmp_path)
    assert "finished" in text_of(shown[-1])
    assert "512 of 512" in shown[-1]._repr_mimebundle_([], [])["text/html"]
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 1
    assert said[0].startswith("[WARNING] run: behaviors.Walker.checkpoint_interval")


def test_types_are_checked_alike_whether_a_notebook_is_installed_or_not(tmp_path: Path) -> None:
    """What IPython says of its types differs by release, and its functions have none in some."""
    (tmp_path / "IPython").mkdir()
    (tmp_path / "IPython/py.typed").touch()
    (tmp_path / "IPython/display.py").write_text("def display(shown, display_id=None):\n    return display_id\n")
    (tmp_path / "cell.py").write_text("from IPython.display import display\n\nshown: object = display(1)\n")
    mypy = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), str(tmp_path / "cell.py")]
    surroundings = {**os.environ, "MYPYPATH": str(tmp_path)}
    ended = subprocess.run(
        mypy, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
