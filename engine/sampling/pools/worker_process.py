"""The pool's side of one worker process: starts it, exchanges records with it, and reports how it ended."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn, TypedDict, cast

from rl_tui.engine.errors import ConfigError, NotSupportedError, PluginError
from rl_tui.engine.sampling.environments.base import NoteLevel
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import InstanceFailure, InstanceStopped, NonFiniteAnswer
from rl_tui.engine.sampling.pools.pictures import Picture, picture_from_json
from rl_tui.engine.sampling.pools.reports import Awaiting, Note
from rl_tui.engine.sampling.pools.shared_memory import Block, Status, anonymous_file
from rl_tui.engine.sampling.pools.wire import (
    Kind,
    Record,
    RecordReader,
    SpecJson,
    StatisticsJson,
    spec_from_json,
    statistics_from_json,
    write,
)
from rl_tui.engine.specs import Actions, BehaviorSpec, Json, Statistic, Steps

# Not `python -m`: the worker must find exactly the modules that this process finds, and not run its __main__. With `-P`
# the working folder, which may have a json.py, is not searched before that.
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); {first}"
    "from rl_tui.engine.sampling.pools.worker_main import main; main(*map(int, sys.argv[2:]))"
)
_LOWER_PRIORITY = "from rl_tui.engine.sampling.pools.process_group import lower_priority; lower_priority({niceness}); "
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
START_SECONDS = 60.0  # ML-Agents' timeout_wait: the time that an environment may take to start
_DUMP_SECONDS = 0.5  # for a hanging process to dump its stacks
_EXIT_SECONDS = 1.0  # between the end of a worker's pipe and its exit status


class _InstanceJson(TypedDict):
    specs: list[SpecJson]
    num_agents: dict[str, int]
    offset: int
    capacities: dict[str, tuple[int, int]]


class WorkerProcess:
    """One worker and its instances, numbered from 0 here. Owned by the pool's thread.

    A session of its own keeps the terminal's signals away; a pipe between the two ends it with this process.
    """

    def __init__(
        self,
        index: int,
        source: EnvironmentSource,
        first: int,
        count: int,
        timeout: float,
        *,
        niceness: int = 0,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """timeout: seconds that a call may take; the start of the instances may take a minute in any case.
        niceness: of its process. variables: of its environment, unless set there."""
        self.index = index
        self._source = source
        self._copies = first, count
        self._timeout = timeout
        self._niceness = niceness
        self._variables = {**_ONE_THREAD, **(variables or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._descriptors: dict[str, int] = {}
        self._reader: RecordReader | None = None
        self._status: Status | None = None
        self._blocks: list[Block] = []
        self._unsent: list[Record] = []
        self._sent_ns = 0  # when the last request was sent
        self._num_waiting: list[int] = []  # replies that are pending, by instance
        self._num_drawing = 0  # pictures that are pending
        self._picture: Picture | None = None
        self._statistics: dict[int, Mapping[str, tuple[Statistic, ...]]] = {}  # of the newest answer, by instance
        self._reports: list[Note | Awaiting] = []
        self._awaits = ""  # what the user has to do before a call can return
        self._stopped: list[InstanceStopped] = []
        self.is_ready = False  # the instances are made
        self.first_instance: int | None = None
        self.specs: dict[int, Mapping[str, BehaviorSpec]] = {}  # by instance; another object once there are more
        self.num_agents: dict[int, Mapping[str, int]] = {}  # by instance

    def successor(self) -> WorkerProcess:
        """A worker, not yet started, that makes the same instances under the same numbers."""
        worker = WorkerProcess(
            self.index,
            self._source,
            *self._copies,
            self._timeout,
            niceness=self._niceness,
            variables=self._variables,
        )
        worker.first_instance, worker.num_agents = self.first_instance, self.num_agents
        worker._num_waiting = [0] * len(self._num_waiting)
        return worker

    @property
    def replies(self) -> int:
        """The descriptor that is readable once the worker has replied or ended."""
        return self._descriptors["replies"]

    @property
    def pid(self) -> int | None:
        """Of the running process; None before the start and after the end."""
        return self._process.pid if self._process is not None else None

    @property
    def num_instances(self) -> int:
        """Environments that the worker made; known once it, or its predecessor, was ready."""
        return len(self._num_waiting)

    def start(self, log: Path | None) -> None:
        """Begin to make the instances; their output goes to `log`, or nowhere."""
        command_end, commands = os.pipe()
        replies, reply_end = os.pipe()
        lifeline_end, lifeline = os.pipe()
        memory, dump = anonymous_file("rl-tui-steps"), anonymous_file("rl-tui-stacks")
        self._descriptors = {
            "commands": commands, "replies": replies, "lifeline": lifeline, "memory": memory, "dump": dump,
        }  # fmt: skip
        theirs = (command_end, reply_end, lifeline_end, memory, dump)
        self._status = Status(memory)
        self._reader = RecordReader(replies)
        boot = _BOOT.format(first=_LOWER_PRIORITY.format(niceness=self._niceness) if self._niceness else "")
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
        first, count = self._copies
        numbers: dict[str, Json] = {"first": first, "count": count, "worker": self.index}
        request: Json = {**numbers, "source": self._source.to_json(), "log": str(log) if log else os.devnull}
        self._sent_ns = time.monotonic_ns()
        self._unsent.append(Record(Kind.BEGIN, payload=request))
        self.flush()

    def finish_start(self, first_instance: int, timeout: float) -> None:
        """Wait until the instances are made, and number them. Raises what making them raised, or InstanceFailure."""
        poll = select.poll()
        poll.register(self.replies, select.POLLIN)
        deadline = time.monotonic() + timeout
        while not self.is_ready:
            if not poll.poll(None if math.isinf(timeout) else max(0, round((deadline - time.monotonic()) * 1000))):
                self._fail_hung(timeout)
            self.read()
        self._number_from(first_instance)

    def request_reset(self, instance: int, seed: int | None) -> None:
        """Have one instance reset; a pending answer is dropped."""
        self._request_answer(Record(Kind.RESET, instance, -1 if seed is None else seed))
        self.flush()

    def request_step(self, instance: int, actions: Mapping[str, Actions]) -> None:
        """Have one instance act. Sent by `flush`, or once there is a request for every instance: one write per step."""
        for name, columns in self._blocks[instance].behaviors.items():
            columns.write_actions(actions.get(name))
        self._request_answer(Record(Kind.STEP, instance))
        if len(self._unsent) >= len(self._blocks):
            self.flush()

    def request_picture(self, instance: int, width: int, height: int) -> None:
        """Have one instance rendered in at most so many pixels."""
        self._num_drawing += 1
        self._picture = None
        self._unsent.append(Record(Kind.DRAW, instance, width << 16 | height))
        self.flush()

    def pop_picture(self) -> Picture | None:
        """The last requested picture, once; call it after `read`."""
        picture, self._picture = self._picture, None
        return picture

    def flush(self) -> None:
        """Send all requests. The next `read` reports a worker that has ended."""
        if not self._unsent:
            return
        records, self._unsent = self._unsent, []
        self._sent_ns = time.monotonic_ns()
        with contextlib.suppress(BrokenPipeError):
            write(self._descriptors["commands"], records)

    def read(self) -> list[int]:
        """Instances whose last request is answered; call it when `replies` is readable.

        Raises InstanceFailure, or what making the instances raised.
        """
        answered = []
        for record in self._read_records():
            if record.kind is not Kind.ANSWER:
                self._take(record)
            elif self._is_newest(record.instance):
                answered.append(record.instance)
        return answered

    def _take(self, record: Record) -> None:
        """Anything but an answer. Raises as `read` does."""
        match record.kind:
            case Kind.READY:
                self._take_ready(cast(list[_InstanceJson], record.payload))
            case Kind.GROWN:
                self._blocks[record.instance] = self._block(record.instance, cast(_InstanceJson, record.payload))
            case Kind.PICTURE:
                self._num_drawing -= 1
                self._picture = picture_from_json(record.payload)
            case Kind.STATISTICS:
                self._statistics[record.instance] = statistics_from_json(cast(StatisticsJson, record.payload))
            case Kind.NOTE:
                self._reports.append(Note(*cast(tuple[NoteLevel, str], record.payload)))
            case Kind.AWAITS:
                self._awaits, self._sent_ns = str(record.payload), time.monotonic_ns()
                self._reports.append(Awaiting(self._awaits))
            case _:
                self._take_fault(cast(dict[str, str], record.payload), record.instance)

    def _take_ready(self, made: list[_InstanceJson]) -> None:
        if self._num_waiting and len(made) != len(self._num_waiting):
            subject, before = f"{self._source.env}, worker {self.index}", len(self._num_waiting)
            message = f"{subject}: start must make {before} instances as before, got {len(made)}"
            raise InstanceFailure(message, None, self.index)
        self._blocks = [self._block(instance, described) for instance, described in enumerate(made)]
        self._num_waiting = [0] * len(made)
        self.is_ready = True
        if self.first_instance is not None:
            self._number_from(self.first_instance)

    def _number_from(self, first_instance: int) -> None:
        """Let the worker know the pool's number of its first instance."""
        self.first_instance = first_instance
        self._unsent.append(Record(Kind.NUMBER, value=first_instance))

    def pop_reports(self) -> list[Note | Awaiting]:
        """What the environments reported since the last call."""
        reports, self._reports = self._reports, []
        return reports

    def pop_stopped(self) -> list[InstanceStopped]:
        """The instances that the user stopped since the last call; each may be reset."""
        stopped, self._stopped = self._stopped, []
        return stopped

    def read_steps(self, instance: int, scale: int, offset: int) -> Mapping[str, Steps]:
        """The newest answer of one instance: views of shared memory, with agent ids as id * scale + offset."""
        answer = self._blocks[instance].read_steps(scale, offset)
        for behavior, statistics in self._statistics.pop(instance, {}).items():
            answer[behavior].statistics = statistics
        return answer

    def seconds_left(self) -> float | None:
        """Until the pending call is overdue; None without one, and while the user has to do something first."""
        if self._awaits or (self.is_ready and not any(self._num_waiting) and not self._num_drawing):
            return None
        assert self._status is not None
        since_ns = max(self._sent_ns, self._status.read()[2])
        return self._limit - (time.monotonic_ns() - since_ns) * 1e-9

    @property
    def _limit(self) -> float:
        """Seconds that the pending call may take."""
        return self._timeout if self.is_ready else max(START_SECONDS, self._timeout)

    def fail_if_overdue(self) -> None:
        """Raise InstanceFailure, with the stacks of the process, if a call takes too long."""
        left = self.seconds_left()
        if left is not None and left <= 0:
            self._fail_hung(self._limit)

    def request_end(self) -> None:
        """Have the worker close its environments and end."""
        if "commands" in self._descriptors:
            os.close(self._descriptors.pop("commands"))

    def end(self, deadline: float) -> None:
        """Wait until the worker and everything it started have ended; kill them after this monotonic time, and at once
        where it is restarting or waits for the user."""
        self.request_end()
        if self._process is not None:
            is_restarting = self.first_instance is not None and not self.is_ready
            poll = select.poll()
            poll.register(self.replies, 0)  # only its end is of interest
            wait = 0.0 if is_restarting or self._awaits else deadline - time.monotonic()
            poll.poll(max(0, round(wait * 1000)))
            self._kill()
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])
        self._blocks.clear()
        self._status = None

    def _kill(self) -> int:
        """Kill the process with all it started; return its exit status, negative for a signal."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):  # the group is empty; macOS says so of zombies
            os.killpg(self._process.pid, signal.SIGKILL)
        status = self._process.wait()
        self._process = None
        return status

    def _is_newest(self, instance: int) -> bool:
        """Count an answer; whether it is that to the last request. Otherwise it is dropped."""
        self._num_waiting[instance] -= 1
        is_newest = self._num_waiting[instance] == 0
        if not is_newest:
            self._statistics.pop(instance, None)
        return is_newest

    def _request_answer(self, record: Record) -> None:
        self._num_waiting[record.instance] += 1
        self._unsent.append(record)

    def _block(self, instance: int, described: _InstanceJson) -> Block:
        """Where an instance's steps are from now on, and of which behaviors."""
        self.specs[instance] = {spec.name: spec for spec in map(spec_from_json, described["specs"])}
        self.num_agents[instance] = described["num_agents"]
        capacities = {name: (decisions, terminals) for name, (decisions, terminals) in described["capacities"].items()}
        memory, specs = self._descriptors["memory"], self.specs[instance]
        return Block(memory, described["offset"], specs, capacities, self._source.metrics)

    def _read_records(self) -> list[Record]:
        """Records from the worker. Raises InstanceFailure where it has ended, or sends anything else."""
        assert self._reader is not None
        try:
            return self._reader.read()
        except EOFError:
            self._fail_dead()
        except ValueError as error:
            call, instance, subject = self._whereabouts()
            message = f"{subject}: the pipe to the pool must carry records only, got something else in {call}"
            raise InstanceFailure(message, instance, self.index, self._dumped()) from error

    def _take_fault(self, fault: Mapping[str, str], instance: int) -> None:
        """Raise the error that a fault describes; the end of an instance that the user stopped is kept."""
        message = fault["message"]
        match fault["error"]:
            case "ConfigError":
                raise ConfigError(message)
            case "NotSupportedError":
                raise NotSupportedError(message)
            case "PluginError":
                raise PluginError(message)
            case "InstanceStopped":
                if self._is_newest(instance):
                    self._stopped.append(InstanceStopped(message, self._number(instance), self.index))
            case "NonFiniteAnswer":
                raise NonFiniteAnswer(message, self._number(instance), self.index, fault["detail"])
            case _:
                raise InstanceFailure(message, self._number(instance), self.index, fault["detail"])

    def _fail_dead(self) -> NoReturn:
        """The pipe's other end closed: say how the process ended."""
        assert self._process is not None
        call, instance, subject = self._whereabouts()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_SECONDS)
        status = self._process.returncode
        self._kill()
        if status is None:
            how = "closed its pipe"
        elif status < 0:
            how = f"was killed by {signal.Signals(-status).name}"
        else:
            how = f"exited with code {status}"
        raise InstanceFailure(f"{subject}: the process {how} in {call}", instance, self.index, self._dumped())

    def _fail_hung(self, seconds: float) -> NoReturn:
        """Have the process dump its stacks, kill it, and raise."""
        assert self._process is not None
        call, instance, subject = self._whereabouts()
        os.kill(self._process.pid, signal.SIGUSR1)
        poll = select.poll()  # with nothing registered: a wait that the dump cannot end
        waited = 0.0
        while not self._dumped() and waited < _DUMP_SECONDS:
            poll.poll(20)
            waited += 0.02
        self._kill()
        stacks = self._dumped()
        frame = re.search(r'File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<name>\S+)', stacks)
        at = f", at {Path(frame['file']).name}:{frame['line']} in {frame['name']}" if frame else ""
        message = f"{subject}: {call} has not returned for {seconds:g} s{at}"
        raise InstanceFailure(message, instance, self.index, stacks)

    def _whereabouts(self) -> tuple[str, int | None, str]:
        """The call that the process is in, its instance in the pool, and both in words."""
        assert self._status is not None
        call, local, _ = self._status.read()
        if call == "wait":  # requested, but not yet begun
            return "step", None, f"{self._source.env}, worker {self.index}"
        number = None if call == "start" else self._number(local)
        words = self._source.env if number is None else f"{self._source.env}, instance {number}"
        return call, number, f"{words}, worker {self.index}"

    def _number(self, instance: int) -> int | None:
        return None if self.first_instance is None else self.first_instance + instance

    def _dumped(self) -> str:
        """What faulthandler and the starting interpreter wrote."""
        dump = self._descriptors["dump"]
        return os.pread(dump, os.fstat(dump).st_size, 0).decode(errors="replace")
