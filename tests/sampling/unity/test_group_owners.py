"""Groups of which agents have different behaviors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rl_tui.engine.sampling.environments.unity.group_owners import GroupOwners
from rl_tui.engine.specs import DecisionSteps, Steps


def lines_after(*answers: Mapping[str, list[int] | None]) -> list[str]:
    """Warnings after messages with an agent for each number, that of its group; None for a behavior without any."""
    lines: list[str] = []
    owners = GroupOwners(lines.append)
    for answer in answers:
        steps = {}
        for name, groups in answer.items():
            rewards = np.zeros(len(groups or [0]), np.float32)
            ids = None if groups is None else np.array(groups)
            steps[name] = Steps(DecisionSteps(np.arange(len(rewards)), (rewards[:, None],), rewards, group_ids=ids))
        owners.look(steps)
    return lines


def test_a_group_of_two_behaviors_is_named_once() -> None:
    mixed = {"Goalie?team=0": [3, 4, 4], "Striker?team=0": [4, 5]}
    (line,) = lines_after(mixed, mixed, {"Striker?team=0": [3]})
    assert line.startswith("group 4 has agents of Goalie and of Striker: ")


def test_a_group_that_changes_its_behavior_is_named() -> None:
    (line,) = lines_after({"Easy": [1, 2], "Walker": None}, {"Easy": [1], "Hard": [2]})
    assert line.startswith("group 2 has agents of Easy and of Hard: ")


def test_teams_of_a_behavior_and_agents_without_a_group_are_no_others() -> None:
    assert lines_after({"Soccer?team=0": [1, -1], "Soccer?team=1": [1, 2], "Goalie?team=1": [-1, 7]}) == []
