"""Finds groups of which agents have different behaviors."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rl_tui.engine.specs import Steps

_MOST_GROUPS = 10_000  # that are looked at: a player may make new ones for ever


class GroupOwners:
    """Which behavior the agents of each group have. Owned by one environment.

    warn: called with a line for the user at the first group that has agents of two, at once or one after the other.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._owners: dict[int, str] = {}
        self._is_done = False

    def look(self, answer: Mapping[str, Steps]) -> None:
        """See what one message said of groups."""
        for name, steps in answer.items():
            groups = steps.decisions.group_ids
            if groups is not None and not self._is_done:
                self._look(name.partition("?")[0], np.unique(groups[groups >= 0]).tolist())

    def _look(self, behavior: str, groups: list[int]) -> None:
        for group in groups:
            owner = self._owners.setdefault(group, behavior)
            if owner != behavior:
                self._warn(
                    f"group {group} has agents of {owner} and of {behavior}: to each behavior its own agents are the "
                    "whole group. Give agents that learn together one behavior"
                )
                self._is_done = True
                return
        self._is_done = len(self._owners) >= _MOST_GROUPS
