"""Environments in a child of the process that was started, which stays to say how it ended, whatever ended it.

Nothing that an environment in this process does, from os._exit to a crash in C or a call that never gives back the
interpreter, then looks like success, keeps a signal from ending it, or leaves a terminal as it is.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import os
import select
import signal
import sys
import termios
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.process.files import open_regular
from rl_tui.engine.process.hangups import ENDING as HANGUPS_END
from rl_tui.engine.process.hangups import Hangups
from rl_tui.engine.process.vital_signs import SIGNS, Phase
from rl_tui.tui.terminal.relaunch import relaunch
from rl_tui.tui.terminal.streams import leave_streams, write_stderr

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ASKING = (signal.SIGUSR1, signal.SIGUSR2)
FORWARDED = (*ENDING, *ASKING)
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS)
STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
POLL_SECONDS = 1.0
STOPPED_SECONDS = 3.0  # between two polls, unless this process was stopped or the machine was suspended
SIGNAL_SECONDS = 5.0  # from a signal that ends until what does not answer, or has nothing to save, is killed
KILL_SECONDS = 2.0  # from SIGABRT, at which the stacks are written, to SIGKILL
STACK_BYTES = 1 << 16  # what a pipe holds
LOST: Mapping[Phase, str] = {
    "starting": "; training had not begun",
    "training": "; what was learned since the last checkpoint is lost",
    "saving": "; what was learned since the last checkpoint is lost",
}
SAVED_BY_RANK_0: Mapping[Phase, str] = {"training": "; rank 0 saves what was learned"}  # on another rank
LEAVE_SCREEN = (
    "\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1004l"
    "\x1b[<u\x1b[?1049l\x1b[?25h\x1b[23;0t"
)


def is_watchable() -> bool:
    """Not under a debugger or a profiler, which would follow the wrong process."""
    is_traced = sys.gettrace() is not None or sys.getprofile() is not None
    tools = getattr(sys, "monitoring", None)
    return not is_traced and (tools is None or all(tools.get_tool(number) is None for number in range(6)))


def run_watched(
    train: Callable[[], int],
    hangups: Hangups = HANGUPS_END,
    on_watching: Callable[[], object] = lambda: None,
    lost: Mapping[Phase, str] = LOST,
) -> int:
    """The exit code of `train`, which is called in a child process: there this returns what that returns.

    Called before there is any thread. The process that was started returns, too, once the child has ended, or ends as
    that did. on_watching: called there, once it watches. lost: what an end of the child means for the run, by what it
    was doing.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    watcher = Watcher(hangups, lost)
    if watcher.fork():
        on_watching()
        return watcher.watch()
    return train()


def play_watched(play: Callable[[], int]) -> int:
    """The same for what only plays, in the main thread of the child, and handles no signals."""

    def play_in_child() -> int:
        from rl_tui.engine.running.threads import keep_beating  # after the fork: the watcher needs none of it

        SIGNS.enter("playing")
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _interrupt)
        keep_beating()
        return play()

    return run_watched(play_in_child)


