"""Python programs in processes of their own that need not import torch first: see warm_parent.py."""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from tests.unity_player.executable import read_player
from tests.warm_parent import LENGTH, STATUS, Request

ROOT = Path(__file__).parents[1]
IS_POSSIBLE = sys.platform == "linux"  # elsewhere libraries do not survive a fork
COLD = ("env",)  # before a command line: as every other program, it is not forked
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# Runs before a program that is not forked: makes the pseudo-terminal on stdout its controlling terminal, for example.
BEFORE = """
import fcntl, json, os, resource, signal, sys, termios
takes_terminal, ignored, file_bytes = json.loads(sys.argv[1])
if takes_terminal:
    fcntl.ioctl(1, termios.TIOCSCTTY, 0)
for number in ignored:
    signal.signal(number, signal.SIG_IGN)
if file_bytes >= 0:
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
os.execvp(sys.argv[2], sys.argv[2:])
"""


class WarmParent:
    """A connection to the warm parent. Any thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._lock = threading.Lock()

    def fork(self, request: Request, descriptors: list[int]) -> int:
        """The pid of a new process. descriptors: where its end is reported, its streams, and others of its own."""
        content = json.dumps(asdict(request)).encode()
        with self._lock:
            socket.send_fds(self._socket, [LENGTH.pack(len(content))], descriptors)
            self._socket.sendall(content)
            answer = self._socket.recv(LENGTH.size)
        assert answer, "the warm parent has ended"
        return int(LENGTH.unpack(answer)[0])


@functools.cache
def warm_parent() -> WarmParent:
    """The one that this process has started, which ends with it; programs that it has forked go on."""
    ours, theirs = socket.socketpair()
    imports = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests import warm_parent, warm_start; sys.path.pop(0)"
    )
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", f"{imports}; warm_parent.serve({theirs.fileno()})"],
        cwd=ROOT, env=variables | ONE_THREAD, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
        process_group=0,  # what ends the group of this process ends the programs, as if they were its children
    )  # fmt: skip
    theirs.close()
    atexit.register(process.wait)
    atexit.register(ours.close)
    return WarmParent(ours)


class WarmProcess(subprocess.Popen[Any]):
    """A Popen whose process is forked from the warm parent when it is one of this interpreter; else a usual one.

    So is that of a stand-in player, without the shell that starts it. takes_terminal: the process leads a session of
    its own, whose terminal is stdout. ignored: signals. file_bytes: at most in a file, -1 for any number.
    """

    parent = staticmethod(warm_parent)
    command_lines: ClassVar[dict[int, list[str]]] = {}  # of those that run; to the system they have the parent's

    def __init__(
        self,
        args: Any,
        *,
        takes_terminal: bool = False,
        ignored: Sequence[int] = (),
        file_bytes: int = -1,
        **options: Any,
    ) -> None:
        self._before = {
            "takes_terminal": takes_terminal, "ignored": [int(number) for number in ignored], "file_bytes": file_bytes,
        }  # fmt: skip
        self._report: socket.socket | None = None  # on which the parent says how the process ended
        if (takes_terminal or ignored or file_bytes >= 0) and _parsed(args) is None:
            args = [sys.executable, "-I", "-c", BEFORE, json.dumps([*self._before.values()]), *args]
        super().__init__(args, start_new_session=options.pop("start_new_session", takes_terminal), **options)

    def _execute_child(self, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, cwd: Any,
                       env: Any, startupinfo: Any, creationflags: Any, shell: Any, p2cread: int, p2cwrite: int,
                       c2pread: int, c2pwrite: int, errread: int, errwrite: int, *more: Any) -> None:  # fmt: skip
        variables, words = _of_player(args)
        parsed = None if shell or executable or preexec_fn else _parsed(words)
        if parsed is None:
            super()._execute_child(  # type: ignore[misc]
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
                p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *more,
            )  # fmt: skip
            return
        request = Request(
            **parsed,
            folder=os.path.abspath(os.fspath(cwd or os.getcwd())),
            variables=dict(os.environ if env is None else env) | variables,
            group=os.getpgrp(),
            leads_session=bool(more[-2]),
            **self._before,
            numbers=list(pass_fds),
        )
        streams = [own if own >= 0 else inherited for inherited, own in enumerate((p2cread, c2pwrite, errwrite))]
        self._report, theirs = socket.socketpair()
        self.pid = self.parent().fork(request, [theirs.fileno(), *streams, *pass_fds])
        theirs.close()
        self.command_lines[self.pid] = [os.fsdecode(word) for word in args]
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        return self._await_end(self.pid, wait_flags)

    def _internal_poll(self, *args: Any, **options: Any) -> int | None:
        return super()._internal_poll(*args, **options, _waitpid=self._await_end)  # type: ignore[misc,no-any-return]

    def _await_end(self, pid: int, flags: int) -> tuple[int, int]:
        """What os.waitpid returns of a child."""
        if self._report is None:
            return os.waitpid(pid, flags)
        if flags & os.WNOHANG and not select.select([self._report], [], [], 0)[0]:
            return 0, 0
        status = self._report.recv(STATUS.size)
        assert status, "the warm parent has ended"
        self._report.close()
        self.command_lines.pop(pid, None)
        return pid, STATUS.unpack(status)[0]


class WarmSubprocess(ModuleType):
    """The module subprocess, whose Popen is a WarmProcess."""

    Popen = WarmProcess

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)


def _of_player(args: Any) -> tuple[dict[str, str], Any]:
    """The variables and the command line of the player that is started; else none, and the command line as it is."""
    if isinstance(args, list) and args and args[0] != sys.executable and (found := read_player(os.fsdecode(args[0]))):
        variables, words = found
        return variables, [*words, *args[1:]]
    return {}, args


def _parsed(args: Any) -> dict[str, Any] | None:
    """What a command line of this interpreter says; None for one of another program, or with options not known here."""
    words = [] if isinstance(args, str | bytes | os.PathLike) else [os.fsdecode(word) for word in args]
    if not IS_POSSIBLE or not words or words[0] != sys.executable:
        return None
    options, is_safe, at = list[str](), False, 1
    while at < len(words) and words[at] in ("-W", "-P"):
        is_safe |= words[at] == "-P"
        options += words[at + 1 : at + 2] if words[at] == "-W" else []
        at += 2 if words[at] == "-W" else 1
    kind = words[at] if words[at : at + 1] in (["-c"], ["-m"]) else ""
    at += bool(kind)
    if at >= len(words) or (not kind and words[at].startswith("-")):
        return None
    return {"options": options, "is_safe": is_safe, "kind": kind, "program": words[at], "words": words[at + 1 :]}
