"""What a rank does with its blocks when all go on."""

from __future__ import annotations

from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any, cast

from rl_tui.engine.running.environment_runner import EnvironmentRunner
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.ranks.agreement import Agreement
from rl_tui.engine.running.ranks.link import Link
from rl_tui.engine.running.ranks.messages import Advance, GoOn
from rl_tui.engine.running.ranks.rank_meter import RankMeter
from rl_tui.engine.running.ranks.ranked_learning import RankedLearning
from rl_tui.engine.running.ranks.role import Role
from rl_tui.engine.running.threads import Control, UiPriority
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.specs import Trajectories

ROWS = 8


class ThreadedBehavior:
    """As much of a Behavior with a thread of its own as blocks pass on their way: the thread ends its work when the
    test says so. added: blocks that its trainer has got."""

    def __init__(self, name: str) -> None:
        self.spec = SimpleNamespace(name=name)
        self.is_threaded, self.is_learning = True, True
        self.learner = SimpleNamespace(
            is_over=False, rows_per_update=ROWS, lost=None, step=0, steps_left=SimpleNamespace(skip=lambda num: None)
        )
        self.added: list[object] = []

    def add(self, block: object) -> bool:
        """False: the block is reported to none."""
        self.added.append(block)
        return False


class GoesOn:
    """An Agreement by which all go on at once. end: called when this rank then waits for others."""

    num_turns = 0

    def __init__(self, end: Any) -> None:
        self._turns, self.wait = [GoOn()], lambda seconds: end()

    def next_turn(self) -> GoOn | None:
        """See Agreement."""
        return self._turns.pop() if self._turns else None


def test_block_of_a_behavior_whose_thread_is_busy_when_all_go_on_is_added_once_the_thread_is_free() -> None:
    """This rank waited with its part of another behavior, which has ended since. What it waits with now is no part."""
    behavior, control, bus = ThreadedBehavior("B"), Control(UiPriority()), EventBus()
    here, _ = Pipe()

    def end() -> None:
        behavior.is_learning = False

    runner = cast(EnvironmentRunner, SimpleNamespace(control=control, behaviors={"B": behavior}, follow_move=None))
    meter = cast(RankMeter, SimpleNamespace(count=lambda num_rows: None, waited=0.0))
    role = Role(1, 2, (Link(here, "rank 0 of 2", 60.0, lambda: 0.0),), 60.0, lambda: 0.0)
    ranked = RankedLearning(role, runner, Lessons(None, 1, bus), lambda stop: None, bus, meter)
    ranked._agreement = cast(Agreement, GoesOn(end))
    ranked._learning["B"] = Advance("B", ROWS, ROWS, step=0, updates=False, has_all_parts=False)
    block = cast(Trajectories, SimpleNamespace(num_rows=ROWS, num_learned=ROWS))
    ranked.submit("B", block)
    assert behavior.added == [block]
