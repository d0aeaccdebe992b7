"""A saving process is killed at random moments: nothing promised is lost, nothing torn is ever seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("RL_TUI_FAULT_KILLS", "100"))


@pytest.mark.parametrize(
    "kills", [10, pytest.param(KILLS, marks=pytest.mark.slow), pytest.param(1000, marks=pytest.mark.faults)]
)
def test_killing_a_saving_process_loses_nothing_it_promised(tmp_path: Path, kills: int) -> None:
    command = [sys.executable, "-m", "tests.faults.kill_saving", str(tmp_path), str(kills), "11"]
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, cwd=ROOT, env=one_thread, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    tally = json.loads(result.stdout)
    assert (tally["kills"], tally["lost"], tally["torn"]) == (kills, 0, 0)
    assert tally["inside"] >= kills / 10, "hardly any kill fell inside a write: the test proves nothing"
    assert tally["promised"] >= kills / 2, "hardly anything was promised: the test proves nothing"
