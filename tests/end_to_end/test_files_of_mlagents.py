"""Every trainer file of ML-Agents whose trainer exists trains in a player with the shapes of its example."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rl_tui
from tests.unity_player.executable import make_player

FOLDER = Path(os.environ.get("MLAGENTS_DATA", "/nowhere")) / "config"
MAX_STEPS = 100


def png(*shape: int) -> dict[str, Any]:
    return {"shape": shape, "form": "png", "properties": [1, 2, 2]}


# What is in the scene of each file, as ML-Agents' example has it.
BALL: dict[str, Any] = {"continuous": 2, "agents": 12}
SCENES: dict[str, dict[str, Any]] = {
    "3DBall": {**BALL, "observations": [[8]]},
    "3DBallHard": {**BALL, "observations": [[45]]},
    "Visual3DBall": {**BALL, "observations": [png(3, 64, 84)], "agents": 2},
    "Basic": {"branches": [3], "observations": [[20]], "agents": 1},
    "Crawler": {"continuous": 20, "observations": [[126], [32]], "agents": 10},
    "FoodCollector": {
        "continuous": 3, "branches": [2], "agents": 5, "observations": [{"shape": [6, 40, 40], "properties": [1, 2, 2]}]
    },
    "GridWorld": {
        "branches": [5], "has_masks": True, "agents": 9,
        "observations": [png(3, 64, 84), {"shape": [2], "is_goal": True}],
    },
    "Hallway": {"branches": [5], "observations": [[105]], "agents": 16},
    "PushBlock": {"branches": [7], "observations": [[105], [105]], "agents": 32},
    "Walker": {"continuous": 39, "observations": [[243]], "agents": 10},
    "WallJump": {"branches": [3, 3, 3, 2], "observations": [[84], [84], [56], [4]], "agents": 24},
}  # fmt: skip
BEHAVIORS = {"FoodCollector": ["GridFoodCollector"], "WallJump": ["BigWallJump", "SmallWallJump"]}
QUICK = ("ppo/GridWorld", "ppo/WallJump", "sac/3DBall")  # the others take a minute, in `make faults`


def files() -> Iterator[Any]:
    for path in sorted(FOLDER.rglob("*.yaml")):
        name = path.relative_to(FOLDER).with_suffix("").as_posix()
        if path.stem in SCENES and path.parent.name in ("ppo", "sac"):
            yield pytest.param(path, id=name, marks=() if name in QUICK else pytest.mark.faults)


@pytest.mark.skipif(not FOLDER.is_dir(), reason="MLAGENTS_DATA names no folder of ML-Agents' files")
@pytest.mark.parametrize("path", [*files()])
def test_file_of_mlagents_trains_in_a_player_of_its_shapes(path: Path, tmp_path: Path) -> None:
    names = BEHAVIORS.get(path.stem, [path.stem])
    spec = [{"name": f"{name}?team=0", **SCENES[path.stem]} for name in names]
    run = rl_tui.train(
        path,
        env=str(make_player(tmp_path)),
        results_dir=tmp_path,
        env_args=["--task", "crowd", "--spec", json.dumps(spec)],
        no_graphics=True,
        set={f"behaviors.{name}.max_steps": MAX_STEPS for name in names},
        quiet=True,
    )
    assert {name: behavior.step >= MAX_STEPS for name, behavior in run.view.behaviors.items()} == dict.fromkeys(
        names, True
    )
    assert all((run.path / f"{name}.onnx").stat().st_size > 0 for name in names)
