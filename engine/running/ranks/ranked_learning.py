"""The behaviors of one environment on several ranks: each rank collects its part, and all learn together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rl_tui.engine.errors import RlTuiError, SyncError
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.environment_runner import EnvironmentRunner
from rl_tui.engine.running.learner import Learner, unnoticed
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.ranks.follower import Follower
from rl_tui.engine.running.ranks.leader import Leader
from rl_tui.engine.running.ranks.messages import Advance, Begin, Block, Change, Failure, GoOn, Report, Turn
from rl_tui.engine.running.ranks.rank_meter import RankMeter
from rl_tui.engine.running.ranks.role import Role
from rl_tui.engine.running.triggers import Trigger
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import Stop
from rl_tui.engine.specs import BehaviorSpec, Trajectories

STATUS_SECONDS = 2.0  # between two reports of how fast a rank is
WAIT_SECONDS = 0.05  # how long a rank that waits for others may take to see a stop or a command


class Agreement(Protocol):
    """A rank's part of what all agree on: Leader, Follower. Every method but `leave` raises SyncError once a rank is
    lost."""

    def report(self, report: Report) -> None:
        """What this rank has."""

    def exchange(self) -> None:
        """Called at every safe point."""

    def beat(self) -> None:
        """Called where this rank waits for a disk. Raises nothing."""

    def announce(self, change: Change) -> None:
        """This was changed on rank 0, between two updates."""

    def next_turn(self) -> Turn | None:
        """What all ranks do next, which this rank does before it calls anything else here."""

    def wait(self, seconds: float) -> None:
        """Return once there may be a turn, or after that time."""

    def note_heard(self) -> None:
        """All ranks have just finished an update together."""

    def named(self, error: SyncError) -> SyncError:
        """The error of an update, with the rank that was lost in it."""

    def fail(self, error: RlTuiError) -> None:
        """Training has ended on this rank because of that, and not in an update."""

    def leave(self, failure: Failure | None) -> None:
        """This rank ends; None where it has not failed."""


class Stopped(Exception):
    """Training was stopped while this rank waited for the others."""


class RankedLearning:
    """Used by the environment's thread.

    A block of experience is added to the trainer of its rank at once, and counted when every rank has one. A rank that
    has its part of an update, or of max_steps, waits until all have theirs; where each waits for another behavior, all
    go on, and what they collect beyond a part is dropped. runner: of the environment.
    """

    def __init__(
        self,
        role: Role,
        runner: EnvironmentRunner,
        lessons: Lessons,
        request: Callable[[Stop], object],
        bus: EventBus,
        meter: RankMeter,
    ) -> None:
        """request: ends the run."""
        self._agreement: Agreement = (
            Leader(role, runner.control, self._learners, lessons, request, bus)
            if role.leads
            else Follower(role, runner.control, self._learners, lessons)
        )
        self._meter, self._clock = meter, role.clock
        self._status: Trigger[float] = Trigger(STATUS_SECONDS, by_clock=True)
        self.runner = runner
        self._lessons = lessons
        self._leads = role.leads
        self._holds: Block | None = None  # it waits with this one
        self._beyond: set[str] = set()  # behaviors that have their part, and are not waited for
        self._should_continue: Callable[[], bool] = lambda: True

    def _learners(self) -> dict[str, Learner]:
        return {name: behavior.learner for name, behavior in self.runner.behaviors.items()}

    def begin(self, should_continue: Callable[[], bool]) -> None:
        """Collecting begins, with new environments. should_continue: a safe point, which calls `exchange`."""
        self._should_continue = should_continue
        self._status.restart(self._clock())
        self._holds = None
        self._beyond.clear()
        self.runner.on_late = self._await_behavior
        for behavior in self.runner.behaviors.values():
            self._connect(behavior)

    def _connect(self, behavior: Behavior) -> None:
        behavior.learner.on_change = self._agreement.announce

    def exchange(self) -> None:
        """Hear what is new, and send it. Raises SyncError."""
        self._agreement.exchange()
        self._status.fire(self._clock(), lambda _: self._agreement.report(self._meter.report()))

    def beat(self) -> None:
        """Called where this rank waits for a disk."""
        self._agreement.beat()

    def submit(self, name: str, block: Trajectories) -> None:
        """Add a block to the trainer, and wait for other ranks once it has this rank's part. Raises SyncError."""
        self._meter.count(block.num_rows)
        behavior = self.runner.behaviors[name]
        learner = behavior.learner
        if learner.is_over or name in self._beyond:
            learner.steps_left.skip(block.num_learned)
            return
        if not behavior.add(block):
            return
        if learner.failure is not None and not self._leads:
            raise SyncError(str(learner.failure))
        own = Block(
            behavior=name,
            num_rows=block.num_learned,
            num_sampled=block.num_rows,
            first_version=learner.weights.first_version,
            returns=tuple(block.episode_returns.tolist()),
            lengths=tuple(block.episode_lengths.tolist()),
            is_ready=learner.trainer.is_ready(),
            is_spent=learner.steps_left.is_over,
        )
        self._agreement.report(Report(block=own))
        self._holds = own if own.has_part else None
        while self._is_holding and self._should_continue():
            if not self.take_turn():
                self.wait()
        self._holds = None

    def wait(self) -> None:
        """For others, a moment."""
        start = self._clock()
        self._agreement.wait(WAIT_SECONDS)
        self._meter.waited += self._clock() - start

    @property
    def _is_holding(self) -> bool:
        """Not once it was rolled back: its block counts no more."""
        if self._holds is None:
            return False
        learner = self.runner.behaviors[self._holds.behavior].learner
        return not learner.is_over and learner.weights.first_version == self._holds.first_version

    def take_turn(self) -> bool:
        """Do what all ranks do next; False while that is not known. Raises SyncError."""
        turn = self._agreement.next_turn()
        match turn:
            case Advance():
                self._advance(turn)
            case Begin():
                self._connect(self.runner.make_late(turn.spec))
            case GoOn():
                if self._holds is not None:
                    self._beyond.add(self._holds.behavior)
                self._holds = None
        return turn is not None

    def _advance(self, turn: Advance) -> None:
        behavior = self.runner.behaviors[turn.behavior]
        if turn.has_all_parts:
            self._beyond.discard(turn.behavior)
            if self._holds is not None and self._holds.behavior == turn.behavior and not self._holds.is_spent:
                self._holds = None
        if behavior.learner.is_offline:
            self._meter.count(turn.num_rows)
            behavior.learn_offline(self._should_continue)
        else:
            if self._leads:
                behavior.learner.add_episodes(turn.returns, turn.lengths)
                self._lessons.add_returns(turn.behavior, turn.returns)
            behavior.advance(turn.num_rows, turn.num_sampled, turn.updates, self._should_continue)
        if turn.updates:
            self._agreement.note_heard()
        failure = behavior.learner.failure
        if isinstance(failure, SyncError):
            raise self._agreement.named(failure)
        if behavior.learner.step != turn.step:
            raise SyncError(f"{turn.behavior} is at step {behavior.learner.step} here, and at {turn.step} on rank 0")

    def _await_behavior(self, spec: BehaviorSpec) -> None:
        """A behavior has appeared here: return once all ranks have made its trainer. Raises SyncError, Stopped."""
        self._agreement.report(Report(met=spec))
        while spec.name not in self.runner.behaviors:
            if not self._should_continue():
                raise Stopped
            if not self.take_turn():
                self.wait()

    def fail(self, error: RlTuiError) -> None:
        """Training has ended here because of that, which other ranks may not know."""
        self._agreement.fail(error)

    def leave(self, failure: Failure | None) -> None:
        """Collecting is over: rank 0 ends the others, of which one that has failed says so."""
        self.runner.on_late, self._should_continue = None, lambda: False
        for learner in self._learners().values():
            learner.on_change = unnoticed  # a cycle would keep learners in memory after the end of a run
        self._meter.close()
        self._agreement.leave(failure)
