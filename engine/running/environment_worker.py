"""The thread of one environment: pauses and stops, what fails or hangs, behaviors that wait to be rolled back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from rl_tui.engine.errors import EnvironmentFailure, NonFiniteError, RlTuiError, SyncError
from rl_tui.engine.process.tracebacks import name_and_text
from rl_tui.engine.running.announcements import save_traceback
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.call_timeout import CallTimer, locate_call
from rl_tui.engine.running.environment_runner import EnvironmentRunner
from rl_tui.engine.running.ranks.messages import Failure
from rl_tui.engine.running.ranks.ranked_learning import RankedLearning, Stopped
from rl_tui.engine.running.threads import Control
from rl_tui.engine.sampling.failures import InstanceFailure
from rl_tui.engine.sampling.pools.base import EnvironmentPool, never
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.environment_view import worker_word
from rl_tui.engine.session.messages import BehaviorStateChanged, EnvironmentFailed, WaitsFor


class EnvironmentWorker:
    """Runs in the thread `collector:NAME`. Drives a runner, and the learners that are not threaded.

    Before a thread starts for `main` or for a behavior that `build` made, its starter calls `control.join`. When a
    behavior appears, the supervisor starts the thread of its learner.
    """

    def __init__(self, runner: EnvironmentRunner, bus: EventBus, output: Path, ranked: RankedLearning | None = None):
        """output: the file for the traceback of a failure. ranked: where several ranks learn together."""
        self.awaits_roll_back = False  # parked, since training has diverged
        self._runner = runner
        self._ranked = ranked
        self._control = runner.control
        self._bus = bus
        self._output = output
        self._stepped_at = time.monotonic()
        self._is_submitting = False  # to a threaded learner, or to other ranks
        self._failure: Failure | None = None
        self._is_renewed = False  # a behavior that diverged was rolled back

    @property
    def environment(self) -> str:
        """The name of the environment."""
        return self._runner.environment

    @property
    def control(self) -> Control:
        """How other threads pause and stop it."""
        return self._runner.control

    @property
    def behaviors(self) -> Mapping[str, Behavior]:
        """Those that have appeared. Any thread."""
        return self._runner.behaviors

    def build(self, is_stopped: Callable[[], bool] = never) -> None:
        """Start the environments and make the learners. Called once, before `main`, in the run's thread.

        Raises StartStopped once `is_stopped`, and RlTuiError; the failure of an environment is then already published.
        """
        try:
            self._runner.build(is_stopped)
        except EnvironmentFailure as error:
            names = self._runner.names
            self._publish_failure(error, names)
            for name in names:
                self._bus.publish(BehaviorStateChanged(name, "failed", str(error)))
            raise

    @property
    def process_names(self) -> Mapping[int, str]:
        """What its worker processes are to the user, by process id. Any thread."""
        pool = self._runner.pool
        pids = {} if pool is None else pool.worker_pids
        word = worker_word(self.environment)
        return {pid: f"{word} {number} of {self.environment}" for number, pid in pids.items()}

    def close(self) -> None:
        """Free what `build` made, where `main` will not run."""
        self._runner.close()

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
        if self._runner.pool is not None:
            yield self._runner.pool, None
        for behavior in self.behaviors.values():
            evaluator = behavior.learner.evaluator
            pool = None if evaluator is None else evaluator.pool
            if pool is not None:
                yield pool, behavior

    def abandon(self, failure: InstanceFailure, evaluated: Behavior | None) -> None:
        """Give up a call that does not return. Called by the coordinator: the stuck thread changes nothing more."""
        self._control.is_lost = True
        self._fail(failure)
        if evaluated is not None:
            evaluated.finish()
        self._control.stop("now")
        self._control.has_ended = True

    def idle_time(self) -> tuple[float, WaitsFor]:
        """For how many seconds no environment has made a step, and what it waits for. Any thread."""
        doing = next((each.learner.busy_with for each in self._inline if each.learner.busy_with is not None), None)
        waits_for: WaitsFor = doing or ("update" if self._is_submitting else "environment")
        return time.monotonic() - self._stepped_at, waits_for

    def main(self) -> None:
        """Collect until every behavior is finished, the run is stopped, or the environment fails."""
        try:
            while self._collect_until_over() and self._await_roll_back():
                self._is_renewed = True
        finally:
            if self._ranked is not None:
                self._ranked.leave(self._failure)
            self._control.leave()
            self._runner.close()
            self._control.has_ended = True

    def rescue(self, error: BaseException) -> None:
        """Save what was learned before an internal error, except by threaded learners, which save themselves."""
        for behavior in self.behaviors.values():
            if behavior.is_threaded:
                behavior.learner.fail(RlTuiError(name_and_text(error)))
            else:
                behavior.rescue(error)

    def _collect_until_over(self) -> bool:
        """Collect until every behavior is over; whether one that diverged can resume from a checkpoint."""
        try:
            if self._is_renewed:
                self._runner.renew()
            self._collect()
        except Stopped:
            pass
        except RlTuiError as error:
            if not self._control.is_lost:
                self._fail(error)
        if self._control.is_lost or not self._control.is_attended:
            return False
        return any(behavior.learner.can_roll_back for behavior in self.behaviors.values())

    def _await_roll_back(self) -> bool:
        """Park until a behavior that diverged is rolled back; whether one was. Ends without where no user is there (any
        more), and at a stop."""

        def serve() -> None:
            self._serve()
            if not (self._is_over() and self._control.is_attended):
                self._control.resume()

        self.awaits_roll_back = True
        self._control.pause()
        try:
            should_continue = self._control.safe_point(serve)
        except SyncError as error:  # another rank was lost
            self._failure, should_continue = Failure(str(error), error.exit_code), False
        self.awaits_roll_back = False
        return should_continue and not self._is_over()

    def _collect(self) -> None:
        runner, control = self._runner, self._control
        self._stepped_at = time.monotonic()
        if self._ranked is not None:
            self._ranked.begin(self._should_continue)
        runner.begin()
        for name in () if self._is_renewed else self.behaviors:
            self._bus.publish(BehaviorStateChanged(name, "training"))
        try:
            while self._should_continue() and not self._is_over():
                if self._ranked is not None and self._ranked.take_due_turn():
                    continue
                self._step()
                if not control.is_lost:
                    runner.reporter.publish_due()
        finally:
            if not control.is_lost:
                runner.report(is_over=True)
        if not control.is_lost:
            if self._ranked is not None:
                self._ranked.settle()
            for behavior in self._inline:
                behavior.finish()

    def _step(self) -> None:
        """Receive the next steps, if any have arrived, and pass them on; or one update of each behavior, where they
        learn without experience."""
        if self._runner.is_offline and self._ranked is not None:
            self._stepped_at = time.monotonic()
            self._ranked.wait()  # for the next turn
        elif self._runner.is_offline:
            for behavior in self.behaviors.values():
                behavior.learn_offline(self._should_continue)
                self._stepped_at = time.monotonic()
        elif self._runner.receive() and not self._control.is_lost:
            self._stepped_at = time.monotonic()
            self._advance()

    def _advance(self) -> None:
        """Pass every block that is due to its learner, and let agents act with the weights that result."""
        while (due := self._runner.next_block()) is not None:
            name, block = due
            behavior, start = self.behaviors[name], time.monotonic()
            self._runner.count(name, block)
            self._is_submitting = behavior.is_threaded or self._ranked is not None
            if self._ranked is not None:
                self._ranked.submit(name, block)
            else:
                behavior.submit(block, self._should_continue)
            self._is_submitting = False
            if behavior.is_threaded:
                self._runner.waiting_seconds += time.monotonic() - start
        if self._runner.awaits_learners and self._ranked is None:
            self._await_learners()
        self._runner.act()

    def _await_learners(self) -> None:
        start = time.monotonic()
        self._is_submitting = True
        for behavior in self.behaviors.values():
            behavior.await_taken()
        self._is_submitting = False
        self._runner.waiting_seconds += time.monotonic() - start

    def _should_continue(self) -> bool:
        """Serve the learners of this thread, and park while paused."""
        if self._control.is_lost:
            return False
        if not self._control.is_paused:
            return self._control.safe_point(self._serve)
        reporter, start = self._runner.reporter, time.monotonic()
        self._runner.pause(True)
        self._runner.report()  # a paused screen should show where training is
        should_continue = self._control.safe_point(self._serve)
        self._runner.waiting_seconds += time.monotonic() - start
        self._stepped_at = time.monotonic()
        if should_continue:
            self._runner.pause(False)
        reporter.resume()
        return should_continue

    @property
    def _inline(self) -> list[Behavior]:
        """Those that learn in this thread, or on several ranks are served and finished by it, while they do not
        learn."""
        if (ranked := self._ranked) is not None:
            return [behavior for name, behavior in self.behaviors.items() if not ranked.is_busy(name)]
        return [behavior for behavior in self.behaviors.values() if not behavior.is_threaded]

    def _serve(self) -> None:
        if self._ranked is not None:
            self._ranked.exchange()
        for behavior in self._inline:
            behavior.learner.serve()

    def _is_over(self) -> bool:
        """Not before the first behavior has appeared."""
        return bool(self.behaviors) and all(behavior.learner.is_over for behavior in self.behaviors.values())

    def _fail(self, error: RlTuiError) -> None:
        """The environment is lost, or has a behavior that cannot be trained: all end with what they have learned."""
        if isinstance(error, EnvironmentFailure | NonFiniteError):
            self._publish_failure(error, tuple(self.behaviors))
        if self._ranked is not None:
            self._ranked.fail(error)
        is_known = isinstance(error, NonFiniteError)  # to all ranks
        self._failure = None if is_known else Failure(str(error), error.exit_code)
        if not self.behaviors:
            self._runner.failure = error
        for behavior in self.behaviors.values():
            behavior.learner.fail(error)
        for behavior in self._inline:
            behavior.finish()

    def _publish_failure(self, error: RlTuiError, behaviors: Sequence[str]) -> None:
        self._bus.publish(EnvironmentFailed(self.environment, tuple(behaviors), str(error), error.detail))
        if error.detail:  # not left to the thread `writers`, which may be behind when the end of the run is printed
            title = f"{self.environment} failed: {error}"
            save_traceback(self._bus, "run", self.environment, self._output, title, error.detail)
