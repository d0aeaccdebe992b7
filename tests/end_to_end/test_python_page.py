"""The examples of docs/python.md about whole runs, as one program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rl_tui.engine.config.loading import load_config
from rl_tui.engine.session.messages import CheckpointSaved, HyperparameterChanged, RunStateChanged
from tests.deadline import DEADLINE_SECONDS
from tests.end_to_end.program import ROOT, events_of, surroundings

PAGE = (ROOT / "docs/python.md").read_text()
EXAMPLES = re.findall(r"```python run\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.slow
def test_examples_of_whole_runs_do_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text("\n\n".join(EXAMPLES))
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "page.py"],
        cwd=tmp_path, env=surroundings(), capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert re.search(r"results/first \{'CartPole': \d+", done.stdout)
    assert re.search(r"\n\d+ MetricsReported\(behavior='CartPole', step=10000", done.stdout)
    assert re.search(r"results/second/CartPole/checkpoints/CartPole-1\d+\n", done.stdout)
    assert "0 None\n" in done.stdout
    assert re.search(r"\nCartPole at step 5000: \d+", done.stdout)
    results = tmp_path / "results"
    endings = {
        run: [e for e in events_of(results / run) if isinstance(e, RunStateChanged)][-1]
        for run in ("first", "second", "corridor")
    }
    assert {run: ending.state for run, ending in endings.items()} == {
        "first": "finished",
        "second": "stopped",
        "corridor": "finished",
    }
    (change,) = [event for event in events_of(results / "second") if isinstance(event, HyperparameterChanged)]
    assert change.new == 1e-4
    asked = [e for e in events_of(results / "second") if isinstance(e, CheckpointSaved) and e.reason == "asked"]
    assert len(asked) == 1
    assert load_config(results / "corridor/configuration.yaml").env_settings.env == "__main__:Corridor"
