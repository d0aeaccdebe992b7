"""The process's standard streams: while a screen is on, only the screen reaches the terminal."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from rl_tui.engine.errors import OutputError, RlTuiError
from rl_tui.engine.process.printing import open_log, redirect_descriptors, redirect_printing
from rl_tui.engine.session.long_texts import shorten
from rl_tui.engine.session.text import safe_text

HANGUP_CODE = 129  # as after SIGHUP: the terminal is gone


@contextlib.contextmanager
def redirect_output(log_path: Path) -> Iterator[None]:
    """Inside, file descriptors 1 and 2 append to `log_path`; `sys.__stdout__` and `sys.__stderr__` are the terminal.

    What is printed when the file cannot be written is lost.

    Textual paints through `sys.__stderr__` and asks `sys.__stdout__` for the terminal's size, so libraries in C that
    write to a descriptor cannot garble the screen.
    Enter it before the app is made; leaving restores everything. Raises OSError if the file cannot be opened.
    """
    log = open_log(log_path)
    former_out, former_err, former_originals = os.dup(1), os.dup(2), (sys.__stdout__, sys.__stderr__)
    former_streams = sys.stdout, sys.stderr
    screen = os.fdopen(os.dup(2), "w", encoding=sys.stderr.encoding, errors="replace")
    try:
        sys.__stdout__ = sys.__stderr__ = screen  # type: ignore[misc]  # final, yet where Textual looks
        redirect_printing(log)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = former_streams
        os.dup2(former_out, 1)
        os.dup2(former_err, 2)
        sys.__stdout__, sys.__stderr__ = former_originals  # type: ignore[misc]  # as above
        with contextlib.suppress(OSError):  # the terminal may be gone
            screen.close()
        for descriptor in (log, former_out, former_err):
            os.close(descriptor)


def move_output(source: Path, target: Path) -> bool:
    """Inside `redirect_output`: output goes to `target` from now on, after the content of `source`, which is emptied.

    Returns whether `target` could be opened; if not, nothing has changed.
    """
    try:
        log = open_log(target)
    except OSError:
        return False
    redirect_descriptors(log)
    with contextlib.suppress(OSError), source.open("r+b") as earlier:  # a full disk must not end the run
        os.write(log, earlier.read())
        earlier.truncate(0)
    os.close(log)
    return True


def ensure_streams() -> None:
    """stdin, stdout and stderr exist, even where a shell closed one; else the next file would get its number.

    Writing to a closed stdout fails; what is written to a closed stderr is lost.
    """
    for descriptor, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)  # the lowest free number, for workers too
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def leave_streams() -> None:
    """What is read from stdin is empty, and what is written to stdout and stderr is lost, from now on."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def why_no_screen() -> str:
    """Why no screen is possible here; "" when one is."""
    for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout), ("stderr", sys.stderr)):
        if stream is None or not stream.isatty():
            return f"{name} is not a terminal"
    if os.environ.get("TERM", "dumb") == "dumb":
        return "the terminal is dumb (TERM)"
    return ""


@contextlib.contextmanager
def open_without_waiting(terminal: int) -> Iterator[int]:
    """Inside, a descriptor of the same terminal whose reads raise BlockingIOError where there is nothing to read.

    `terminal` itself stays as it is: its flags are also those of the shell. Without job control, where no other job
    takes what a poll has found, it is used.
    """
    try:
        os.tcgetpgrp(terminal)  # then it is the one that /dev/tty opens, even where its device is of another user
        descriptor = os.open("/dev/tty", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        yield terminal
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_stdout(text: str, stdout: TextIO | None = None) -> None:
    """The text, and what was printed before, is on stdout. Raises OutputError, or BrokenPipeError without a reader.

    stdout: instead of `sys.stdout`.
    """
    stdout = stdout or sys.stdout
    try:
        if text:  # unbuffered (PYTHONUNBUFFERED), writing nothing fails too once the terminal is gone
            stdout.write(text)
        stdout.flush()
    except OSError as error:
        silence(stdout)
        if isinstance(error, BrokenPipeError):
            raise
        raise OutputError(f"stdout cannot be written: {error.strerror or error}") from error


def write_stderr(text: str, stderr: TextIO | None = None) -> None:
    """The text is on stderr, without control characters that come from a file or a name.

    stderr: instead of `sys.stderr`. Where it cannot be written (its reader is gone), only the text is lost.
    """
    stderr = stderr or sys.stderr
    try:
        stderr.write(safe_text(text, multiline=True) + "\n")
        stderr.flush()
    except OSError:
        silence(stderr)


def write_error(error: RlTuiError) -> None:
    """The error is on stderr, with the traceback of the user's own code if it was raised there."""
    write_stderr(shorten(f"{error}\n{error.detail}".rstrip()))


def silence(stream: TextIO) -> None:
    """Discard what is written to a stream without a reader; else the interpreter would fail once more at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
