"""Turns, opponents and ratings are those of mlagents 1.1.0, recorded by tests/benchmarks/self_play_controller.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.running.self_play.decisions import decide, largest_difference

RECORDED = [
    json.loads(line) for line in Path(__file__).with_name("decisions_of_mlagents.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("pair", RECORDED, ids=[str(pair["case"]["teams"]) for pair in RECORDED])
def test_generated_trajectories_are_decided_on_as_ml_agents_does(pair: dict[str, Any]) -> None:
    answer = pair["answer"]
    assert answer[-1]["games"] > 30
    assert len({after["learning"] for after in answer}) > 1
    assert largest_difference(decide(pair["case"]), answer) < 1e-9
