"""One environment of a run: its collector, the behaviors in it, and what happens when it fails or hangs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from rl_tui.engine.errors import EnvironmentFailure, NonFiniteError, RlTuiError
from rl_tui.engine.process.tracebacks import name_and_text
from rl_tui.engine.running.announcements import save_traceback
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.call_timeout import CallTimer, call_with_timeout, locate_call
from rl_tui.engine.running.collection import Collection
from rl_tui.engine.running.environment_reports import publish_reports
from rl_tui.engine.running.lessons.follower import LessonFollower
from rl_tui.engine.running.progress import ProgressReporter
from rl_tui.engine.running.threads import Control, UiPriority
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.failures import InstanceFailure
from rl_tui.engine.sampling.pools.base import EnvironmentPool, never
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.environment_view import worker_word
from rl_tui.engine.session.messages import BehaviorStateChanged, EnvironmentFailed, WaitsFor
from rl_tui.engine.session.text import counted
from rl_tui.engine.specs import BehaviorSpec

RECEIVE_SECONDS = 0.1  # how long an idle collector may take to see a stop or a command


class BehaviorMaker(Protocol):
    """Makes the behaviors of one environment. Both methods raise RlTuiError."""

    def make_first(self, pool: EnvironmentPool, control: Control) -> Mapping[str, Behavior]:
        """Those that the environments have when they have just been made. Called in the run's thread."""

    def make_late(self, spec: BehaviorSpec, pool: EnvironmentPool, control: Control) -> Behavior:
        """One that has appeared since. Called in the collector's thread."""