class Watcher:
    """Used by the main thread of the process that was started, which has no other; once the child has left that, by the
    main thread of one that takes its place and has no children.
    """

    def __init__(self, hangups: Hangups, lost: Mapping[Phase, str]) -> None:
        SIGNS.share()
        self._hangups, self._lost = hangups, lost
        self._child = 0
        self._lifeline = self._stacks = self._woken = -1
        self._terminal = _terminal_modes()
        self._ends_at: float | None = None  # when the child is killed, for a signal
        self._signal = 0  # the first that ends
        self._beats, self._beat_at = (0, 0), time.monotonic()
        self._checked_at = time.monotonic()
        self._killed_for = ""  # why it was killed, in words

    def fork(self) -> bool:
        """Whether this is the process that was started. The other one dies with it."""
        lifeline_end, self._lifeline = os.pipe()
        self._stacks, stacks_end = os.pipe()
        self._woken, wake = os.pipe()
        for descriptor in (stacks_end, wake, self._woken, self._stacks):
            os.set_blocking(descriptor, False)
        former = {number: signal.getsignal(number) for number in (*FORWARDED, signal.SIGCHLD, signal.SIGTSTP)}
        handled = [number for number in former if former[number] != signal.SIG_IGN or number == signal.SIGCHLD]
        former_wake = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in handled:
            signal.signal(number, _note)
        parent = os.getpid()
        self._child = os.fork()
        if self._child:
            os.close(lifeline_end)
            os.close(stacks_end)
            return True
        signal.set_wakeup_fd(former_wake)
        for number in handled:
            is_default = former[number] in (signal.SIG_DFL, None)
            # before a run handles these, and once it has ended, to be asked for a checkpoint must not kill it
            unhandled = signal.SIG_IGN if number in ASKING else signal.SIG_DFL
            signal.signal(number, unhandled if is_default else former[number])
        for descriptor in (self._lifeline, self._stacks, self._woken, wake):
            os.close(descriptor)
        SIGNS.watcher = parent
        _die_with(lifeline_end)
        faulthandler.enable(stacks_end)
        return False

    def watch(self) -> int:
        """Forward signals until the child has ended; its exit code, or what its end without one means."""
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        while True:
            poll.poll(POLL_SECONDS * 1000)
            if SIGNS.has_left:
                self._let_another_watch(poll)
            for number in self._signals():
                self._forward(number)
            pid, status = os.waitpid(self._child, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                if os.WSTOPSIG(status) in STOPS:
                    os.kill(os.getpid(), signal.SIGSTOP)
                    os.kill(self._child, signal.SIGCONT)
            elif pid:
                return self._end(status)
            self._check()

    def _let_another_watch(self, poll: select.poll) -> NoReturn:
        """This process ends, so that a shell goes on, and one without a terminal watches in its place. That is not the
        child's parent, and does not learn how it ends.

        It leaves the session before this process ends: a terminal may be closed as soon as it has, and the kernel
        signals all that are in the session. Until then a hangup is the terminal's, and the child has none.
        """
        is_apart, apart = os.pipe()
        if os.fork():
            os.close(apart)
            os.read(is_apart, 1)
            os._exit(0)
        os.setsid()
        leave_streams()
        for number in self._signals():
            if number != signal.SIGHUP:
                self._forward(number)
        os.close(apart)
        os.close(is_apart)
        other_end = select.poll()
        other_end.register(self._stacks, 0)  # only the child has it
        while not other_end.poll(0):
            poll.poll(POLL_SECONDS * 1000)
            for number in self._signals():
                self._forward(number)
            self._check()
        if SIGNS.phase != "over":
            calls = ", ".join(SIGNS.calls())
            ended = f"the process has ended{f' during {calls}' if calls else ''}, or was killed"
            self._say(f"{calls} {self._killed_for}" if self._killed_for else ended, needs_stack=True)
        os._exit(0)

    def _signals(self) -> bytes:
        with contextlib.suppress(BlockingIOError):
            return os.read(self._woken, 1024)
        return b""

    def _forward(self, number: int) -> None:
        if number == signal.SIGCHLD:
            return
        is_survived = number == signal.SIGHUP and self._hangups.is_survived()
        if number in ENDING and not is_survived and self._ends_at is None:
            self._signal, self._ends_at = number, time.monotonic() + SIGNAL_SECONDS
            self._beats = _beats()
        if number != signal.SIGTSTP:
            SIGNS.count_forwarded(number)
        os.kill(self._child, number)

    def _check(self) -> None:
        """Kill a child that a signal should have ended, or whose interpreter an environment holds for too long."""
        now = time.monotonic()
        if now - self._checked_at > STOPPED_SECONDS:
            self._beat_at = now
            if self._ends_at is not None:
                self._ends_at = now + SIGNAL_SECONDS
        self._checked_at = now
        if self._killed_for:
            if self._ends_at is not None and now > self._ends_at:
                os.kill(self._child, signal.SIGKILL)
            return
        if self._ends_at is not None:
            if now > self._ends_at:
                self._end_for_signal(now)
            return
        if _beats() != self._beats:
            self._beats, self._beat_at = _beats(), now
        limit = SIGNS.call_seconds
        if 0 < limit < now - self._beat_at and SIGNS.calls():
            self._kill(f"has not returned for {limit:g} s, and kept everything else from running")

    def _end_for_signal(self, now: float) -> None:
        """Give it more time where there is something to save, and it does so or will; else kill it."""
        main, writers = (new > old for new, old in zip(_beats(), self._beats, strict=True))
        if (SIGNS.phase == "training" and main) or (SIGNS.phase == "saving" and (main or writers)):
            self._beats, self._ends_at = _beats(), now + SIGNAL_SECONDS
        else:
            self._kill(f"did not end within {SIGNAL_SECONDS:.0f} s of {signal.Signals(self._signal).name}")

    def _kill(self, why: str) -> None:
        self._killed_for = why
        self._ends_at = time.monotonic() + KILL_SECONDS
        os.kill(self._child, signal.SIGABRT)

    def _end(self, status: int) -> int:
        """Say how the child ended where it did not itself."""
        code = os.waitstatus_to_exitcode(status)
        if SIGNS.phase == "over" and (code >= 0 or self._killed_for or -code in ENDING):
            if SIGNS.next_command:
                relaunch(SIGNS.next_command)
            return code if code >= 0 else SIGNS.exit_code
        if SIGNS.has_screen:
            self._restore_terminal()
        calls = ", ".join(SIGNS.calls())
        if self._killed_for and self._signal:
            self._say(f"{calls or 'rl-tui'} {self._killed_for} and was killed", needs_stack=True)
            return 128 + self._signal
        if self._killed_for:
            self._say(f"{calls} {self._killed_for}", needs_stack=True)
            return EnvironmentFailure.exit_code
        if code >= 0:
            by = "as by os._exit, or by exit in a library"
            self._say(f"{calls or 'rl-tui'} ended the process with exit code {code}, {by}")
            return EnvironmentFailure.exit_code if calls else 1
        number = -code
        if number in CRASHES:
            self._say(f"{calls or 'rl-tui'} crashed ({signal.Signals(number).name})", needs_stack=True)
            if calls:
                return EnvironmentFailure.exit_code
        elif number == signal.SIGKILL:
            self._say("rl-tui was killed (SIGKILL), as by the kernel when memory runs out")
        return _die_by(number)

    def _say(self, what: str, *, needs_stack: bool = False) -> None:
        """One line on stderr, and the same in the run's log with the stacks of all threads, if they are known. Without
        a log these come first."""
        stack = self._read_stacks() if needs_stack else ""
        log = SIGNS.log
        line = what + self._lost.get(SIGNS.phase, "")
        if log and _append(log, f"{line}\n{stack}"):
            write_stderr(line + (f". The stack is in {log}" if stack else ""))
        else:
            write_stderr(f"{stack}{line}")

    def _read_stacks(self) -> str:
        with contextlib.suppress(OSError):
            return os.read(self._stacks, STACK_BYTES).decode(errors="replace")
        return ""

    def _restore_terminal(self) -> None:
        descriptor, modes = self._terminal
        with contextlib.suppress(OSError, termios.error):
            os.write(2, LEAVE_SCREEN.encode())
            if modes is not None and os.tcgetpgrp(descriptor) == os.getpgrp():
                termios.tcflush(descriptor, termios.TCIFLUSH)
                termios.tcsetattr(descriptor, termios.TCSANOW, modes)


def _beats() -> tuple[int, int]:
    return SIGNS.num_beats("main"), SIGNS.num_beats("writers")


def _note(*_: object) -> None:
    """A handler, so that the signal is written to the pipe that wakes the watcher."""


def _interrupt(number: int, _: object) -> None:
    """What Python does at Ctrl-C, once: a terminal's comes both directly and from the watcher."""
    if not SIGNS.is_copy(number):
        raise KeyboardInterrupt


def _terminal_modes() -> tuple[int, list[Any] | None]:
    """stdin, and its modes if it is a terminal."""
    try:
        return 0, termios.tcgetattr(0)
    except termios.error:
        return 0, None


def _die_with(lifeline: int) -> None:
    """This process is killed when the other end of the pipe closes: the kernel does it, in any library's loop."""
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    else:
        signal.signal(signal.SIGIO, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(lifeline, select.POLLHUP)
    if poll.poll(0):  # it closed before the kernel was asked
        os.kill(os.getpid(), signal.SIGKILL)


def _append(log: str, text: str) -> bool:
    try:
        with open(log, "a", encoding="utf-8", errors="backslashreplace", opener=open_regular) as file:
            file.write(text.rstrip() + "\n")
    except OSError:
        return False
    return True


def _die_by(number: int) -> int:
    """End as the child did, so that who waits for this process sees the same; returns what a shell would make of it."""
    with contextlib.suppress(OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # one core suffices
    with contextlib.suppress(OSError):  # SIGKILL has no handler
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
