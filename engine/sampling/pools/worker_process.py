"""The pool's side of one worker process: what is asked of it, what it replies, and what is wrong where it does not."""

from __future__ import annotations

import re
import select
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, NoReturn, Self, cast

from rl_tui.engine.sampling.environments.base import NoteLevel
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import InstanceFailure, InstanceStopped, StartStopped
from rl_tui.engine.sampling.parameters import ParameterValues, shifted, values_to_json
from rl_tui.engine.sampling.pools.answers import Answers, InstanceJson
from rl_tui.engine.sampling.pools.child import Child
from rl_tui.engine.sampling.pools.faults import fault_from_json
from rl_tui.engine.sampling.pools.pictures import Picture, picture_from_json
from rl_tui.engine.sampling.pools.reports import Awaiting, Note
from rl_tui.engine.sampling.pools.wire import Kind, Record, StatisticsJson
from rl_tui.engine.specs import Actions, Json

RESTART_STRIDE = 7_368_787  # a prime, between the seeds of a worker and of the one that replaces it
ASKING_MS = 100  # between looks for a stop of the run, and for a call that takes too long, while workers start
START_SECONDS = 60.0  # ML-Agents' timeout_wait: the time that an environment may take to start


def start_seconds(timeout: float) -> float:
    """That an environment may take to start where each of its later calls may take `timeout` seconds: a minute in any
    case."""
    return max(START_SECONDS, timeout)


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """What stays the same when a worker is started again.

    copies: first and count, of the source's. timeout: seconds that a call may take. niceness: of the process.
    variables: of its environment, unless set there. inherited: descriptors of the whole pool that it gets.
    """

    index: int
    source: EnvironmentSource
    copies: tuple[int, int]
    timeout: float
    niceness: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)
    inherited: tuple[int, ...] = ()

    @property
    def start_timeout(self) -> float:
        """Seconds that making the instances may take, the first time and after a failure."""
        return start_seconds(self.timeout)


