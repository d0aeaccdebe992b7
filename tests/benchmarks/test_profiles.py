"""The table of what the profiles earn: results that are kept are not trained for again."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.benchmarks.profiles import PEERS, Reached, main


def test_table_of_kept_results_says_which_marks_are_reached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    returns = {"Taxi PPO": (7.0, -90.0), "Acrobot PPO": (-95.0, -80.0)}
    results = [
        Reached(task, peer, seed, training + seed, greedy)
        for task, (training, greedy) in returns.items()
        for peer in PEERS
        for seed in (1, 2)
    ]
    kept = tmp_path / "results.json"
    kept.write_text(json.dumps([dataclasses.asdict(result) for result in results]))
    main(["--only", "Taxi,Acrobot", "--seeds", "1,2", "--json", str(kept)])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["Taxi", "PPO,", "rl-tui", "500,000", "8.0", "9.0", "8.5", "-90.0", "6", "reached"] in rows
    assert ["Acrobot", "PPO,", "rl-tui", "100,000", "-94.0", "-93.0", "-93.5", "-80.0", "-90", "MISSED"] in rows
    assert ["Acrobot", "PPO,", "sb3", "100,000", "-94.0", "-93.0", "-93.5", "-80.0"] in rows
