"""Rank 0's part of an agreement: it hears what every rank has, and decides what all do next."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from multiprocessing import connection

from rl_tui.engine.errors import NonFiniteError, RlTuiError, SyncError
from rl_tui.engine.running.learner import Learner
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.ranks.link import Link
from rl_tui.engine.running.ranks.messages import (
    Advance,
    Begin,
    Block,
    Change,
    ControlWord,
    Failure,
    GoOn,
    Report,
    RolledBack,
    ShareReplay,
    Turn,
)
from rl_tui.engine.running.ranks.replay_parts import ReplayParts
from rl_tui.engine.running.ranks.role import Role
from rl_tui.engine.running.threads import Control
from rl_tui.engine.running.triggers import Trigger
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import RanksReported, RankStatus, Stop
from rl_tui.engine.specs import BehaviorSpec, State

BEAT_SECONDS = 2.0  # between two messages of a rank that has nothing to say
LOOK_SECONDS = 0.005  # between two looks for messages: training should not wait for them
NAMING_LOOK_SECONDS = 0.1
LEAVING_SECONDS = 5.0  # in which the others leave
NAMING_SECONDS = 10.0  # in which the ranks that are left say so, after an update that one has not finished


class Parts:
    """What the ranks have of one behavior since its last update.

    waiting: blocks of each rank that are not counted yet.
    """

    def __init__(self, num_ranks: int) -> None:
        self.waiting: list[deque[Block]] = [deque() for _ in range(num_ranks)]
        self._newest: list[Block | None] = [None] * num_ranks

    def add(self, rank: int, block: Block) -> None:
        """A rank has collected more."""
        self.waiting[rank].append(block)
        self._newest[rank] = block

    def advance(self, name: str, step: int) -> Advance | None:
        """All that waits once every rank has its part, before that a block of each rank; None while one has none."""
        newest = [block for block in self._newest if block is not None and block.has_part]
        is_whole = len(newest) == len(self._newest)
        if not is_whole and not all(self.waiting):
            return None
        updates = is_whole and all(block.is_ready for block in newest)
        taken = [list(blocks) if is_whole else [blocks.popleft()] for blocks in self.waiting]
        if is_whole:
            for blocks in self.waiting:
                blocks.clear()
            self._newest = [replace(block, is_ready=False) if block.is_spent else None for block in newest]
        num_rows = sum(block.num_rows for blocks in taken for block in blocks)
        num_sampled = sum(block.num_sampled for blocks in taken for block in blocks)
        others = [block for blocks in taken[1:] for block in blocks]
        return Advance(
            behavior=name,
            num_rows=num_rows,
            num_sampled=num_sampled,
            step=step + num_rows,
            updates=updates,
            has_all_parts=is_whole,
            returns=tuple(value for block in others for value in block.returns),
            lengths=tuple(length for block in others for length in block.lengths),
            games=tuple(game for block in others for game in block.games),
        )


class Leader:
    """Used by the thread of the environment. Every method raises SyncError once a rank is lost."""

    def __init__(
        self,
        role: Role,
        control: Control,
        learners: Callable[[], Mapping[str, Learner]],
        lessons: Lessons,
        request: Callable[[Stop], object],
        bus: EventBus,
        is_busy: Callable[[str], bool],
    ) -> None:
        """learners: those that have appeared, by behavior, in the order in which they were made. request: ends the run,
        where another rank was asked to end. bus: for what ranks report of themselves. is_busy: whether a
        behavior's own thread still learns."""
        self._is_busy = is_busy
        self._bus = bus
        self._statuses: dict[int, RankStatus] = {}
        self._request = request
        self._role, self._control, self._learners, self._lessons = role, control, learners, lessons
        self._parts: dict[str, Parts] = {}
        self.num_turns = 0
        self._waits_after: list[int | None] = [None] * role.size  # so many turns, with a part of a behavior
        self._met: deque[BehaviorSpec] = deque()
        self._lost: Failure | None = None
        self._diverged = ""
        self._stopping: set[Link] = set()  # of ranks that a signal has asked to end
        self._left: set[Link] = set()  # of ranks that have ended after they were asked to
        self._replay = ReplayParts("", ())  # the newest that were asked for
        self._sent = ControlWord(lessons=(lessons.state(), lessons.num_resets))
        self._lessons_version = lessons.version
        self._beat: Trigger[float] = Trigger(BEAT_SECONDS, by_clock=True)

    def report(self, report: Report) -> None:
        """Of this rank."""
        self._take(0, report)

    def exchange(self) -> None:
        """Hear the others, and send them what has changed."""
        if self._has_stopped:
            return
        if self._lost is not None:
            raise SyncError(self._lost.reason, self._lost.exit_code)
        self._hear()
        if self._diverged:
            raise NonFiniteError(self._diverged)
        word = self._word()
        if word != self._sent or self._beat.is_due(self._role.clock()):
            self._send(word)

    def beat(self) -> None:
        """Say that it is alive, where it waits for a disk. A rank that is lost meanwhile shows at the next exchange."""
        with suppress(SyncError):
            if self._lost is None:
                self._hear()
                if self._beat.is_due(self._role.clock()):
                    self._send(self._sent)

    @property
    def _has_stopped(self) -> bool:
        """Whether the others have the stop. They stay reachable until this rank leaves; none that ends before is lost
        by that."""
        return self._sent.stop is not None

    def announce(self, change: Change) -> None:
        """This was changed here, between two updates."""
        if isinstance(change, RolledBack):  # what was collected before it counts no more
            self._parts.pop(change.behavior, None)
            self.num_turns += 1
        self._send(replace(self._sent, change=change))

    def next_turn(self) -> Turn | None:
        """What all ranks do next; None while too little is known."""
        self._hear()
        turn = self._decide()
        if turn is not None:
            self.num_turns += 1
            self._send(replace(self._sent, is_paused=False, turn=turn))  # none that waits would take it
        return turn

    def wait(self, seconds: float) -> None:
        """Return once another rank has something to say, or after that time."""
        connection.wait([link.connection for link in self._links], seconds)

    def note_heard(self) -> None:
        """All ranks have just finished an update together."""
        for link in self._role.links:
            link.note_heard()

    def named(self, error: SyncError) -> SyncError | None:
        """See Agreement."""
        start, heard_at = self._role.clock(), [(link, link.heard_at) for link in self._links]
        try:
            self._hear(may_be_silent=True)
            for link, at in heard_at:  # what has waited to be read may have been sent long ago
                link.heard_at = at
            while self._lost is None and not self._left:
                self._hear(may_be_silent=True)  # none says anything in an update: all were silent for as long
                silent = [link for link in self._links if link.heard_at < start]
                is_known = len(silent) == 1 and silent[0].is_silent
                if is_known or self._role.clock() >= start + NAMING_SECONDS:
                    break
                self.wait(NAMING_LOOK_SECONDS)
            if self._left:
                self._send(self._word())
                return None
            if self._lost is None and silent:
                self._lose(silent[0], found := silent[0].silent())
                return found
        except SyncError as found:
            return found
        return error

    def fail(self, error: RlTuiError) -> None:
        """Training has ended here because of that. Where it has diverged, on some rank, all may be rolled back."""
        if isinstance(error, NonFiniteError):
            text, self._diverged = self._diverged or f"{self._role.name_of(0)}: {error}", ""
            with suppress(SyncError):
                self._send(replace(self._sent, diverged=text))

    def leave(self, failure: Failure | None) -> None:
        """The others end, too."""
        with suppress(SyncError):
            if failure is not None and self._lost is None:
                reason = f"{self._role.name_of(0)} has failed: {failure.reason}"
                self._send(replace(self._sent, lost=replace(failure, reason=reason)))
            elif self._lost is None and not self._has_stopped:
                self._send(replace(self._sent, stop=self._control.stop_mode or "checkpoint"))
        for link in self._role.links:
            link.end_sending()
        for link in self._role.links:
            link.close_after_other(0.0 if link.is_silent else LEAVING_SECONDS)

    def replay_parts(self, behavior: str) -> tuple[list[State], str]:
        """What the replay buffers of the others hold, as of the last turn, and in words of which ranks that is missing:
        they are lost. Raises nothing: the next exchange does."""
        self._replay = parts = ReplayParts(behavior, range(1, self._role.size))
        with suppress(SyncError):
            if self._lost is None:
                self._send(replace(self._sent, change=ShareReplay(behavior)))
                while any(link not in self._left for rank, link in self._ranks if rank in parts.missing):
                    heard = [self._hear_from(rank, link) for rank, link in self._ranks]  # one message of each
                    if not any(heard):
                        self.wait(LOOK_SECONDS)
                    if self._beat.is_due(self._role.clock()):
                        self._send(self._sent)
        missing = ", ".join(self._role.name_of(rank) for rank in sorted(parts.missing))
        return parts.complete, missing

    @property
    def _ranks(self) -> Iterable[tuple[int, Link]]:
        """The others with their numbers."""
        return enumerate(self._role.links, 1)

    def _hear(self, *, may_be_silent: bool = False) -> None:
        for rank, link in self._ranks:
            while self._hear_from(rank, link, may_be_silent=may_be_silent):
                pass

    def _hear_from(self, rank: int, link: Link, *, may_be_silent: bool = False) -> bool:
        """Whether there was a message. Raises SyncError."""
        if link in self._left:
            return False
        try:
            message = link.receive(may_be_silent=may_be_silent)
            assert message is None or isinstance(message, Report)
            if message is not None and message.failure is not None:
                failed = message.failure
                raise SyncError(f"{link.name} has failed: {failed.reason}", failed.exit_code)
        except SyncError as error:
            self._lose(link, error)
            return False
        if message is None:
            return False
        if message.diverged:
            self._diverged = f"{link.name}: {message.diverged}"
        if message.is_stopped:
            self._stopping.add(link)
            self._control.stop("checkpoint")
            self._request(Stop("checkpoint", exit_code=128 + signal.SIGTERM))
        self._take(rank, message)
        return True

    def _lose(self, lost: Link, error: SyncError) -> None:
        """Raises the error, unless that rank was to end."""
        if self._has_stopped or lost in self._stopping:
            self._left.add(lost)
            return
        self._lost = Failure(str(error), error.exit_code)
        for link in self._links:
            if link is not lost:
                with suppress(SyncError):
                    link.send(ControlWord(lost=self._lost))
        raise error

    @property
    def _links(self) -> list[Link]:
        """To ranks that have not left."""
        return [link for link in self._role.links if link not in self._left]

    def _take(self, rank: int, report: Report) -> None:
        if report.met is not None:
            self._met.append(report.met)
        if report.status is not None:
            self._statuses[rank] = report.status
            if rank == 0 and len(self._statuses) == self._role.size:
                self._bus.publish(RanksReported(tuple(self._statuses[each] for each in sorted(self._statuses))))
        for warning in report.warnings:
            self._bus.publish(warning)
        block = report.block
        if block is not None and block.first_version == self._learners()[block.behavior].weights.first_version:
            self._parts.setdefault(block.behavior, Parts(self._role.size)).add(rank, block)
        if report.waits_after is not None:
            self._waits_after[rank] = report.waits_after
        if report.replay is not None:
            self._replay.add(rank, report.replay)

    def _decide(self) -> Turn | None:
        learners = self._learners()
        while self._met:
            spec = self._met.popleft()
            if spec.name not in learners:
                return Begin(spec)
        for name, learner in learners.items():
            if name in self._parts and not self._is_busy(name) and not learner.is_over:
                advance = self._parts[name].advance(name, learner.step)
                if advance is not None:
                    return advance
        offline = [
            learner
            for name, learner in learners.items()
            if learner.is_offline and not learner.is_over and not self._is_busy(name)
        ]
        if offline:
            return self._offline(min(offline, key=lambda learner: learner.num_updates))
        is_any_busy = any(map(self._is_busy, learners))
        return GoOn() if not is_any_busy and self._waits_after == [self.num_turns] * self._role.size else None

    def _offline(self, learner: Learner) -> Advance:
        """One update without experience."""
        num_rows = learner.offline_rows
        step = learner.step + num_rows
        return Advance(learner.behavior, num_rows, 0, step, updates=True, has_all_parts=True)

    def _word(self) -> ControlWord:
        lessons = self._sent.lessons
        if self._lessons.version != self._lessons_version:
            self._lessons_version = self._lessons.version
            lessons = self._lessons.state(), self._lessons.num_resets
        return ControlWord(self._control.is_paused, self._control.stop_mode, lessons)

    def _send(self, word: ControlWord) -> None:
        self._beat.restart(self._role.clock())
        self._sent = replace(word, change=None, turn=None, diverged="")
        for link in self._links:
            try:
                link.send(word)
            except SyncError as error:
                self._lose(link, error)
