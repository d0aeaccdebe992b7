"""What a run and a behavior can be doing, and how they can end: each end has one word, in events, lists and on screens.

finished: every behavior has reached its max_steps. stopped: the user or a signal ended it. unsaved: it ended, and its
last checkpoint could not be written. failed: an environment, a number or rl-tui itself ended it. interrupted: its
process has gone without reporting an end, which only others can see.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

RunState: TypeAlias = Literal[
    "starting", "training", "paused", "stopping", "finished", "stopped", "unsaved", "failed", "interrupted"
]
BehaviorState: TypeAlias = Literal["starting", "training", "paused", "finished", "stopped", "failed", "interrupted"]
SummaryState: TypeAlias = RunState | Literal["unknown"]

REPORTED_ENDS = frozenset({"finished", "stopped", "unsaved", "failed"})  # by the run itself, with its exit code
ENDS = REPORTED_ENDS | {"interrupted"}
BAD_ENDS = frozenset({"unsaved", "failed"})
ACTIVE = frozenset({"starting", "training", "paused", "stopping"})