class EnvironmentWorker:
    """Runs in the thread `collector:NAME`. Owns pool, collector, policies, and the learners that are not threaded.

    Before a thread starts for `main` or for a behavior that `build` made, its starter calls `control.join`. behaviors:
    replaced, never changed, when one appears; the supervisor then starts the thread of its learner.
    """

    def __init__(
        self,
        environment: str,
        make_pool: Callable[[], EnvironmentPool],
        maker: BehaviorMaker,
        seed: int,
        bus: EventBus,
        ui_priority: UiPriority,
        output: Path,
        start_seconds: float | None = None,
        names: Sequence[str] = (),
        start_note: str = "",
        follower: LessonFollower | None = None,
    ):
        """output: the file for the traceback of a failure. names: the behaviors that the configuration has.

        start_seconds: how long making the environments may take; None where the pool limits that itself.
        start_note: logged before that, where it takes long. follower: has given the pools that are made their
        environment parameters.
        """
        self.environment = environment
        self.control = Control(ui_priority)
        self.behaviors: Mapping[str, Behavior] = {}
        self.pool: EnvironmentPool | None = None
        self.failure: RlTuiError | None = None  # before the first behavior appeared, which would have it otherwise
        self.awaits_roll_back = False  # parked, since training has diverged
        self.waiting_seconds = 0.0  # parked, or for a learner that is behind
        self._stepped_at = time.monotonic()
        self._is_submitting = False  # to a threaded learner
        self._is_renewed = False  # a behavior that diverged was rolled back
        self._make_pool = make_pool
        self._maker = maker
        self._names = names
        self._seed = seed
        self._start_seconds = start_seconds
        self._start_note = start_note
        self._bus = bus
        self._output = output
        self._follower = follower

    def build(self, is_stopped: Callable[[], bool] = never) -> None:
        """Start the environments and make the learners. Called once, before `main`, in the run's thread.

        Raises StartStopped once `is_stopped`, and RlTuiError; the failure of an environment is then already published.
        """
        log, start = partial(self._bus.log, "debug", self.environment), time.monotonic()
        self.pool = self._make_pool()
        log("starting")  # the last line where its constructor hangs
        if self._start_note:
            self._bus.log("info", self.environment, self._start_note)
        try:
            self._start(self.pool, is_stopped)
        except EnvironmentFailure as error:
            self._publish_failure(error, self._names)
            for name in self._names:
                self._bus.publish(BehaviorStateChanged(name, "failed", str(error)))
            raise
        made = time.monotonic()
        pids = self.pool.worker_pids.values()
        where = f"worker processes {', '.join(map(str, pids))}" if pids else "this process"
        log(f"{counted(self.pool.num_instances, 'instance')} in {where}, started in {made - start:.3f} s")
        self.behaviors = self._maker.make_first(self.pool, self.control)
        log(f"trainers of {', '.join(self.behaviors)} made in {time.monotonic() - made:.3f} s")

    def _start(self, pool: EnvironmentPool, is_stopped: Callable[[], bool] = never) -> None:
        """Start the environments; where they are in this process, in a thread that can be abandoned."""
        if self._start_seconds is None:
            pool.start(is_stopped)
        else:
            advice = "Raise env_settings.timeout_wait if it needs longer"
            call_with_timeout(self._start_seconds, pool, pool.start, advice, is_stopped)

    @property
    def process_names(self) -> Mapping[int, str]:
        """What its worker processes are to the user, by process id. Any thread."""
        pids = {} if self.pool is None else self.pool.worker_pids
        word = worker_word(self.environment)
        return {pid: f"{word} {number} of {self.environment}" for number, pid in pids.items()}

    def close(self) -> None:
        """Free what `build` made, where `main` will not run."""
        if self.pool is not None:
            self.pool.close()

    def find_stuck_call(self, timeout: float, timer: CallTimer) -> tuple[InstanceFailure, Behavior | None] | None:
        """The call into an environment of this process that takes longer than that, if there is one, as a failure; and
        the behavior that it evaluates, None where agents train."""
        for pool, evaluated in self._pools():
            seconds = timer.busy_seconds(pool)
            if seconds > timeout:
                at, stack = locate_call(pool)
                reason = f"{pool.busy_with} has not returned for {seconds:.0f} s{at}"
                return InstanceFailure(reason, None, detail=stack), evaluated
        return None

    def _pools(self) -> Iterator[tuple[EnvironmentPool, Behavior | None]]:
        """Every pool in use, and the behavior that it evaluates."""
        if self.pool is not None:
            yield self.pool, None
        for behavior in self.behaviors.values():
            evaluator = behavior.learner.evaluator
            pool = None if evaluator is None else evaluator.pool
            if pool is not None:
                yield pool, behavior

    def abandon(self, failure: InstanceFailure, evaluated: Behavior | None) -> None:
        """Give up a call that does not return. Called by the coordinator: the stuck thread changes nothing more."""
        self.control.is_lost = True
        self._fail(failure)
        if evaluated is not None:
            evaluated.finish()
        self.control.stop("now")
        self.control.has_ended = True

    def idle_time(self) -> tuple[float, WaitsFor]:
        """For how many seconds no environment has made a step, and what it waits for. Any thread."""
        doing = next((each.learner.busy_with for each in self._inline if each.learner.busy_with is not None), None)
        waits_for: WaitsFor = doing or ("update" if self._is_submitting else "environment")
        return time.monotonic() - self._stepped_at, waits_for

    def main(self) -> None:
        """Collect until every behavior is finished, the run is stopped, or the environment fails."""
        assert self.pool is not None
        try:
            while self._collect_until_over() and self._await_roll_back():
                self._is_renewed = True
        finally:
            self.control.leave()
            self.pool.close()
            self.control.has_ended = True

    def rescue(self, error: BaseException) -> None:
        """Save what was learned before an internal error, except by threaded learners, which save themselves."""
        for behavior in self.behaviors.values():
            if behavior.is_threaded:
                behavior.learner.fail(RlTuiError(name_and_text(error)))
            else:
                behavior.rescue(error)

    def _collect_until_over(self) -> bool:
        """Collect until every behavior is over; whether one that diverged can resume from a checkpoint."""
        assert self.pool is not None
        try:
            if self._is_renewed:
                self._renew()
            self._collect(self.pool)
        except RlTuiError as error:
            if not self.control.is_lost:
                self._fail(error)
        if self.control.is_lost or not self.control.is_attended:
            return False
        return any(behavior.learner.can_roll_back for behavior in self.behaviors.values())

    def _await_roll_back(self) -> bool:
        """Park until a behavior that diverged is rolled back; whether one was. Ends without where no user is there (any
        more), and at a stop."""

        def serve() -> None:
            self._serve()
            if not (self._is_over() and self.control.is_attended):
                self.control.resume()

        self.awaits_roll_back = True
        self.control.pause()
        should_continue = self.control.safe_point(serve)
        self.awaits_roll_back = False
        return should_continue and not self._is_over()

    def _renew(self) -> None:
        """Replace the environments in which a behavior diverged."""
        assert self.pool is not None
        self.pool.close()
        self.pool = self._make_pool()
        self._start(self.pool)
        for behavior in self.behaviors.values():
            behavior.learner.recount()

    def _collect(self, pool: EnvironmentPool) -> None:
        running = Collection(
            pool, self.behaviors, lambda spec: self._meet(spec, pool), self._bus, lambda: self.waiting_seconds
        )
        self._bus.log("debug", self.environment, "resetting every instance")
        self._stepped_at = time.monotonic()
        pool.reset(self._seed + running.first_step)  # a resumed run must not see the same episodes again
        for name in () if self._is_renewed else running.behaviors:
            self._bus.publish(BehaviorStateChanged(name, "training"))
        try:
            while self._should_continue(running.reporter) and not self._is_over():
                if self._receive(running.collector, pool) and not self.control.is_lost:
                    self._stepped_at = time.monotonic()
                    self._advance(running)
                if not self.control.is_lost:
                    running.reporter.publish_due()
        finally:
            if not self.control.is_lost:
                running.reporter.publish_all(is_over=True)
        if not self.control.is_lost:
            for behavior in self._inline:
                behavior.finish()

    def _receive(self, collector: Collector, pool: EnvironmentPool) -> bool:
        """Whether any steps have arrived."""
        try:
            return collector.receive(RECEIVE_SECONDS)
        finally:
            if not self.control.is_lost:
                publish_reports(pool, self.environment, tuple(self.behaviors), self._bus)

    def _meet(self, spec: BehaviorSpec, pool: EnvironmentPool) -> Behavior:
        """The behavior that has appeared; new environments may meet one that is known. Raises RlTuiError."""
        if spec.name in self.behaviors:
            return self.behaviors[spec.name]
        start = time.monotonic()
        behavior = self._maker.make_late(spec, pool, self.control)
        if behavior.is_threaded:
            self.control.join()  # before it can count as parked
        self.behaviors = {**self.behaviors, spec.name: behavior}
        self._bus.publish(BehaviorStateChanged(spec.name, "training"))
        self._bus.log("debug", self.environment, f"trainer of {spec.name} made in {time.monotonic() - start:.3f} s")
        return behavior

    def _should_continue(self, reporter: ProgressReporter) -> bool:
        """Serve the learners of this thread, and park while paused."""
        if self.control.is_lost:
            return False
        if not self.control.is_paused:
            return self.control.safe_point(self._serve)
        reporter.publish_all()  # a paused screen should show where training is
        start = time.monotonic()
        should_continue = self.control.safe_point(self._serve)
        self.waiting_seconds += time.monotonic() - start
        self._stepped_at = time.monotonic()
        reporter.resume()
        return should_continue

    def _advance(self, running: Collection) -> None:
        """Pass every block that is due to its learner, load the weights that result, and let agents act."""
        collector, reporter = running.collector, running.reporter
        for name, behavior in running.behaviors.items():
            while collector.is_due(name, running.block_sizes[name].size):
                block = collector.drain(name)
                if self._follower is not None:
                    self._follower.add_returns(name, block)
                running.block_sizes[name].count(block.num_rows)
                start = time.monotonic()
                self._is_submitting = behavior.is_threaded
                behavior.submit(block, lambda: self._should_continue(reporter))
                self._is_submitting = False
                if behavior.is_threaded:
                    self.waiting_seconds += time.monotonic() - start
            weights = behavior.learner.weights.pop()
            if weights is not None:
                collector.load(name, weights)
                reporter.follow_rollbacks()
        if self._follower is not None and not self.control.is_lost:
            self._follower.follow(running, self._seed)
        if not self.control.is_lost:
            collector.act()
            for sizes in running.block_sizes.values():
                sizes.look_ahead()

    @property
    def _inline(self) -> list[Behavior]:
        """Those that learn in this thread."""
        return [behavior for behavior in self.behaviors.values() if not behavior.is_threaded]

    def _serve(self) -> None:
        for behavior in self._inline:
            behavior.learner.serve()

    def _is_over(self) -> bool:
        """Not before the first behavior has appeared."""
        return bool(self.behaviors) and all(behavior.learner.is_over for behavior in self.behaviors.values())

    def _fail(self, error: RlTuiError) -> None:
        """The environment is lost, or has a behavior that cannot be trained: all end with what they have learned."""
        if isinstance(error, EnvironmentFailure | NonFiniteError):
            self._publish_failure(error, tuple(self.behaviors))
        if not self.behaviors:
            self.failure = error
        for behavior in self.behaviors.values():
            behavior.learner.fail(error)
            if not behavior.is_threaded:
                behavior.finish()

    def _publish_failure(self, error: RlTuiError, behaviors: Sequence[str]) -> None:
        self._bus.publish(EnvironmentFailed(self.environment, tuple(behaviors), str(error), error.detail))
        if error.detail:  # not left to the thread `writers`, which may be behind when the end of the run is printed
            title = f"{self.environment} failed: {error}"
            save_traceback(self._bus, "run", self.environment, self._output, title, error.detail)
