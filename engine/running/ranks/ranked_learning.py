"""The behaviors of one environment on several ranks: each rank collects its part, and all learn together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from rl_tui.engine.errors import NonFiniteError, RlTuiError, SyncError
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.environment_runner import EnvironmentRunner
from rl_tui.engine.running.learner import Learner, unnoticed
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.ranks.agreement import Agreement
from rl_tui.engine.running.ranks.follower import Follower
from rl_tui.engine.running.ranks.leader import LOOK_SECONDS, Leader
from rl_tui.engine.running.ranks.messages import Advance, Begin, Block, Failure, GoOn, Report
from rl_tui.engine.running.ranks.rank_meter import RankMeter
from rl_tui.engine.running.ranks.replay_gathering import ReplayGathering
from rl_tui.engine.running.ranks.role import Role
from rl_tui.engine.running.triggers import Trigger
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import Stop
from rl_tui.engine.specs import BehaviorSpec, Trajectories

STATUS_SECONDS = 2.0  # between two reports of how fast a rank is
WAIT_SECONDS = 0.05  # how long a rank that waits for others may take to see a stop or a command


class Stopped(Exception):
    """Training was stopped while this rank waited for the others."""


class RankedLearning:
    """Used by the environment's thread.

    A block of experience is added to the trainer of its rank, and counted when every rank has one. A rank that has its
    part of an update, or of max_steps, waits until all have theirs; where each waits for another behavior, all go on,
    and what they collect beyond a part is dropped. A behavior with a thread of its own learns there, while up to one
    more part is collected. runner: of the environment.
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
        self._agreement: Agreement
        self._gathering: ReplayGathering | None = None
        if role.leads:
            self._agreement = leader = Leader(role, runner.control, self._learners, lessons, request, bus, self.is_busy)
            self._gathering = ReplayGathering(leader.replay_parts, runner.control, bus)
        else:
            self._agreement = Follower(role, runner.control, self._learners, lessons, self.settle, runner.follow_move)
        self._meter, self._clock = meter, role.clock
        self._status: Trigger[float] = Trigger(STATUS_SECONDS, by_clock=True)
        self.runner = runner
        self._lessons = lessons
        self._leads = role.leads
        self._is_asked_to_stop = False
        self._look: Trigger[float] = Trigger(LOOK_SECONDS, by_clock=True)
        self._has_looked = False  # since the last turn that nothing waited for
        self._parts: dict[str, Block] = {}  # by behavior: the last block of a part that others are waited for with
        self._waiting: dict[str, deque[Trajectories]] = {}  # by behavior: blocks that are not added yet
        self._beyond: set[str] = set()  # behaviors that have their part, and are not waited for
        self._learning: dict[str, Advance] = {}  # by behavior: the newest turn that its own thread takes
        self._should_continue: Callable[[], bool] = lambda: True

    def _learners(self) -> dict[str, Learner]:
        return {name: behavior.learner for name, behavior in self.runner.behaviors.items()}

    def begin(self, should_continue: Callable[[], bool]) -> None:
        """Collecting begins, with new environments. should_continue: a safe point, which calls `exchange`."""
        self._should_continue = should_continue
        if self._gathering is not None:
            self._gathering.begin()
        self._status.restart(self._clock())
        for kept in (self._parts, self._waiting, self._beyond):
            kept.clear()
        self.runner.on_late = self._await_behavior
        self.runner.share_leagues(self._agreement.announce if self._leads else None, lambda: not self._learning)
        for behavior in self.runner.behaviors.values():
            self._connect(behavior)

    def _connect(self, behavior: Behavior) -> None:
        behavior.learner.on_change = self._agreement.announce
        if self._gathering is not None:
            behavior.learner.gather_replay_by(self._gathering.gather)

    def exchange(self) -> None:
        """Hear what is new, and send it. Called at every safe point, does so where it is due. Raises SyncError."""
        self._look.fire(self._clock(), lambda _: self._exchange())

    def _exchange(self) -> None:
        self._has_looked = True
        self._check_learned()
        self._agreement.exchange()
        if self._is_asked_to_stop:
            self._is_asked_to_stop = False
            self._agreement.report(Report(is_stopped=True))
        self._status.fire(self._clock(), lambda _: self._agreement.report(self._meter.report(self._device)))

    def ask_to_stop(self) -> None:
        """Any thread, on another rank than 0: let rank 0 stop all."""
        self._is_asked_to_stop = True
        self.runner.control.ask()

    @property
    def _device(self) -> str:
        """Where its behaviors learn."""
        return ", ".join(dict.fromkeys(learner.device for learner in self._learners().values())) or "none yet"

    def beat(self) -> None:
        """Called where this rank waits for a disk, in the thread that does."""
        if self._gathering is None or self._gathering.is_own_thread:
            self._agreement.beat()

    def submit(self, name: str, block: Trajectories) -> None:
        """Add a block to the trainer, and wait for other ranks once it has this rank's part. Raises SyncError."""
        self._meter.count(block.num_rows)
        behavior = self.runner.behaviors[name]
        if behavior.learner.is_over or name in self._beyond:
            behavior.learner.steps_left.skip(block.num_learned)
            return
        self._waiting.setdefault(name, deque()).append(block)
        self._add_waiting(behavior)
        said_at = -1
        while self._must_wait(behavior) and self._should_continue():
            if said_at != self._agreement.num_turns and self._has_part(behavior):
                said_at = self._agreement.num_turns
                self._agreement.report(Report(waits_after=said_at))
            if not self._take_turn(name):
                self.wait()
            self._add_waiting(behavior)

    def _add_waiting(self, behavior: Behavior) -> None:
        """Add blocks until there is a part. Raises SyncError."""
        name, learner = behavior.spec.name, behavior.learner
        waiting = self._waiting.get(name)
        while waiting and not self._has_part(behavior) and not self.is_busy(name):
            block = waiting.popleft()
            if learner.is_over:
                learner.steps_left.skip(block.num_learned)
            elif behavior.add(block):
                self._report_block(behavior, block)

    def _report_block(self, behavior: Behavior, block: Trajectories) -> None:
        learner = behavior.learner
        if learner.failure is not None and not self._leads:
            raise SyncError(str(learner.failure))
        own = Block(
            behavior=behavior.spec.name,
            num_rows=block.num_learned,
            num_sampled=block.num_rows,
            first_version=learner.weights.first_version,
            returns=tuple(block.episode_returns.tolist()),
            lengths=tuple(block.episode_lengths.tolist()),
            games=tuple(block.games),
            is_ready=learner.trainer.is_ready(),
            is_spent=learner.steps_left.is_over,
        )
        self._agreement.report(Report(block=own))
        if own.has_part:
            self._parts[own.behavior] = own

    def _has_part(self, behavior: Behavior) -> bool:
        """Whether it waits for others. Not once it was rolled back: its block counts no more."""
        part, learner = self._parts.get(behavior.spec.name), behavior.learner
        return part is not None and not learner.is_over and learner.weights.first_version == part.first_version

    def _must_wait(self, behavior: Behavior) -> bool:
        """Whether agents must not go on yet: learners with a thread of their own take one more part meanwhile."""
        name = behavior.spec.name
        if not behavior.is_threaded:
            return self._has_part(behavior)
        num_rows = sum(block.num_learned for block in self._waiting.get(name, ()))
        return num_rows >= behavior.learner.rows_per_update and (self.is_busy(name) or self._has_part(behavior))

    def is_busy(self, name: str) -> bool:
        """Whether the thread of this behavior learns, or what it has done was not looked at: until then, nothing else
        changes the behavior."""
        return name in self._learning

    def settle(self, name: str | None = None) -> None:
        """Wait until the thread of this behavior, or of each, has done what all ranks do. Raises SyncError."""
        for each in list(self._learning) if name is None else [name]:
            while self.is_busy(each):
                self._agreement.beat()
                self.runner.behaviors[each].await_learned(WAIT_SECONDS)
                self._check_learned()

    def wait(self) -> None:
        """For others, a moment."""
        start = self._clock()
        self._agreement.wait(WAIT_SECONDS)
        self._meter.waited += self._clock() - start

    def take_due_turn(self) -> bool:
        """`take_turn`, if `exchange` has looked for one: most steps of environments do not wait for that. Raises
        SyncError."""
        if self._has_looked or self.runner.is_offline:
            self._has_looked = self.take_turn()
        return self._has_looked

    def take_turn(self) -> bool:
        """Do what all ranks do next; False while that is not known. Raises SyncError."""
        for behavior in self.runner.behaviors.values() if self._waiting else ():
            self._add_waiting(behavior)
        return self._take_turn("")

    def _take_turn(self, waits_for: str) -> bool:
        """waits_for: the behavior whose blocks wait for other ranks, if agents must not go on."""
        self._check_learned()
        turn = self._agreement.next_turn()
        if turn is None:
            return False
        match turn:
            case Advance():
                self._advance(turn)
            case Begin():
                self._connect(self.runner.make_late(turn.spec))
            case GoOn():
                self._go_on(waits_for)
        return True

    def _go_on(self, waits_for: str) -> None:
        """Beyond a part of that behavior. There may be none: this rank waited with one of another behavior, which has
        ended since, and only now waits for this one, whose thread was busy."""
        behavior = self.runner.behaviors.get(waits_for)
        if behavior is None or not self._has_part(behavior):
            return
        self._beyond.add(waits_for)
        del self._parts[waits_for]
        for block in self._waiting.pop(waits_for, ()):
            behavior.learner.steps_left.skip(block.num_learned)

    def _advance(self, turn: Advance) -> None:
        behavior = self.runner.behaviors[turn.behavior]
        if turn.has_all_parts:
            self._beyond.discard(turn.behavior)
            if turn.behavior in self._parts and not self._parts[turn.behavior].is_spent:
                del self._parts[turn.behavior]
        if self._leads:
            self._lessons.add_returns(turn.behavior, turn.returns)
            self.runner.add_games(turn.behavior, turn.games, turn.num_sampled - turn.num_rows)
        if behavior.is_threaded:
            self._learning[turn.behavior] = turn
            behavior.queue(partial(self._learn, turn))
        else:
            version = behavior.learner.weights.first_version
            self._learn(turn, behavior, self._should_continue)
            self._check(behavior, turn, is_rolled_back=behavior.learner.weights.first_version != version)

    def _learn(self, turn: Advance, behavior: Behavior, should_continue: Callable[[], bool]) -> None:
        """In the thread of its learner."""
        if behavior.learner.is_offline:
            self._meter.count(turn.num_rows)
            behavior.learn_offline(should_continue)
            return
        if self._leads:
            behavior.learner.add_episodes(turn.returns, turn.lengths)
        behavior.advance(turn.num_rows, turn.num_sampled, turn.updates, should_continue)

    def _check_learned(self) -> None:
        """Serve the threads of learners. Raises SyncError for what has gone wrong in them."""
        if self._gathering is not None:
            self._gathering.serve()
        for name, turn in list(self._learning.items()):
            if not self.runner.behaviors[name].is_learning:
                del self._learning[name]
                self._check(self.runner.behaviors[name], turn)

    def _check(self, behavior: Behavior, turn: Advance, *, is_rolled_back: bool = False) -> None:
        """All ranks have done the same. is_rolled_back: meanwhile, in an evaluation, and on others after the turn."""
        if (lost := behavior.learner.lost) is not None:
            if (named := self._agreement.named(lost)) is not None:
                raise named
            return
        if turn.updates:
            self._agreement.note_heard()
        if behavior.learner.step != turn.step and not is_rolled_back:
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
        if isinstance(error, NonFiniteError):  # no rank is lost: what they all have learned is saved
            with suppress(SyncError):
                self.settle()

    def leave(self, failure: Failure | None) -> None:
        """Collecting is over: rank 0 ends the others, of which one that has failed says so."""
        self.runner.on_late, self._should_continue = None, lambda: False
        for learner in self._learners().values():
            learner.on_change = unnoticed  # a cycle would keep learners in memory after the end of a run
        self.runner.share_leagues(None, lambda: False)
        self._meter.close()
        if self._gathering is not None:
            self._gathering.close(failure is not None)
        self._agreement.leave(failure)
