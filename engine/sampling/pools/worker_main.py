"""The program of a worker process: it holds copies of an environment and carries out the pool's records."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from rl_tui.engine.errors import ConfigError, NotSupportedError, PluginError
from rl_tui.engine.process.printing import open_log, redirect_printing
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import Guard, InstanceFailure
from rl_tui.engine.sampling.parameters import values_from_json
from rl_tui.engine.sampling.pools.faults import fault_to_json
from rl_tui.engine.sampling.pools.forwarding import Forwarder
from rl_tui.engine.sampling.pools.instance import Instance
from rl_tui.engine.sampling.pools.parameters import InstanceParameters
from rl_tui.engine.sampling.pools.pictures import picture_of, picture_to_json
from rl_tui.engine.sampling.pools.process_group import die_with
from rl_tui.engine.sampling.pools.shared_memory import Block, Capacities, SharedFile, Status, larger
from rl_tui.engine.sampling.pools.wire import Kind, Record, RecordReader, spec_to_json, statistics_to_json
from rl_tui.engine.specs import Json, Steps


def main(commands: int, replies: int, lifeline: int, memory: int, dump: int) -> None:
    """Serve until the pool closes the command pipe. The arguments are inherited descriptors."""
    prepare(lifeline, dump)
    Worker(RecordReader(commands), replies, memory).run()


def prepare(lifeline: int, dump: int) -> None:
    """Signals from the terminal are ignored, the pool ends this process; stacks are dumped where it asks for them."""
    die_with(lifeline)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    faulthandler.enable(dump)
    faulthandler.register(signal.SIGUSR1, dump)


class Worker:
    """Owns the environments of this process. After a fault it continues to read; the pool decides when it ends."""

    def __init__(self, commands: RecordReader, replies: int, memory: int) -> None:
        self._commands = commands
        self._replies = Forwarder(replies)
        self._status = Status(memory)
        self._file = SharedFile(memory)
        self._guard = Guard("environment")
        self._first_instance: int | None = None
        self._instances: list[Instance] = []
        self._blocks: list[Block] = []
        self._metrics: tuple[str, ...] = ()
        self._parameters = InstanceParameters("environment", 0, 1)

    def run(self) -> None:
        """Serve every record until there are no more."""
        with contextlib.suppress(EOFError):
            while True:
                self._advance()
        for number, instance in enumerate(self._instances):
            try:
                with self._calling("close", number):
                    instance.environment.close()
            except InstanceFailure as failure:  # the others are closed all the same
                sys.stderr.write(f"{failure}\n{failure.detail}")

    def _advance(self) -> None:
        """Wait for records, and serve them. Raises EOFError once there are no more."""
        replies = [reply for record in self._commands.read() for reply in self._serve(record)]
        if replies:
            self._replies.write(replies)

    def _serve(self, record: Record) -> list[Record]:
        try:
            return self._carry_out(record)
        except (ConfigError, NotSupportedError, PluginError, InstanceFailure) as error:
            return [Record(Kind.FAULT, record.instance, payload=fault_to_json(error))]
        finally:
            self._status.write("wait", 0, 0)

    def _carry_out(self, record: Record) -> list[Record]:
        replies: list[Record] = []
        match record.kind:
            case Kind.BEGIN:
                replies.append(self._begin(record.payload))
            case Kind.NUMBER:
                self._first_instance = record.value
            case Kind.PARAMETERS:
                self._set_parameters(record.instance, record.payload)
            case Kind.RESET:
                replies += self._reset(record.instance, None if record.value < 0 else record.value)
            case Kind.STEP:
                replies += self._step(record.instance)
            case Kind.DRAW:
                replies.append(self._draw(record.instance, *divmod(record.value, 1 << 16)))
            case _:
                raise AssertionError(record.kind)
        return replies

    def _begin(self, request: Json) -> Record:
        """Make the requested copies and describe them."""
        assert isinstance(request, dict)
        source = EnvironmentSource.from_json(request["source"])
        first, count, worker = (int(str(request[key])) for key in ("first", "count", "worker"))
        log = request["log"]
        _print_to(None if log is None else Path(str(log)))
        self._guard, self._metrics = Guard(source.env, worker), source.metrics
        with self._calling("start", None):
            environments = source.make(first, count)
            self._parameters = InstanceParameters(source.env, source.first_copy + first, count)
            if request["parameters"] is not None:
                values = values_from_json(request["parameters"])
                for number, environment in enumerate(environments):
                    self._parameters.give(number, environment, values, len(environments))
            self._instances = [Instance(environment) for environment in environments]
            self._blocks = [self._new_block(instance, {}) for instance in self._instances]
        self._replies.watch(instance.environment for instance in self._instances)
        return Record(Kind.READY, payload=[self._describe(number) for number in range(len(self._instances))])

    def _set_parameters(self, instance: int, written: Json) -> None:
        assert isinstance(written, dict)
        if written["restart"] and instance == 0:
            self._parameters.forget()
        with self._calling("set_parameters", instance):
            environment = self._instances[instance].environment
            self._parameters.give(instance, environment, values_from_json(written["values"]), len(self._instances))

    def _reset(self, instance: int, seed: int | None) -> list[Record]:
        with self._calling("reset", instance):
            answer = self._instances[instance].reset(seed)
            replies = self._make_room(instance, answer)
        return [*replies, *self._answer(instance, answer)]

    def _step(self, instance: int) -> list[Record]:
        actions = {name: columns.read_actions() for name, columns in self._blocks[instance].behaviors.items()}
        with self._calling("step", instance):
            answer = self._instances[instance].step(actions)
            replies = self._make_room(instance, answer)
        return [*replies, *self._answer(instance, answer)]

    def _draw(self, instance: int, width: int, height: int) -> Record:
        picture = picture_of(self._instances[instance].environment, self._calling("render", instance), width, height)
        return Record(Kind.PICTURE, instance, payload=picture_to_json(picture))

    def _make_room(self, instance: int, answer: Mapping[str, Steps]) -> list[Record]:
        """A larger block where this answer, or a behavior that has appeared, needs one."""
        block, specs = self._blocks[instance], self._instances[instance].specs
        if len(specs) == len(block.behaviors) and block.has_room(answer):
            return []
        self._blocks[instance] = self._new_block(self._instances[instance], answer, block.capacities)
        return [Record(Kind.GROWN, instance, payload=self._describe(instance))]

    def _answer(self, instance: int, answer: Mapping[str, Steps]) -> list[Record]:
        self._blocks[instance].write_steps(answer)
        statistics = statistics_to_json(answer)
        reported = [Record(Kind.STATISTICS, instance, payload=statistics)] if statistics else []
        return [*reported, Record(Kind.ANSWER, instance)]

    def _new_block(
        self, instance: Instance, answer: Mapping[str, Steps], capacities: Capacities | None = None
    ) -> Block:
        """With room for this answer, and for as many agents as the environment usually has."""
        usual = {name: (max(1, count), max(1, count)) for name, count in instance.num_agents.items()}
        return self._file.new_block(instance.specs, larger({**usual, **(capacities or {})}, answer), self._metrics)

    def _describe(self, instance: int) -> Json:
        """What the pool must know of an instance: its behaviors, and where its block is."""
        described, block = self._instances[instance], self._blocks[instance]
        return {
            "specs": [spec_to_json(spec) for spec in described.specs.values()],
            "num_agents": dict(described.num_agents),
            "offset": block.offset,
            "capacities": {name: list(capacity) for name, capacity in block.capacities.items()},
        }

    def _calling(self, doing: str, instance: int | None) -> Guard:
        known = instance is not None and self._first_instance is not None
        self._guard.doing = doing
        self._guard.instance = (self._first_instance or 0) + (instance or 0) if known else None
        self._status.write(doing, instance or 0, time.monotonic_ns())
        return self._guard


def _print_to(path: Path | None) -> None:
    """What environments print goes to this file, or nowhere, and not onto the screen."""
    log = os.open(os.devnull, os.O_WRONLY) if path is None else open_log(path)
    redirect_printing(log)
    os.close(log)
