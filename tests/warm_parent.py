"""A process that has imported everything, and forks one that runs a Python command line whenever it is asked to.

Importing torch is most of the work of a short run. Nothing is computed before the fork, so that there is one thread.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import resource
import runpy
import select
import signal
import site
import socket
import struct
import sys
import termios
import threading
import time
import traceback
import types
import warnings
import weakref
from dataclasses import dataclass
from typing import Any, NoReturn, TextIO

LENGTH = struct.Struct("!I")
STATUS = struct.Struct("!i")
STREAMS = 3
OWN_DESCRIPTOR = 512  # of a program's own connection: above those of its streams and pipes
LIBRARIES = (
    "gymnasium.envs.classic_control", "onnx", "onnxruntime", "psutil", "safetensors.numpy", "torch.onnx", "textual.app",
    "tensorboard.compat.proto.event_pb2", "tensorboard.summary.writer.record_writer",
)  # fmt: skip
OPTIONAL = ("mlflow", "wandb")  # slow to import, and used by few


@dataclass(frozen=True, slots=True)
class Request:
    """One command line. options: of -W. program: after -c or -m, or a script. ignored: signals.

    group: of processes, to which it belongs. file_bytes: at most in a file, -1 for any number. numbers: of descriptors
    above 2.
    """

    options: list[str]
    is_safe: bool
    kind: str
    program: str
    words: list[str]
    folder: str
    variables: dict[str, str]
    group: int
    leads_session: bool
    takes_terminal: bool
    ignored: list[int]
    file_bytes: int
    numbers: list[int]


def serve(connection: int) -> None:
    """Answer requests until the other side has gone; in a forked process, run the program and do not return."""
    folders, filters = sys.path[:], warnings.filters[:]
    import_everything()
    imported = [entry for entry in warnings.filters if entry not in filters]
    assert len(os.listdir("/proc/self/task")) == 1, "a library has a thread, which a fork would lack"
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        finalizer.atexit = False  # torch has many, which take a while and tidy nothing up
    gc.collect()
    gc.freeze()
    first = socket.socket(fileno=connection)
    asked = [first]  # and by each program that was forked, for its workers
    ended, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    reporting: dict[int, int] = {}  # pid -> where its end is reported
    while first in asked:
        ready, _, _ = select.select([ended, *asked], [], [])
        if ended in ready:
            os.read(ended, 4096)
            report_ends(reporting)
        for asking in [each for each in asked if each in ready]:
            content, descriptors = receive(asking)
            if not content:
                asked.remove(asking)
                asking.close()
                continue
            report, *theirs = descriptors
            ours, own = socket.socketpair()
            begun, begins = os.pipe()
            pid = os.fork()
            if pid == 0:
                request = Request(**json.loads(content))
                join_group(request)
                os.close(begun)
                os.close(begins)
                signal.set_wakeup_fd(-1)
                for number in (ended, wakes, report, *reporting.values(), *(each.detach() for each in (*asked, ours))):
                    os.close(number)
                warnings.filters[:] = [*imported, *filters]  # type: ignore[index]  # it is a list
                start_workers_through(own)
                execute(request, theirs, folders, len(imported))
            os.close(begins)
            os.read(begun, 1)  # until it is closed: who has the pid may kill the group, which must be there by then
            os.close(begun)
            asked.append(ours)
            reporting[pid] = report
            for number in (own.detach(), *theirs):
                os.close(number)
            with contextlib.suppress(OSError):  # it was killed meanwhile
                asking.sendall(LENGTH.pack(pid))


def import_everything() -> None:
    """What the programs of the tests import sooner or later."""
    import rl_tui

    for module in pkgutil.walk_packages(rl_tui.__path__, "rl_tui."):
        if not module.name.endswith(("__main__", *OPTIONAL)):
            importlib.import_module(module.name)
    for name in LIBRARIES:
        importlib.import_module(name)
    from rl_tui.engine.config.types import Settings

    complete(Settings)


def complete(model: Any) -> None:
    """Pydantic has built the validators of this model and of those below it, which it leaves until one is read."""
    model.model_rebuild()
    for each in model.__subclasses__():
        complete(each)


def start_workers_through(connection: socket.socket) -> None:
    """The workers of this process's pools are forked by the other side of the connection."""
    from rl_tui.engine.sampling.pools import child
    from tests.warm_start import WarmParent, WarmProcess, WarmSubprocess  # which imports this module

    out_of_the_way = fcntl.fcntl(connection.detach(), fcntl.F_DUPFD_CLOEXEC, OWN_DESCRIPTOR)
    parent = WarmParent(socket.socket(fileno=out_of_the_way))
    WarmProcess.parent = staticmethod(lambda: parent)
    child.subprocess = WarmSubprocess("subprocess")


def report_ends(reporting: dict[int, int]) -> None:
    """Report of every process that has ended how it did, as waitpid does."""
    for pid in list(reporting):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            with contextlib.suppress(BrokenPipeError):
                os.write(reporting[pid], STATUS.pack(status))
            os.close(reporting.pop(pid))