class WorkerProcess:
    """One worker and its instances, numbered from 0 here. Owned by the pool's thread.

    program: the module whose `main` the process runs.
    """

    program: ClassVar = "rl_tui.engine.sampling.pools.worker_main"

    def __init__(self, plan: WorkerPlan, answers: Answers | None = None, seed_shift: int = 0) -> None:
        """answers: what is known of the instances before they are made. seed_shift: added to the seeds they get."""
        self.index = plan.index
        self.answers = answers or Answers(plan.source.metrics)
        self.is_ready = False  # the instances are made
        self.first_instance: int | None = None
        self._plan = plan
        self._seed_shift = seed_shift
        self._child = Child(self.program, plan.niceness, plan.variables, plan.inherited)
        self._unsent: list[Record] = []
        self._sent_ns = 0  # when the last request was sent
        self._num_drawing = 0  # pictures that are pending
        self._picture: Picture | None = None
        self._reports: list[Note | Awaiting] = []
        self._awaits = ""  # what the user has to do before a call can return
        self._stopped: list[InstanceStopped] = []
        self._parameters: ParameterValues | None = None
        self._has_begun = False

    def successor(self, seed_shift: int) -> Self:
        """A worker, not yet started, that makes the same instances under the same numbers, with later seeds."""
        worker = type(self)(self._plan, self.answers.successor(), seed_shift)
        worker.first_instance, worker._parameters = self.first_instance, self._parameters
        return worker

    @property
    def replies(self) -> int:
        """The descriptor that is readable once the worker has replied or ended."""
        return self._child.replies

    @property
    def pid(self) -> int | None:
        """Of the running process; None before the start and after the end."""
        return self._child.pid

    @property
    def copies(self) -> tuple[int, int]:
        """The first of its copies, and how many there are, of the source's."""
        return self._plan.copies

    @property
    def num_instances(self) -> int:
        """Environments that the worker made; known once it, or its predecessor, was ready."""
        return self.answers.num_instances

    def set_parameters(self, values: ParameterValues, *, restart: bool = False) -> None:
        """Environment parameters of its instances, and of those of its successors. restart: samplers begin again."""
        self._parameters = values
        if self._has_begun:
            written: Json = {"values": self._written_parameters(), "restart": restart}
            self._unsent += [Record(Kind.PARAMETERS, local, payload=written) for local in range(self.num_instances)]
            self.flush()

    def _written_parameters(self) -> Json:
        """A worker that replaces another one draws other numbers: that one's were used."""
        values = self._parameters
        return None if values is None else values_to_json(shifted(values, self._seed_shift * RESTART_STRIDE))

    def start(self, log: Path | None) -> None:
        """Begin to make the instances; their output goes to `log`, or nowhere. Raises OSError."""
        self._child.start()
        (first, count), source = self._plan.copies, self._plan.source
        source = replace(source, seed_shift=source.seed_shift + self._seed_shift)
        numbers: dict[str, Json] = {"first": first, "count": count, "worker": self.index}
        given: dict[str, Json] = {"source": source.to_json(), "parameters": self._written_parameters()}
        request: Json = {**numbers, **given, "log": str(log) if log else None}
        self._has_begun = True
        self._unsent.append(Record(Kind.BEGIN, payload=request))
        self.flush()

    def finish_start(self, first_instance: int, is_stopped: Callable[[], bool]) -> None:
        """Wait until the instances are made, and number them.

        Raises what making them raised, InstanceFailure, or StartStopped.
        """
        poll = select.poll()
        poll.register(self.replies, select.POLLIN)
        while not self.is_ready:
            if is_stopped():
                raise StartStopped
            if poll.poll(ASKING_MS):
                self.read()
            else:
                self.fail_if_overdue()
        self._number_from(first_instance)

    def request_reset(self, instance: int, seed: int | None) -> None:
        """Have one instance reset; a pending answer is dropped."""
        self._request_answer(Record(Kind.RESET, instance, -1 if seed is None else seed))
        self.flush()

    def request_step(self, instance: int, actions: Mapping[str, Actions]) -> None:
        """Have one instance act. Sent by `flush`, or once there is a request for every instance: one write per step."""
        self.answers.write_actions(instance, actions)
        self._request_answer(Record(Kind.STEP, instance))
        if len(self._unsent) >= self.num_instances:
            self.flush()

    def request_picture(self, instance: int, width: int, height: int) -> None:
        """Have one instance rendered in at most so many pixels."""
        self._num_drawing += 1
        self._picture = None
        self._unsent.append(Record(Kind.DRAW, instance, width << 16 | height))
        self.flush()

    def flush(self) -> None:
        """Send all requests. The next `read` reports a worker that has ended."""
        if self._unsent:
            records, self._unsent = self._unsent, []
            self._sent_ns = time.monotonic_ns()
            self._child.send(records)

    def read(self) -> list[int]:
        """Instances whose last request is answered; call it when `replies` is readable.

        Raises InstanceFailure, or what making the instances raised.
        """
        answered = []
        for record in self._receive():
            if record.kind is not Kind.ANSWER:
                self._take(record)
            elif self.answers.is_newest(record.instance):
                answered.append(record.instance)
        return answered

    def pop_picture(self) -> Picture | None:
        """The last requested picture, once; call it after `read`."""
        picture, self._picture = self._picture, None
        return picture

    def pop_reports(self) -> list[Note | Awaiting]:
        """What the environments reported since the last call."""
        reports, self._reports = self._reports, []
        return reports

    def pop_stopped(self) -> list[InstanceStopped]:
        """The instances that the user stopped since the last call; each may be reset."""
        stopped, self._stopped = self._stopped, []
        return stopped

    def seconds_left(self) -> float | None:
        """Until the pending call is overdue; None without one, and while the user has to do something first."""
        if self._awaits or (self.is_ready and not self.answers.are_pending and not self._num_drawing):
            return None
        since_ns = max(self._sent_ns, self._child.current_call()[2])
        return self._limit - (time.monotonic_ns() - since_ns) * 1e-9

    def fail_if_overdue(self) -> None:
        """Raise InstanceFailure, with the stacks of the process, if a call takes too long."""
        left = self.seconds_left()
        if left is not None and left <= 0:
            self._fail_hung(self._limit)

    def request_end(self) -> None:
        """Have the worker close its environments and end."""
        self._child.request_end()

    def end(self, deadline: float) -> None:
        """Wait until the worker and everything it started have ended; kill them after this monotonic time, and at once
        where it is restarting or waits for the user."""
        self.request_end()
        is_restarting = self.first_instance is not None and not self.is_ready
        if not is_restarting and not self._awaits:
            self._child.await_end(deadline)
        self._child.close()
        self.answers.close()

    @property
    def _limit(self) -> float:
        """Seconds that the pending call may take."""
        return self._plan.timeout if self.is_ready else self._plan.start_timeout

    def _request_answer(self, record: Record) -> None:
        self.answers.expect(record.instance)
        self._unsent.append(record)

    def _number_from(self, first_instance: int) -> None:
        """Let the worker know the pool's number of its first instance."""
        self.first_instance = first_instance
        self._unsent.append(Record(Kind.NUMBER, value=first_instance))

    def _may_reset(self, instance: int) -> bool:
        """Whether an instance that the user stopped has not been asked for more since then."""
        return self.answers.is_newest(instance)

    def _receive(self) -> list[Record]:
        """Records from the worker. Raises InstanceFailure where it has ended, or sends anything else."""
        try:
            return self._child.receive()
        except EOFError:
            call, instance, subject = self._whereabouts()
            message = f"{subject}: the process {self._child.find_out_end()} in {call}"
            raise InstanceFailure(message, instance, self.index, self._child.printed()) from None
        except ValueError as error:
            call, instance, subject = self._whereabouts()
            message = f"{subject}: the pipe to the pool must carry records only, got something else in {call}"
            raise InstanceFailure(message, instance, self.index, self._child.printed()) from error

    def _take(self, record: Record) -> None:
        """Anything but an answer. Raises as `read` does."""
        match record.kind:
            case Kind.READY:
                self._take_ready(cast(list[InstanceJson], record.payload))
            case Kind.GROWN:
                self.answers.describe(record.instance, cast(InstanceJson, record.payload))
            case Kind.PICTURE:
                self._num_drawing -= 1
                self._picture = picture_from_json(record.payload)
            case Kind.STATISTICS:
                self.answers.add_statistics(record.instance, cast(StatisticsJson, record.payload))
            case Kind.NOTE:
                self._reports.append(Note(*cast(tuple[NoteLevel, str], record.payload)))
            case Kind.AWAITS:
                self._awaits, self._sent_ns = str(record.payload), time.monotonic_ns()
                self._reports.append(Awaiting(self._awaits))
            case _:
                self._take_fault(cast(dict[str, str], record.payload), record.instance)

    def _take_ready(self, made: list[InstanceJson]) -> None:
        if self.num_instances and len(made) != self.num_instances:
            subject, before = f"{self._plan.source.env}, worker {self.index}", self.num_instances
            message = f"{subject}: start must make {before} instances as before, got {len(made)}"
            raise InstanceFailure(message, None, self.index)
        self.answers.begin(self._child.memory, made)
        self.is_ready = True
        if self.first_instance is not None:
            self._number_from(self.first_instance)

    def _take_fault(self, fault: Mapping[str, str], instance: int) -> None:
        """Raise the error that a fault describes; the end of an instance that the user stopped is kept."""
        error = fault_from_json(fault, self._number(instance), self.index)
        if not isinstance(error, InstanceStopped):
            raise error
        if self._may_reset(instance):
            self._stopped.append(error)

    def _fail_hung(self, seconds: float) -> NoReturn:
        """Have the process dump its stacks, kill it, and raise."""
        call, instance, subject = self._whereabouts()
        self._child.dump_stacks()
        self._child.kill()
        stacks = self._child.printed()
        frame = re.search(r'File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<name>\S+)', stacks)
        at = f", at {Path(frame['file']).name}:{frame['line']} in {frame['name']}" if frame else ""
        message = f"{subject}: {call} has not returned for {seconds:g} s{at}"
        raise InstanceFailure(message, instance, self.index, stacks)

    def _whereabouts(self) -> tuple[str, int | None, str]:
        """The call that the process is in, its instance in the pool, and both in words."""
        call, local, _ = self._child.current_call()
        env = self._plan.source.env
        if call in ("wait", "act"):  # requested, but not yet begun; or it is the policy's
            return "step" if call == "wait" else call, None, f"{env}, worker {self.index}"
        number = None if call == "start" else self._number(local)
        words = env if number is None else f"{env}, instance {number}"
        return call, number, f"{words}, worker {self.index}"

    def _number(self, instance: int) -> int | None:
        return None if self.first_instance is None else self.first_instance + instance
