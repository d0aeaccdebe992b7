"""One behavior of an environment: its learner, the policy that acts for it, and the way of experience between them."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from rl_tui.engine.errors import HookError, PluginError, RlTuiError, SyncError
from rl_tui.engine.process.tracebacks import name_and_text
from rl_tui.engine.running.hooks import HookStop
from rl_tui.engine.running.learner import Learner
from rl_tui.engine.running.self_play.live_league import LiveLeague
from rl_tui.engine.running.threads import Control
from rl_tui.engine.session.messages import CheckpointReason
from rl_tui.engine.specs import BehaviorSpec, Policy, State, Trajectories

QUEUE_SECONDS = 0.1  # how long a learner or collector that waits for the other may take to see a stop or a command

# Of a learner's thread, called with the behavior and its safe point. What is left in the queue must not refer to the
# behavior: a cycle would keep learners in memory after the end of a run.
Work: TypeAlias = Callable[["Behavior", Callable[[], bool]], None]


@dataclass(frozen=True, slots=True)
class Behavior:
    """Used by its collector's thread, and by the thread `learner:NAME` where it is threaded.

    control: of its environment's worker. works: of the learner's thread, None where it learns in the collector's.
    save_traceback: of a plug-in or a hook that failed. league: None without self-play.
    """

    spec: BehaviorSpec
    learner: Learner
    policy: Policy
    time_horizon: int
    summary_freq: int
    control: Control
    works: queue.Queue[Work] | None
    save_traceback: Callable[[PluginError | HookError], None]
    league: LiveLeague | None = None

    @property
    def is_threaded(self) -> bool:
        """Whether it learns in a thread of its own."""
        return self.works is not None

    def submit(self, block: Trajectories, should_continue: Callable[[], bool]) -> None:
        """Learn from the block, or queue it for the learner's thread, waiting while the queue is full."""
        state = self.policy.state()
        if self.works is None:
            self.learn_from(block, state, should_continue)
            return
        work = partial(_learn_from, block, state)
        while not self.learner.is_over:
            with suppress(queue.Full):
                self.works.put(work, timeout=QUEUE_SECONDS)
                return
            if not self.control.safe_point(lambda: None):
                return

    def learn_offline(self, should_continue: Callable[[], bool]) -> None:
        """Learn without experience, unless it is over."""
        if not self.learner.is_over:
            with self._ending():
                self.learner.learn_offline(should_continue, self.control.may_continue)

    def await_taken(self) -> None:
        """Wait until the learner's thread has begun with the newest block, so that what agents do next is at most one
        version behind."""
        while self.works is not None and not self.works.empty() and not self.learner.is_over:
            with self.works.not_full:
                if self.works.queue:
                    self.works.not_full.wait(QUEUE_SECONDS)
            if not self.control.safe_point(lambda: None):
                return

    def queue(self, work: Work) -> None:
        """On several ranks: have the learner's thread do this next."""
        assert self.works is not None
        self.works.put(work)

    @property
    def is_learning(self) -> bool:
        """On several ranks: whether the learner's thread has not done all of its work."""
        return self.works is not None and self.works.unfinished_tasks > 0

    def await_learned(self, seconds: float) -> None:
        """On several ranks: return once the learner's thread has done its work, or after that time."""
        assert self.works is not None
        with self.works.all_tasks_done:
            if self.works.unfinished_tasks:
                self.works.all_tasks_done.wait(seconds)

    def learn(self) -> None:
        """The main of the learner's thread: learn from queued blocks until no more will come."""
        if self.learner.num_ranks > 1:
            self._do_works()
            return
        assert self.works is not None
        learner, control = self.learner, self.control

        def serve() -> None:
            learner.serve()
            if learner.is_over:  # its environment failed
                self.finish()

        def should_continue() -> bool:
            return not control.is_lost and control.safe_point(learner.serve)

        try:
            while self._may_learn() and control.safe_point(serve):
                try:
                    work = self.works.get(timeout=QUEUE_SECONDS)
                except queue.Empty:
                    if control.has_ended:
                        break
                    continue
                work(self, should_continue)
        finally:
            control.leave()
        self.finish()

    def _do_works(self) -> None:
        """On several ranks: do what is queued, which others do at the same time, also where this rank is to park. The
        environment's thread serves commands meanwhile, and has the last word."""
        works, control = self.works, self.control
        assert works is not None

        def do_all(timeout: float = 0.0) -> None:
            with suppress(queue.Empty):
                while True:
                    work = works.get(timeout=timeout) if timeout else works.get_nowait()
                    try:
                        work(self, lambda: control.safe_point(lambda: None))
                    finally:
                        works.task_done()

        try:
            while not control.has_ended:
                do_all(QUEUE_SECONDS)
                control.safe_point(do_all)
        finally:
            control.leave()
        self.finish()

    def finish(self) -> None:
        """Save for the last time, unless the user stops without saving."""
        reason: CheckpointReason | None = "final" if self.learner.is_finished else "interrupted"
        if self.control.stop_mode == "now" and not self.learner.is_finished:
            reason = None
        if self.learner.has_ended:
            return
        self.learner.finish(reason)
        if isinstance(self.learner.failure, PluginError | HookError):
            self.save_traceback(self.learner.failure)

    def rescue(self, error: BaseException) -> None:
        """Save what was learned before an internal error. Called in the thread of its learner, which then ends."""
        self.learner.fail(RlTuiError(name_and_text(error)))
        self.finish()

    def _may_learn(self) -> bool:
        """Also after it has diverged: it may be rolled back."""
        return not self.learner.is_over or (self.control.is_attended and self.learner.can_roll_back)

    def learn_from(self, block: Trajectories, state: State, should_continue: Callable[[], bool]) -> None:
        """Once it is over, it is saved, and still acts while others of its environment train."""
        learner = self.learner
        if learner.is_over:
            learner.steps_left.skip(block.num_learned)
            return
        with self._ending():
            learner.learn_from(block, state, should_continue, self.control.may_continue)

    def add(self, block: Trajectories) -> bool:
        """On several ranks: add a block that they have not agreed on; whether it counts."""
        counts = False
        with self._ending():
            counts = self.learner.add(block, self.policy.state())
        return counts  # noqa: RET504  # False where that raised

    def advance(self, num_rows: int, num_sampled: int, updates: bool, should_continue: Callable[[], bool]) -> None:
        """On several ranks: count rows of all, and learn from them if `updates`."""
        with self._ending():
            self.learner.advance(num_rows, num_sampled, updates, should_continue, self.control.may_continue)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """What ends training in here is saved."""
        learner = self.learner
        try:
            yield
        except HookStop as stop:
            learner.stop(str(stop))
            self.finish()
        except RlTuiError as error:  # one of its trainer, of a hook, of another rank
            if isinstance(error, SyncError) and learner.num_ranks > 1:
                learner.lost = error  # the environment's thread finds out which rank it was, and ends the run
                return
            learner.fail(error)
            self.finish()
        if learner.is_finished:
            self.finish()


def _learn_from(block: Trajectories, state: State, behavior: Behavior, should_continue: Callable[[], bool]) -> None:
    behavior.learn_from(block, state, should_continue)
