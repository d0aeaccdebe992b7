"""The part of every other rank in an agreement: it reports what it has, and does what rank 0 decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from rl_tui.engine.errors import NonFiniteError, RlTuiError, SyncError
from rl_tui.engine.running.learner import Learner
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.ranks.leader import BEAT_SECONDS, NAMING_LOOK_SECONDS, NAMING_SECONDS
from rl_tui.engine.running.ranks.messages import (
    Change,
    ControlWord,
    Failure,
    LeagueMove,
    Report,
    RolledBack,
    ShareReplay,
    Turn,
)
from rl_tui.engine.running.ranks.replay_parts import messages_of
from rl_tui.engine.running.ranks.role import Role
from rl_tui.engine.running.threads import Control
from rl_tui.engine.running.triggers import Trigger


class Follower:
    """Used by the thread of the environment. Every method raises SyncError once rank 0 is lost, or has lost another."""

    def __init__(
        self,
        role: Role,
        control: Control,
        learners: Callable[[], Mapping[str, Learner]],
        lessons: Lessons,
        settle: Callable[[str], None],
        on_move: Callable[[LeagueMove], None],
    ) -> None:
        """learners: those that have appeared, by behavior. settle: waits until a behavior's own thread has learned.
        on_move: called with what rank 0 has decided for leagues."""
        self._settle, self._on_move = settle, on_move
        self._role, self._control, self._learners, self._lessons = role, control, learners, lessons
        self._link = role.links[0]
        self._is_paused = False  # as rank 0 wants it
        self._is_to_stop = False
        self.num_turns = 0
        self._has_failed = False  # it takes no turns until it is rolled back
        self._turn: Turn | None = None  # not carried out yet: what comes after it waits
        self._known_lessons = lessons.state(), lessons.num_resets
        self._beat: Trigger[float] = Trigger(BEAT_SECONDS, by_clock=True)

    def report(self, report: Report) -> None:
        """Send rank 0 this."""
        self._beat.restart(self._role.clock())
        self._link.send(report)

    def exchange(self, *, may_be_silent: bool = False) -> None:
        """Hear what rank 0 wants, up to its next turn. may_be_silent: also where it has said nothing for too long."""
        if self._control.stop_mode is None:
            self._listen(may_be_silent=may_be_silent)

    def _listen(self, *, may_be_silent: bool = False) -> None:
        self._say_alive()
        while self._turn is None and (word := self._link.receive(may_be_silent=may_be_silent)) is not None:
            assert isinstance(word, ControlWord)
            self._follow(word)
            if self._has_failed:
                self._turn = None
            if word.stop is not None:
                return

    def beat(self) -> None:
        """Say that it is alive, where it waits. A lost rank shows at the next exchange."""
        with suppress(SyncError):
            self._say_alive()

    def _say_alive(self) -> None:
        if self._beat.is_due(self._role.clock()):
            self.report(Report())

    def announce(self, change: Change) -> None:
        """Only rank 0 changes anything."""

    def next_turn(self) -> Turn | None:
        """What all ranks do next; None where rank 0 has not decided it yet."""
        self.exchange()
        turn, self._turn = self._turn, None
        self.num_turns += turn is not None
        return turn

    def wait(self, seconds: float) -> None:
        """Return once rank 0 has something to say, or after that time."""
        self._link.wait(seconds)

    def note_heard(self) -> None:
        """All ranks have just finished an update together."""
        self._link.note_heard()

    def named(self, error: SyncError) -> SyncError | None:
        """See Agreement."""
        start = self._role.clock()
        try:
            while self._role.clock() < start + 2 * NAMING_SECONDS:  # rank 0 needs half of that to find out
                self._turn = None
                self.exchange(may_be_silent=True)
                if self._control.stop_mode is not None:
                    return None
                self.wait(NAMING_LOOK_SECONDS)
        except SyncError as found:
            return found
        return self._link.silent() if self._link.heard_at < start else error

    def fail(self, error: RlTuiError) -> None:
        """Training has ended here because of that; where it has diverged, rank 0 decides how it goes on."""
        self._has_failed, self._turn = True, None
        if isinstance(error, NonFiniteError):
            with suppress(SyncError):
                self.report(Report(diverged=str(error)))

    def leave(self, failure: Failure | None) -> None:
        """Rank 0 learns of a failure, or of a stop that it has not asked for; without a failure this rank stays
        reachable until rank 0 leaves, which may still save."""
        with suppress(RlTuiError):  # rank 0 has left
            if failure is not None:
                self._link.send(Report(failure=failure))
            elif self._control.stop_mode is not None and not self._is_to_stop:
                self._link.send(Report(is_stopped=True))
            while failure is None and self._control.stop_mode != "now":
                self._turn = None
                self._listen()
                self.wait(0.1)
        self._role.close()

    def _follow(self, word: ControlWord) -> None:
        if word.lost:
            raise SyncError(word.lost.reason, word.lost.exit_code)
        if word.stop is not None:
            self._is_to_stop = True
            self._control.stop(word.stop)
        elif word.is_paused != self._is_paused:  # this rank may have parked by itself, having diverged
            self._is_paused = word.is_paused
            (self._control.pause if word.is_paused else self._control.resume)()
        if word.lessons is not None and word.lessons != self._known_lessons:
            self._known_lessons = word.lessons
            self._lessons.adopt(*word.lessons)
        if word.change is not None:
            self._carry_out(word.change)
        self._turn = word.turn
        if word.diverged and not all(learner.is_over for learner in self._learners().values()):
            raise NonFiniteError(word.diverged)

    def _carry_out(self, change: Change) -> None:
        self._settle(str(change.behavior))
        match change:
            case RolledBack():
                self._has_failed = False
                self.num_turns += 1
                self._learners()[change.behavior].roll_back_to(change.state, change.step, change.path)
            case LeagueMove():
                self._on_move(change)
            case ShareReplay():
                self._send_replay(change.behavior)
            case _:
                learner = self._learners()[str(change.behavior)]
                learner.hyperparameters.set(change.name, change.value, learner.step)

    def _send_replay(self, behavior: str) -> None:
        learner = self._learners().get(behavior)
        for message in messages_of(behavior, None if learner is None else learner.trainer.replay()):
            self.report(Report(replay=message))
