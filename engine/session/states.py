"""The states of runs and behaviors, with the same word for each in events, lists and on screens.

finished: every behavior has reached its max_steps. stopped: by the user or a signal. unsaved: it ended, but its last
checkpoint could not be written. failed: because of an environment, a number that is not finite, or an internal error.
interrupted: its process ended without reporting it, which only other processes can detect.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

RunState: TypeAlias = Literal[
    "starting", "training", "paused", "stopping", "finished", "stopped", "unsaved", "failed", "interrupted"
]
BehaviorState: TypeAlias = Literal["starting", "training", "paused", "finished", "stopped", "failed", "interrupted"]
SummaryState: TypeAlias = RunState | Literal["unknown"]

REPORTED_ENDS = frozenset({"finished", "stopped", "unsaved", "failed"})  # reported by the run itself
ENDS = REPORTED_ENDS | {"interrupted"}
BAD_ENDS = frozenset({"unsaved", "failed"})
ACTIVE = frozenset({"starting", "training", "paused", "stopping"})
