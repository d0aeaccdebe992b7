"""One environment with everything that lives from it: its collector and the learners it feeds."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rl_tui.engine.errors import EnvironmentFailure, NonFiniteError, RlTuiError
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.block_sizes import BlockSizes
from rl_tui.engine.running.call_timeout import CallTimer, call_with_timeout, locate_call
from rl_tui.engine.running.learner import Learner
from rl_tui.engine.running.progress import ProgressReporter
from rl_tui.engine.running.workers import Control, UiPriority
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.failures import InstanceFailure
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import (
    BehaviorStateChanged,
    CheckpointReason,
    EnvironmentFailed,
    LogEmitted,
    WaitsFor,
)
from rl_tui.engine.specs import State, Trajectories

RECEIVE_SECONDS = 0.1  # how long an idle collector may take to see a stop or a command


@dataclass(frozen=True, slots=True)
class Stuck:
    """A call that hangs: why it counts as hung, and its stack.

    evaluated: whose evaluation it is, None where agents train.
    """

    reason: str
    stack: str
    evaluated: Behavior | None


class EnvironmentWorker:
    """Lives in the thread `collector:NAME`. Owns pool, collector, policies, and the learners that are not threaded.

    Whoever starts a thread for `main` or `learn` joins `control` for it before.
    """

    def __init__(
        self,
        environment: str,
        make_pool: Callable[[], EnvironmentPool],
        make_behaviors: Callable[[EnvironmentPool], Mapping[str, Behavior]],
        seed: int,
        bus: EventBus,
        ui_priority: UiPriority,
        output: Path,
        start_seconds: float | None = None,
        names: Sequence[str] = (),
    ):
        """output: the file for the traceback of a failure. names: of the behaviors that the file has settings for.

        start_seconds: what making the environments may take; None where the pool sees to that itself.
        """
        self.environment = environment
        self.control = Control(ui_priority)
        self.behaviors: Mapping[str, Behavior] = {}
        self.pool: EnvironmentPool | None = None
        self.has_ended = False
        self.awaits_roll_back = False  # parked, since what trained has diverged
        self.waiting_seconds = 0.0  # parked, or for a learner that is behind
        self._is_lost = False
        self._stepped_at = time.monotonic()
        self._is_handing_over = False
        self._is_renewed = False  # a behavior that diverged was rolled back
        self._make_pool = make_pool
        self._make_behaviors = make_behaviors
        self._names = names
        self._seed = seed
        self._start_seconds = start_seconds
        self._bus = bus
        self._output = output

    def build(self) -> None:
        """Start the environments and make the learners. Called once, before `main`, in the run's thread.

        Raises RlTuiError; that an environment failed is then reported already.
        """
        start = time.monotonic()
        self.pool = self._make_pool()
        self._tell("starting")  # the last line where its constructor hangs
        try:
            self._start(self.pool)
        except EnvironmentFailure as error:
            self._report(error, self._names)
            for name in self._names:
                self._bus.publish(BehaviorStateChanged(name, "failed", str(error)))
            raise
        made = time.monotonic()
        where = f"worker processes {', '.join(map(str, self.pool.pids))}" if self.pool.pids else "this process"
        self._tell(f"{self.pool.num_instances} instances in {where}, started in {made - start:.3f} s")
        self.behaviors = self._make_behaviors(self.pool)
        self._tell(f"trainers of {', '.join(self.behaviors)} made in {time.monotonic() - made:.3f} s")

    def _start(self, pool: EnvironmentPool) -> None:
        """Start the environments, those of this process in a thread that may be left behind."""
        if self._start_seconds is None:
            pool.start()
        else:
            call_with_timeout(
                self._start_seconds, pool, pool.start, "Raise env_settings.timeout_wait if it needs longer"
            )

    def stuck(self, timeout: float, watch: CallTimer) -> Stuck | None:
        """The call into an environment of this process that has gone on for longer than that, if there is one."""
        for pool, evaluated in self._pools():
            seconds = watch.busy_seconds(pool)
            if seconds > timeout:
                at, stack = locate_call(pool)
                return Stuck(f"{pool.busy_with} has been busy for {seconds:.0f} s: it hangs{at}", stack, evaluated)
        return None

    def _pools(self) -> Iterator[tuple[EnvironmentPool, Behavior | None]]:
        """Every pool in use, and whom it evaluates."""
        if self.pool is not None:
            yield self.pool, None
        for behavior in self.behaviors.values():
            evaluator = behavior.learner.evaluator
            pool = None if evaluator is None else evaluator.pool
            if pool is not None:
                yield pool, behavior

    def lose(self, stuck: Stuck) -> None:
        """Give up a call that does not come back. Called by the coordinator: the stuck thread touches nothing more."""
        self._is_lost = True
        self._fail(InstanceFailure(stuck.reason, None, detail=stuck.stack))
        if stuck.evaluated is not None:
            self.finish(stuck.evaluated)
        self.control.stop("now")
        self.has_ended = True

    def silence(self) -> tuple[float, WaitsFor]:
        """For how many seconds no environment has made a step, and what is waited for. Any thread."""
        busy = [behavior.learner.busy_with for behavior in self.behaviors.values() if behavior.inbox is None]
        doing = next((each for each in busy if each is not None), None)
        waits_for: WaitsFor = doing or ("update" if self._is_handing_over else "environment")
        return time.monotonic() - self._stepped_at, waits_for

    def close(self) -> None:
        """Free what `build` made, where `main` will not run."""
        if self.pool is not None:
            self.pool.close()

    def main(self) -> None:
        """Collect until every behavior is finished, a stop is asked for, or the environment fails."""
        assert self.pool is not None
        try:
            while self._collect_until_over() and self._await_roll_back():
                self._is_renewed = True
        finally:
            self.control.leave()
            self.pool.close()
            self.has_ended = True

    def _collect_until_over(self) -> bool:
        """Collect until every behavior is over; whether one that diverged could go on from a checkpoint."""
        assert self.pool is not None
        try:
            if self._is_renewed:
                self._renew()
            self._collect(self.pool)
        except RlTuiError as error:
            if not self._is_lost:
                self._fail(error)
        return not self._is_lost and self._may_roll_back()

    def _may_roll_back(self) -> bool:
        learners = [behavior.learner for behavior in self.behaviors.values()]
        return self.control.is_attended and any(learner.can_roll_back for learner in learners)

    def _await_roll_back(self) -> bool:
        """Park until a behavior that diverged is rolled back, and say whether one was; not where nobody watches (any
        more), and not once a stop is asked for."""
        inline = [behavior for behavior in self.behaviors.values() if behavior.inbox is None]

        def serve() -> None:
            _serve(inline)
            if not (self._is_over() and self.control.is_attended):
                self.control.resume()

        self.awaits_roll_back = True
        self.control.pause()
        may_go_on = self.control.safe_point(serve)
        self.awaits_roll_back = False
        return may_go_on and not self._is_over()

    def _renew(self) -> None:
        """Other environments, in the place of those in which it diverged."""
        assert self.pool is not None
        self.pool.close()
        self.pool = self._make_pool()
        self._start(self.pool)
        for behavior in self.behaviors.values():
            behavior.learner.recount()

    def learn(self, behavior: Behavior) -> None:
        """The main of the thread of a threaded learner: blocks from its inbox until no more will come."""
        learner, inbox = behavior.learner, behavior.inbox
        assert inbox is not None

        def serve() -> None:
            learner.serve()
            if learner.is_over:  # its environment failed
                self.finish(behavior)

        def may_evaluate() -> bool:
            return not self._is_lost and self.control.safe_point(learner.serve)

        try:
            while self._may_learn(learner) and self.control.safe_point(serve):
                try:
                    block, state = inbox.get(timeout=RECEIVE_SECONDS)
                except queue.Empty:
                    if self.has_ended:
                        break
                    continue
                self._teach(behavior, block, state, may_evaluate)
        finally:
            self.control.leave()
        self.finish(behavior)

    def _may_learn(self, learner: Learner) -> bool:
        """Also once it has diverged: it may be rolled back."""
        return not learner.is_over or (self.control.is_attended and learner.can_roll_back)

    def rescue(self, behavior: Behavior, error: BaseException) -> None:
        """Save the behavior as a mistake of ours left it. Called in the thread of its learner, which then ends."""
        behavior.learner.fail(RlTuiError(f"{type(error).__name__}: {error}"))
        self.finish(behavior)

    def rescue_all(self, error: BaseException) -> None:
        """The same for every behavior, called in the collector's thread; threaded learners save themselves."""
        for behavior in self.behaviors.values():
            if behavior.inbox is None:
                self.rescue(behavior, error)
            else:
                behavior.learner.fail(RlTuiError(f"{type(error).__name__}: {error}"))

    def finish(self, behavior: Behavior) -> None:
        """Save for the last time, unless the user gave that up."""
        reason: CheckpointReason | None = "final" if behavior.learner.is_finished else "interrupted"
        if self.control.stop_mode == "now" and not behavior.learner.is_finished:
            reason = None
        behavior.learner.finish(reason)

    def _collect(self, pool: EnvironmentPool) -> None:
        policies = {name: behavior.policy for name, behavior in self.behaviors.items()}
        horizons = {name: behavior.time_horizon for name, behavior in self.behaviors.items()}
        collector = Collector(pool, policies, horizons)
        reporter = ProgressReporter(self.behaviors, collector, self._bus, lambda: self.waiting_seconds)
        block_sizes = {name: BlockSizes(name, behavior, collector) for name, behavior in self.behaviors.items()}
        inline = [behavior for behavior in self.behaviors.values() if behavior.inbox is None]
        resumed_at = max(behavior.learner.step for behavior in self.behaviors.values())
        self._tell("resetting every instance")
        self._stepped_at = time.monotonic()
        pool.reset(self._seed + resumed_at)  # a resumed run must not live through the same episodes again
        for name in () if self._is_renewed else self.behaviors:
            self._bus.publish(BehaviorStateChanged(name, "training"))
        try:
            while self._may_go_on(inline, reporter) and not self._is_over():
                if collector.receive(RECEIVE_SECONDS) and not self._is_lost:
                    self._stepped_at = time.monotonic()
                    self._deliver(collector, block_sizes, reporter, lambda: self._may_go_on(inline, reporter))
                if not self._is_lost:
                    reporter.tick()
        finally:
            if not self._is_lost:
                reporter.publish_all()
        if not self._is_lost:
            for behavior in inline:
                self.finish(behavior)

    def _may_go_on(self, inline: list[Behavior], reporter: ProgressReporter) -> bool:
        """Serve the learners of this thread, and park while paused."""
        if self._is_lost:
            return False
        if not self.control.is_paused:
            return self.control.safe_point(lambda: _serve(inline))
        reporter.publish_all()  # what a paused screen shows should be where training stands
        start = time.monotonic()
        may_go_on = self.control.safe_point(lambda: _serve(inline))
        self.waiting_seconds += time.monotonic() - start
        self._stepped_at = time.monotonic()
        reporter.resume()
        return may_go_on

    def _is_over(self) -> bool:
        return all(behavior.learner.is_over for behavior in self.behaviors.values())

    def _deliver(
        self,
        collector: Collector,
        block_sizes: Mapping[str, BlockSizes],
        reporter: ProgressReporter,
        may_go_on: Callable[[], bool],
    ) -> None:
        """Hand over every block that is due, load the weights that came of the last ones, and let agents act."""
        for name, behavior in self.behaviors.items():
            block_size = block_sizes[name]
            while collector.is_due(name, block_size.size):
                block = collector.take(name)
                block_size.count(block.num_rows)
                self._hand_over(behavior, block, may_go_on)
            weights = behavior.learner.weights.pop()
            if weights is not None:
                collector.load(name, weights)
                reporter.follow_rollbacks()
        if not self._is_lost:
            collector.act()
            for block_size in block_sizes.values():
                block_size.look_ahead()

    def _hand_over(self, behavior: Behavior, block: Trajectories, may_go_on: Callable[[], bool]) -> None:
        state = behavior.policy.state()
        if behavior.inbox is None:
            self._teach(behavior, block, state, may_go_on)
            return
        start = time.monotonic()
        self._is_handing_over = True
        while not behavior.learner.is_over:
            with suppress(queue.Full):
                behavior.inbox.put((block, state), timeout=RECEIVE_SECONDS)
                break
            if not self.control.safe_point(lambda: None):
                break
        self._is_handing_over = False
        self.waiting_seconds += time.monotonic() - start

    def _teach(self, behavior: Behavior, block: Trajectories, state: State, may_go_on: Callable[[], bool]) -> None:
        """A behavior that is over is saved at once, and goes on acting while others of its environment train."""
        learner = behavior.learner
        if learner.is_over:
            learner.skip(block.num_rows)
            return
        try:
            learner.learn_from(block, state, may_go_on, self.control.may_continue)
        except NonFiniteError as error:
            learner.fail(error)
            self.finish(behavior)
        if learner.is_finished:
            self.finish(behavior)

    def _tell(self, message: str) -> None:
        self._bus.publish(LogEmitted("debug", self.environment, message))

    def _fail(self, error: RlTuiError) -> None:
        """The environment is lost: its behaviors end with what they have learned."""
        self._report(error, tuple(self.behaviors))
        for behavior in self.behaviors.values():
            behavior.learner.fail(error)
            if behavior.inbox is None:
                self.finish(behavior)

    def _report(self, error: RlTuiError, behaviors: Sequence[str]) -> None:
        self._bus.publish(EnvironmentFailed(self.environment, tuple(behaviors), str(error), error.detail))
        if error.detail:
            self._bus.publish(self._keep_traceback(error))

    def _keep_traceback(self, error: RlTuiError) -> LogEmitted:
        """What the environment failed of stands whole in the output file; where that is, or why it could not be.

        Not left to the thread `writers`, which is behind: the end of the run is told last of all.
        """
        try:
            with self._output.open("a", encoding="utf-8", errors="backslashreplace") as log:
                log.write(f"{self.environment} failed: {error}\n{error.detail.rstrip()}\n")
        except OSError as refused:
            return LogEmitted("warning", "run", f"{self._output}: not written ({refused.strerror})")
        return LogEmitted("info", "run", f"the whole traceback of {self.environment} is in {self._output}")


def _serve(behaviors: list[Behavior]) -> None:
    for behavior in behaviors:
        behavior.learner.serve()
