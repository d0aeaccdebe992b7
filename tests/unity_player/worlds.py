"""The worlds that a player can have inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from tests.unity_player.arguments import Options
from tests.unity_player.ball import NUM_AGENTS, BallWorld
from tests.unity_player.basic import BasicWorld
from tests.unity_player.crowd import CrowdWorld, Group, groups_of
from tests.unity_player.messages import Acts, Brain, Said, Speech
from tests.unity_player.pitches import MOST_STEPS, NUM_PITCHES, SIDES
from tests.unity_player.soccer import PitchWorld

IMAGE = [1, 2, 2]  # properties: rows and columns may be shifted together
IMAGES = [
    {"name": "Color", "shape": [3, 20, 20], "form": "png", "properties": IMAGE},
    {"name": "Mapped", "shape": [3, 20, 20], "form": "png", "mapping": [0, 1, 2], "properties": IMAGE},
    {"name": "Gray", "shape": [1, 20, 20], "form": "png", "properties": IMAGE},
    {"name": "GrayMapped", "shape": [1, 20, 20], "form": "png", "mapping": [0, 0, 0], "properties": IMAGE},
    {"name": "Raw", "shape": [3, 20, 24], "properties": IMAGE},
    {"name": "ColorStack", "shape": [6, 22, 20], "form": "png", "mapping": [0, 1, 2, 3, 4, 5], "properties": IMAGE},
    {"name": "GrayStack", "shape": [2, 20, 20], "form": "png", "mapping": [0, 0, 0, 1, 1, 1], "properties": IMAGE},
    {"name": "Grid", "shape": [4, 20, 20], "form": "png", "mapping": [0, 1, 2, 3, -1, -1], "properties": IMAGE},
    {"name": "VectorSensor_size2", "shape": [2], "properties": [1]},
]
CROWDS = {
    "visual": json.dumps([{"name": "Visual", "agents": 2, "continuous": 1, "observations": IMAGES}]),
    "groups": json.dumps(
        [{"name": "Team", "agents": 8, "branches": [2, 3], "observations": [[3]], "size": 4, "has_masks": True}]
    ),
    "teams": json.dumps(
        [
            {"name": f"Striker?team={team}", "agents": 2, "branches": [3, 3, 3], "observations": [[31]], "episode": 50}
            for team in (0, 1)
        ]
    ),
    "crowd": json.dumps(
        [
            {"name": "Walker", "agents": 8, "continuous": 2, "observations": [[6]], "absent": 7},
            {"name": "Simple", "continuous": 1, "branches": [3], "observations": [[4]], "has_masks": True},
            {"name": "Team?team=1", "agents": 6, "branches": [2, 3], "observations": [[3]], "size": 3},
            {
                "name": "Buffer",
                "agents": 3,
                "branches": [3, 2],
                "observations": [[5, 3], {"shape": [3], "is_goal": True}, [3]],
                "late": 5,
                "period": 2,
                "episode": 3,
            },
        ]
    ),
}


class World(Protocol):
    """What happens in a player, one message after another."""

    brains: Mapping[str, Brain]

    def reset(self) -> Said:
        """New episodes; nothing is said of those that were running."""

    def step(self, acts: Mapping[str, Acts]) -> Said:
        """What follows the actions of the agents that waited. acts: of every behavior that had any."""


def make_world(options: Options, seed: int, num_areas: int, speech: Speech) -> World:
    """The world of a task, with as many of its areas as the trainer wants."""
    keeps_ids = options.ids == "stay"
    if options.task == "ball":
        num = (options.agents or NUM_AGENTS) * num_areas
        return BallWorld(options.behavior or "3DBall?team=0", seed, num, options.max_steps, keeps_ids)
    if options.task == "basic":
        return BasicWorld(options.behavior or "Basic?team=0", (options.agents or 1) * num_areas, options.max_steps)
    if options.task in SIDES:
        sides = [replace(side, name=_renamed(side.name, options.behavior)) for side in SIDES[options.task]]
        num = (options.agents or NUM_PITCHES * sides[0].size) // sides[0].size * num_areas
        return PitchWorld(sides, num, seed, min(options.max_steps, MOST_STEPS), keeps_ids)
    groups = [_changed(group, options) for group in groups_of(options.spec or CROWDS[options.task])]
    return CrowdWorld(groups, speech, seed, num_areas, keeps_ids)


def _changed(group: Group, options: Options) -> Group:
    """With the name and the number of agents of the arguments, if they have any. The team stays."""
    brain = replace(group.brain, name=_renamed(group.brain.name, options.behavior))
    return replace(group, brain=brain, agents=options.agents or group.agents)


def _renamed(name: str, wanted: str) -> str:
    """The wanted behavior, if there is one, with the team of the name, 0 where that has none."""
    behavior, _, team = name.partition("?")
    return f"{wanted.partition('?')[0] or behavior}?{team or 'team=0'}"
