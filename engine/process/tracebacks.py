"""What an error says, where in the user's code it was raised, or where a thread is now."""

from __future__ import annotations

import faulthandler
import itertools
import os
import sys
import sysconfig
import traceback
from pathlib import Path

_OURS = f"{Path(__file__).parents[1]}{os.sep}"
_STANDARD = f"{sysconfig.get_path('stdlib')}{os.sep}"
_INSTALLED = {"site-packages", "dist-packages"}
_STDERR = 2


def text_of(error: BaseException) -> str:
    """Its message; what stands for that where its own `__str__` raises."""
    try:
        return str(error)
    except (Exception, SystemExit) as raised:
        return f"(its message is unknown: __str__ raised {type(raised).__name__})"


def notes_of(error: BaseException) -> list[str]:
    """Those that were added to it."""
    notes = getattr(error, "__notes__", ())
    return [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []


def name_and_text(error: BaseException) -> str:
    """Its class and its message, as the last line of a traceback has them."""
    return f"{type(error).__name__}: {text_of(error)}"


def user_traceback(error: BaseException, *, with_notes: bool = True) -> str:
    """The traceback as Python prints it, from where the user's code was called; with or without the error's own notes.

    An error that was raised in our own code keeps all of its frames.
    """
    try:
        return _formatted(error, with_notes)
    except (Exception, SystemExit):  # of its own attributes
        return _only_frames(error)


def whole_traceback(error: BaseException) -> str:
    """The traceback as Python prints it."""
    try:
        return "".join(traceback.format_exception(error))
    except (Exception, SystemExit):  # as above
        return _only_frames(error)


def place_of(error: BaseException) -> str:
    """The user's line that raised, such as "my_env.py:12 in step"; "" when only our own code was involved."""
    if isinstance(error, SyntaxError) and isinstance(error.filename, str) and error.filename and error.lineno:
        return f"{shown_path(error.filename)}:{error.lineno}"
    return _place(traceback.extract_tb(error.__traceback__))


def forget_locals(error: BaseException) -> None:
    """The frames that the error has left hold nothing any more, nor do those of its causes: what is kept is words."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            traceback.clear_frames(each.__traceback__)
            waiting.extend(cause for cause in (each.__cause__, each.__context__) if cause is not None)


def place_in_thread(ident: int) -> tuple[str, str]:
    """The same of what a thread does now, and its stack from where the user's code was called; "" if it has ended."""
    frame = sys._current_frames().get(ident)
    if frame is None:
        return "", ""
    stack = traceback.extract_stack(frame)
    ours = [index for index, each in enumerate(stack) if _is_ours(each)]
    called = traceback.StackSummary.from_list(stack[ours[-1] + 1 :] if ours else stack)
    return _place(called), "".join(called.format())


def shown_path(file: str) -> str:
    """Relative if the file is below the working folder."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


def _formatted(error: BaseException, with_notes: bool) -> str:
    whole = traceback.TracebackException.from_exception(error)
    if not with_notes:
        whole.__notes__ = None
    seen: set[int] = set()
    waiting = [whole]
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        called = list(itertools.dropwhile(_is_ours, each.stack))
        if called or hasattr(each, "filename"):  # a SyntaxError names its place itself
            each.stack = traceback.StackSummary.from_list(called)
        waiting.extend(cause for cause in (each.__cause__, each.__context__) if cause is not None)
    return "".join(whole.format())


def _only_frames(error: BaseException) -> str:
    """What is left of the traceback of an error that Python itself cannot print."""
    frames = traceback.extract_tb(error.__traceback__)
    called = list(itertools.dropwhile(_is_ours, frames)) or list(frames)
    shown = "".join(traceback.StackSummary.from_list(called).format())
    return f"Traceback (most recent call last):\n{shown}{name_and_text(error)}\n"


def _place(frames: traceback.StackSummary) -> str:
    """The innermost frame in the user's own files, or else in any library."""
    foreign = [frame for frame in frames if not _is_ours(frame)]
    own = [frame for frame in foreign if not _is_installed(frame)]
    if not foreign:
        return ""
    frame = (own or foreign)[-1]
    within = "" if frame.name == "<module>" else f" in {frame.name}"
    return f"{shown_path(frame.filename)}:{frame.lineno}{within}"


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith((_OURS, "<frozen importlib")) or (
        frame.filename.startswith(_STANDARD) and f"{os.sep}importlib{os.sep}" in frame.filename
    )


def _is_installed(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith((_STANDARD, "<")) or not _INSTALLED.isdisjoint(Path(frame.filename).parts)


def show_stacks_of_crash() -> None:
    """From now on a crash in C writes the stacks of all threads to stderr, unless they go somewhere else already."""
    if not faulthandler.is_enabled():
        faulthandler.enable(_STDERR)
