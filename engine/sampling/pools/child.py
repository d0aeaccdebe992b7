"""A worker's process as the operating system has it: pipes, a shared file, signals, and how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rl_tui.engine.sampling.pools.shared_memory import Status, anonymous_file
from rl_tui.engine.sampling.pools.wire import Record, RecordReader, write

# Not `python -m`: the worker must find exactly the modules that this process finds, and not run its __main__. With `-P`
# the working folder, which may have a json.py, is not searched before that.
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from {program} import main; {then}main(*map(int, sys.argv[2:]))"
)
# Once the modules are there, which takes half a second by itself, and ten while another process trains on every core.
_LOWER_PRIORITY = "from rl_tui.engine.sampling.pools.process_group import lower_priority; lower_priority({niceness}); "
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_DUMP_SECONDS = 3.0  # for a hanging process to dump its stacks, on a busy machine; one that is stopped never does
_EXIT_SECONDS = 1.0  # between the end of a worker's pipe and its exit status


class Child:
    """One process of a pool. Owned by the pool's thread, which calls `start` once, and `close`.

    A session of its own keeps the terminal's signals away; a pipe between the two ends it with this process.
    """

    def __init__(
        self,
        program: str,
        niceness: int = 0,
        variables: Mapping[str, str] = MappingProxyType({}),
        inherited: Sequence[int] = (),
    ) -> None:
        """program: the module whose `main` it runs. variables: of its environment, unless set there. inherited:
        descriptors that `main` gets after those that are made here."""
        self._program = program
        self._inherited = tuple(inherited)
        self._niceness = niceness
        self._variables = {**_ONE_THREAD, **variables}
        self._process: subprocess.Popen[bytes] | None = None
        self._descriptors: dict[str, int] = {}
        self._reader: RecordReader | None = None
        self._status: Status | None = None

    @property
    def pid(self) -> int | None:
        """Of the running process; None before the start and after the end."""
        return self._process.pid if self._process is not None else None

    @property
    def replies(self) -> int:
        """The descriptor that is readable once the process has sent something, or ended."""
        return self._descriptors["replies"]

    @property
    def memory(self) -> int:
        """The descriptor of the shared file."""
        return self._descriptors["memory"]

    def start(self) -> None:
        """Start the process, which waits for records. Raises OSError."""
        command_end, commands = os.pipe()
        replies, reply_end = os.pipe()
        lifeline_end, lifeline = os.pipe()
        memory, dump = anonymous_file("rl-tui-steps"), anonymous_file("rl-tui-stacks")
        self._descriptors = {
            "commands": commands, "replies": replies, "lifeline": lifeline, "memory": memory, "dump": dump,
        }  # fmt: skip
        theirs = (command_end, reply_end, lifeline_end, memory, dump, *self._inherited)
        self._status = Status(memory)
        self._reader = RecordReader(replies)
        then = _LOWER_PRIORITY.format(niceness=self._niceness) if self._niceness else ""
        boot = _BOOT.format(program=self._program, then=then)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", boot, json.dumps(sys.path), *map(str, theirs)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=dump,
                pass_fds=theirs,
                start_new_session=True,
                env={**self._variables, **os.environ},
            )
        finally:
            for end in (command_end, reply_end, lifeline_end):
                os.close(end)

    def send(self, records: list[Record]) -> None:
        """Send records, unless the process has ended, which the next `receive` says."""
        with contextlib.suppress(BrokenPipeError):
            write(self._descriptors["commands"], records)

    def receive(self) -> list[Record]:
        """At least one record, waiting for it. Raises EOFError at the end, ValueError for what is no record."""
        assert self._reader is not None
        return self._reader.read()

    def current_call(self) -> tuple[str, int, int]:
        """What it does, the number of the instance within it, and since when in monotonic nanoseconds."""
        assert self._status is not None
        return self._status.read()

    def printed(self) -> str:
        """What faulthandler and the starting interpreter wrote."""
        dump = self._descriptors["dump"]
        return os.pread(dump, os.fstat(dump).st_size, 0).decode(errors="replace")

    def dump_stacks(self) -> None:
        """Have the process print its stacks, and wait a moment for them."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGUSR1)
        poll = select.poll()  # with nothing registered: a wait that the dump cannot end
        waited = 0.0
        while ", line " not in self.printed() and waited < _DUMP_SECONDS:
            poll.poll(20)
            waited += 0.02

    def find_out_end(self) -> str:
        """How it ended, in words, once its pipe is closed; what is left of it is killed."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_SECONDS)
        status = self._process.returncode
        self.kill()
        if status is None:
            return "closed its pipe"
        return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"exited with code {status}"

    def request_end(self) -> None:
        """Have it close its environments and end."""
        if "commands" in self._descriptors:
            os.close(self._descriptors.pop("commands"))

    def await_end(self, deadline: float) -> None:
        """Wait until it closes its pipe, or until this monotonic time."""
        if self._process is None:
            return
        poll = select.poll()
        poll.register(self.replies, 0)  # only its end is of interest
        poll.poll(max(0, round((deadline - time.monotonic()) * 1000)))

    def kill(self) -> None:
        """Kill the process with all it started, if it was started and not killed yet."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):  # the group is empty; macOS says so of zombies
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def close(self) -> None:
        """Kill the process, and free the pipes and the file. May be called twice."""
        self.kill()
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])
        self._status = None
