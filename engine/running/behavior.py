"""What belongs to one behavior of a source."""

from __future__ import annotations

import queue
from dataclasses import dataclass
from typing import TypeAlias

from rl_tui.engine.running.learner import Learner
from rl_tui.engine.specs import Policy, State, Trajectories

Block: TypeAlias = tuple[Trajectories, State]  # experience, and the generator of the policy that made it


@dataclass(frozen=True, slots=True)
class Behavior:
    """A learner, the policy that acts for it, and how they are joined. inbox: None when the learner is not threaded."""

    learner: Learner
    policy: Policy
    time_horizon: int
    summary_freq: int
    inbox: queue.Queue[Block] | None
