"""Lessons end when mlagents 1.1.0 ends them: its answers were recorded by tests/benchmarks/lesson_decisions.py."""

from __future__ import annotations

import json
from pathlib import Path

from tests.running.lessons.decisions import decide

RECORDED = Path(__file__).with_name("decisions_of_mlagents.jsonl")


def test_generated_curricula_are_decided_on_as_ml_agents_does() -> None:
    pairs = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    assert sum(max(map(sum, (lessons for lessons, _ in pair["answer"]["rounds"]))) for pair in pairs) > 60
    assert [decide(pair["case"]) for pair in pairs] == [pair["answer"] for pair in pairs]
