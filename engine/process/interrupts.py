"""What interrupts the program from outside, and what only looks like it."""

from __future__ import annotations

import inspect
import itertools
import signal
import threading
import traceback
from types import FrameType


def is_interrupt(error: BaseException) -> bool:
    """Whether it is no failure of the code that was called: the user has pressed Ctrl-C, or a signal handler of the
    program has raised it. Python does both in the main thread only, and Ctrl-C not while SIGINT is ignored."""
    if threading.current_thread() is not threading.main_thread():
        return False
    if isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        return True
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(itertools.starmap(_is_handler, itertools.pairwise(frames)))


def _is_handler(interrupted: FrameType, called: FrameType) -> bool:
    """Whether Python called it for a signal: with the frame that was interrupted, which no other call passes on."""
    names, more, _, values = inspect.getargvalues(called)
    arguments = [*(values.get(name) for name in names), *(values.get(more, ()) if more else ())]
    return any(argument is interrupted for argument in arguments)
