"""What rank 0 takes for a rank that is lost, and what not."""

from __future__ import annotations

import time
from multiprocessing import Pipe

import pytest

from rl_tui.engine.errors import SyncError
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.ranks.leader import Leader
from rl_tui.engine.running.ranks.link import Link
from rl_tui.engine.running.ranks.messages import Report
from rl_tui.engine.running.ranks.role import Role
from rl_tui.engine.running.threads import Control, UiPriority
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import Stop


@pytest.mark.parametrize("is_stopped", [True, False])
def test_rank_that_closes_its_connection_has_left_once_it_has_the_stop_and_else_is_lost(is_stopped: bool) -> None:
    here, there = Pipe()
    role = Role(0, 2, (Link(here, "rank 1 of 2", 60.0, lambda: 0.0),), 60.0, lambda: 0.0)
    control = Control(UiPriority())
    leader = Leader(
        role, control, dict, Lessons(None, 1, EventBus()), lambda stop: None, EventBus(), lambda name: False
    )
    if is_stopped:
        control.stop("checkpoint")
    leader.exchange()
    there.close()
    if is_stopped:
        leader.exchange()
        leader.beat()
    else:
        with pytest.raises(SyncError, match="rank 1 of 2 was lost: its process has ended"):
            leader.exchange()
    leader.leave(None)


def test_rank_that_does_not_end_an_update_is_named_and_not_one_that_waited_for_it() -> None:
    """None says anything in an update. Those that waited in it speak once they have given up."""
    calls, speaks_at = 0, 40

    def clock() -> float:
        nonlocal calls
        calls += 1
        if calls == speaks_at:
            waited.send(Report())
        return calls / 2

    pipes = [Pipe(), Pipe()]
    waited, _ = (there for _, there in pipes)
    links = [Link(here, f"rank {rank} of 3", 5.0, clock) for rank, (here, _) in enumerate(pipes, 1)]
    role = Role(0, 3, links, 5.0, clock)
    control = Control(UiPriority())
    leader = Leader(
        role, control, dict, Lessons(None, 1, EventBus()), lambda stop: None, EventBus(), lambda name: False
    )
    calls = 30  # both were silent for longer than the deadline
    named = leader.named(SyncError("an update has not ended"))
    assert calls > speaks_at
    assert "rank 2 of 3 was lost: nothing was heard of it for" in str(named)
    received = [message for _, there in pipes if there.poll() and (message := there.recv())]
    assert [word.lost.reason for word in received] == [str(named)], "the one that is left knows it, too"


def test_only_other_rank_is_named_at_once_whatever_it_sent_before() -> None:
    times = iter([0.0])
    here, there = Pipe()
    there.send(Report())
    link = Link(here, "rank 1 of 2", 5.0, lambda: next(times, 10.0))
    control = Control(UiPriority())
    leader = Leader(
        Role(0, 2, [link], 5.0, lambda: 10.0), control, dict, Lessons(None, 1, EventBus()), lambda stop: None,
        EventBus(), lambda name: False,
    )  # fmt: skip
    named = leader.named(SyncError("an update has not ended"))
    assert str(named) == "rank 1 of 2 was lost: nothing was heard of it for 10 s"
    there.close()


def test_rank_that_was_asked_to_end_before_it_took_a_turn_is_not_lost() -> None:
    """It has left, and so the update of the others has not ended. They stop, too."""
    pipes = [Pipe(), Pipe()]
    links = [Link(here, f"rank {rank} of 3", 60.0, time.monotonic) for rank, (here, _) in enumerate(pipes, 1)]
    control, stops = Control(UiPriority()), list[Stop]()
    leader = Leader(
        Role(0, 3, links, 60.0), control, dict, Lessons(None, 1, EventBus()), stops.append, EventBus(), lambda _: False
    )
    other, leaving = (there for _, there in pipes)
    leaving.send(Report(is_stopped=True))
    leaving.close()
    assert leader.named(SyncError("an update has not ended")) is None
    assert control.stop_mode == "checkpoint"
    assert [stop.exit_code for stop in stops] == [143]
    assert other.recv().stop == "checkpoint"
