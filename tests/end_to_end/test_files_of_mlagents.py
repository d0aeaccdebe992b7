"""Every trainer file of ML-Agents, with a player of its example's shapes: it trains, and is exported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rl_tui.engine.session.messages import CheckpointSaved, PolicyExported
from tests.end_to_end.program import events_of, run
from tests.unity_player.executable import make_player
from tests.unity_player.official import official_spec

FOLDER = Path(os.environ.get("MLAGENTS_DATA", "/nowhere")) / "config"
STEPS = 300
BEHAVIORS = {
    "FoodCollector": ["GridFoodCollector"],
    "PyramidsRND": ["Pyramids"],
    "Sorter_curriculum": ["Sorter"],
    "WallJump": ["BigWallJump", "SmallWallJump"],
}
QUICK = ("imitation/PushBlock", "poca/SoccerTwos", "sac/3DBall")  # the others: `make faults`


def files() -> Iterator[Any]:
    """Each file."""
    for path in sorted(FOLDER.rglob("*.yaml")):
        name = path.relative_to(FOLDER).with_suffix("").as_posix()
        marks = () if name in QUICK else pytest.mark.faults
        yield pytest.param(path, id=name, marks=marks)


def record_demonstrations(folder: Path, behavior: str, demo_path: str) -> None:
    """What a policy does in the player that has hardly learned: the files of ML-Agents' examples are not at hand."""
    (folder / "first.yaml").write_text(f"behaviors: {{{behavior}: {{max_steps: {STEPS}}}}}\n")
    for words in (
        ("first.yaml", "--no-ui", "--run-id", "first", "--env=./player"),
        ("demonstrations", "record", "first", demo_path, "--episodes", "2"),
    ):
        (folder / demo_path).parent.mkdir(parents=True, exist_ok=True)
        exit_code, stdout, stderr = run(*words, folder=folder)
        assert exit_code == 0, stdout + stderr


@pytest.mark.skipif(not FOLDER.is_dir(), reason="MLAGENTS_DATA names no folder of ML-Agents' files")
@pytest.mark.parametrize("path", [*files()])
def test_file_of_mlagents_trains_in_a_player(path: Path, tmp_path: Path) -> None:
    behaviors = BEHAVIORS.get(path.stem, [path.stem])
    make_player(tmp_path, "--task", "crowd", "--spec", official_spec(behaviors))
    if shown := re.findall(r"demo_path: (\S+)", path.read_text()):
        record_demonstrations(tmp_path, path.stem, shown[0])
    steps = [word for name in behaviors for word in ("--set", f"behaviors.{name}.max_steps={STEPS}")]
    words = ["--no-ui", "--run-id", "r", "--env=./player", *steps, "--env-args", "-logFile", "player.log"]
    exit_code, stdout, stderr = run(str(path), *words, folder=tmp_path)
    assert exit_code == 0, stdout + stderr
    events = events_of(tmp_path / "results/r")
    reached = {event.behavior: event.step for event in events if isinstance(event, CheckpointSaved)}
    assert {name: step >= STEPS for name, step in reached.items()} == dict.fromkeys(behaviors, True)
    assert {event.behavior for event in events if isinstance(event, PolicyExported)} == {*behaviors}
    assert all((tmp_path / f"results/r/{name}.onnx").stat().st_size > 0 for name in behaviors)
