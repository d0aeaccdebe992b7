"""What rank 0 takes for a rank that is lost, and what not."""

from __future__ import annotations

from multiprocessing import Pipe

import pytest

from rl_tui.engine.errors import SyncError
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.ranks.leader import LOOK_SECONDS, Leader
from rl_tui.engine.running.ranks.link import Link
from rl_tui.engine.running.ranks.role import Role
from rl_tui.engine.running.threads import Control, UiPriority
from rl_tui.engine.session.bus import EventBus


@pytest.mark.parametrize("is_stopped", [True, False])
def test_rank_that_closes_its_connection_has_left_once_it_has_the_stop_and_else_is_lost(is_stopped: bool) -> None:
    now = 0.0
    here, there = Pipe()
    role = Role(0, 2, (Link(here, "rank 1 of 2", 60.0, lambda: now),), 60.0, lambda: now)
    control = Control(UiPriority())
    leader = Leader(
        role, control, dict, Lessons(None, 1, EventBus()), lambda stop: None, EventBus(), lambda name: False
    )
    if is_stopped:
        control.stop("checkpoint")
    now += 2 * LOOK_SECONDS
    leader.exchange()
    there.close()
    now += 2 * LOOK_SECONDS  # it looks again, as the last safe points before its own end do
    if is_stopped:
        leader.exchange()
        leader.beat()
    else:
        with pytest.raises(SyncError, match="rank 1 of 2 was lost: its process has ended"):
            leader.exchange()
    leader.leave(None)