def receive(asked: socket.socket) -> tuple[bytes, list[int]]:
    """The content of one request and its descriptors; nothing at the end."""
    head, content, descriptors = b"", b"", list[int]()
    with contextlib.suppress(ConnectionResetError):  # as at the end, by one that was killed
        head, descriptors, _, _ = socket.recv_fds(asked, LENGTH.size, 64)
    if not head:
        return b"", []
    (length,) = LENGTH.unpack(head)
    while len(content) < length and (more := asked.recv(length - len(content))):
        content += more
    return content if len(content) == length else b"", descriptors


def join_group(request: Request) -> None:
    """Be in the session or process group of the request, as a process is once subprocess has started it."""
    if request.leads_session:
        os.setsid()
    else:
        os.setpgid(0, request.group)


def execute(request: Request, descriptors: list[int], folders: list[str], place: int) -> None:
    """Run the program as a new interpreter would, and end. place: of -W's filters among all."""
    move(descriptors, [*range(STREAMS), *request.numbers])
    if request.takes_terminal:
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in request.ignored:
        signal.signal(number, signal.SIG_IGN)
    if request.file_bytes >= 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request.file_bytes, request.file_bytes))
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.variables)
    time.tzset()
    prepare(request, folders, place)
    end(run(request))


def move(descriptors: list[int], numbers: list[int]) -> None:
    """Give the descriptors these numbers."""
    above = max([*descriptors, *numbers]) + 1
    for offset, descriptor in enumerate(descriptors):
        os.dup2(descriptor, above + offset)
        os.close(descriptor)
    for offset, number in enumerate(numbers):
        os.dup2(above + offset, number)
        os.close(above + offset)


def prepare(request: Request, folders: list[str], place: int) -> None:
    """Streams, module search path, warnings and __main__ of a fresh interpreter."""
    sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8", closefd=False)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = stream(1, "strict")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = stream(2, "backslashreplace")  # type: ignore[misc]
    first = {"-c": "", "-m": request.folder}.get(request.kind, os.path.dirname(request.program))
    own = request.variables.get("PYTHONPATH", "")
    sys.path[:] = [*([] if request.is_safe else [first]), *filter(None, own.split(os.pathsep)), *folders]
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    sys.modules.pop("sitecustomize", None)
    site.execsitecustomize()
    above, below = warnings.filters[:place], warnings.filters[place:]
    warnings.filters[:] = below  # type: ignore[index]
    for option in request.options:
        warnings._setoption(option)  # type: ignore[attr-defined]
    warnings.filters[:0] = above  # type: ignore[index]
    sys.warnoptions[:] = request.options
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.modules["__main__"].__dict__["__builtins__"] = __builtins__
    kind = [request.kind] if request.kind else []
    sys.argv[:] = [request.kind if request.kind else request.program, *request.words]
    sys.orig_argv[:] = [sys.executable, *kind, request.program, *request.words]


def stream(number: int, errors: str) -> TextIO:
    """A text stream that writes to a descriptor, by lines where a user or a log reads them."""
    is_unbuffered, is_shown_at_once = bool(os.environ.get("PYTHONUNBUFFERED")), number == 2 or os.isatty(number)
    return io.TextIOWrapper(
        os.fdopen(number, "wb", buffering=0 if is_unbuffered else -1, closefd=False),  # type: ignore[arg-type]
        encoding="utf-8",
        errors=errors,
        line_buffering=is_shown_at_once,
        write_through=is_unbuffered,
    )


def end(result: object) -> NoReturn:
    """End as an interpreter does after `sys.exit(result)`, but free only what this process made, to be warned of leaks.

    To free what it shares with its parent, too, copies that first, and takes a quarter of a second.
    """
    if not (result is None or isinstance(result, int)):
        print(result, file=sys.stderr)
        result = 1
    code = result or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.modules["__main__"].__dict__.clear()
    gc.collect()
    for one in filter(None, (sys.stdout, sys.stderr)):
        try:
            one.flush()
        except (OSError, ValueError):  # the latter once closed
            code = code if one.closed else 120
    os._exit(code & 0xFF)


def run(request: Request) -> object:
    """What the program gave sys.exit, which ends the process as an uncaught exception ends an interpreter."""
    main = sys.modules["__main__"].__dict__
    try:
        if request.kind == "-m":
            runpy._run_module_as_main(request.program)  # type: ignore[attr-defined]
        elif request.kind == "-c":
            exec(compile(request.program, "<string>", "exec"), main)  # noqa: S102  # what -c is for
        else:
            main["__file__"] = request.program
            with open(request.program, "rb") as script:
                exec(compile(script.read(), request.program, "exec"), main)  # noqa: S102  # it is a test's
    except SystemExit as leaving:
        return leaving.code
    except BaseException as error:  # noqa: BLE001  # as the interpreter does
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename in (__file__, runpy.__file__):
            frames = frames.tb_next
        traceback.print_exception(type(error), error, frames)
        return 1
    return 0
