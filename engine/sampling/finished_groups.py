"""The groups of one behavior of which the last agent has ended, until they leave with a block of experience.

Shapes: N agents whose episodes ended in the same step, G groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import Bool, Int64


class FinishedGroups:
    """Owned by the collector's thread."""

    def __init__(self) -> None:
        self._ended_before: dict[int, int] = {}  # agents of groups that go on, by group
        self._finished: list[tuple[float, int, int]] = []  # return, agents, and those of them that ended early

    def add(self, groups: Int64, has_ended: Bool, earned: NDArray[np.float64]) -> None:
        """Agents have ended: the group of each, whether that has ended, too, and what it earned meanwhile, each [N]."""
        for group in np.unique(groups).tolist():
            of_group = groups == group
            count, before = int(of_group.sum()), self._ended_before.pop(group, 0)
            if has_ended[of_group].any():
                self._finished.append((float(earned[of_group].mean()), before + count, before))
            else:
                self._ended_before[group] = before + count

    def pop(self) -> dict[str, Any]:
        """What `Trajectories` has of those since the last call."""
        finished, self._finished = self._finished, []
        returns, sizes, early = zip(*finished, strict=True) if finished else ((), (), ())
        return {
            "group_returns": np.array(returns, np.float32),
            "group_sizes": np.array(sizes, np.int64),
            "early_ends": np.array(early, np.int64),
        }
