"""The behaviors of ML-Agents' own examples: what their agents see and do, as a crowd's spec.

The shapes are those of the example environments, not their worlds: see crowd.py for what happens in them. Numbers of
agents are smaller than in most scenes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

CAMERA = {"name": "CameraSensor", "form": "png", "properties": [1, 2, 2]}
GRID_6 = [0, 1, 2, 3, 4, 5]
WALL_JUMP = {"branches": [3, 3, 3, 2], "observations": [[74]]}

BEHAVIORS: dict[str, dict[str, Any]] = {
    "3DBall": {"agents": 12, "continuous": 2, "observations": [[8]]},
    "3DBallHard": {"agents": 12, "continuous": 2, "observations": [[45]]},  # 5 numbers, of the last 9 steps
    "Basic": {"agents": 1, "branches": [3], "observations": [[20]]},
    "BigWallJump": WALL_JUMP,
    "Crawler": {"continuous": 20, "observations": [[32], [126]]},
    "GridFoodCollector": {
        "continuous": 3,
        "branches": [2],
        "observations": [
            {"name": "GridSensor", "shape": [6, 40, 40], "form": "png", "mapping": GRID_6, "properties": [1, 2, 2]}
        ],
    },
    "GridWorld": {
        "branches": [5],
        "has_masks": True,
        "observations": [CAMERA | {"shape": [3, 64, 84]}, {"name": "GoalSensor", "shape": [2], "is_goal": True}],
    },
    "Hallway": {"branches": [5], "observations": [[1], [105]]},
    "PushBlock": {"branches": [7], "observations": [[105], [105]]},
    "PushBlockCollab": {
        "agents": 3,
        "size": 3,
        "branches": [7],
        "observations": [
            {"name": "GridSensor", "shape": [6, 20, 20], "form": "png", "mapping": GRID_6, "properties": [1, 2, 2]}
        ],
    },
    "Pyramids": {"branches": [5], "observations": [[56], [56], [56], [4]]},
    "SmallWallJump": WALL_JUMP,
    "SoccerTwos": {"agents": 2, "branches": [3, 3, 3], "observations": [[264], [72]]},
    "Sorter": {"branches": [3, 3, 3], "observations": [[7], {"name": "BufferSensor", "shape": [20, 22]}]},
    "Visual3DBall": {"continuous": 2, "observations": [CAMERA | {"shape": [3, 84, 84]}]},
    "Walker": {"continuous": 39, "observations": [[243]]},
}
TWO_TEAMS = {"SoccerTwos"}


def official_spec(behaviors: Iterable[str]) -> str:
    """For `--task crowd --spec`. Raises KeyError where the examples have no such behavior."""
    return json.dumps(
        [
            BEHAVIORS[behavior] | {"name": f"{behavior}?team={team}"}
            for behavior in behaviors
            for team in ((0, 1) if behavior in TWO_TEAMS else (0,))
        ]
    )
