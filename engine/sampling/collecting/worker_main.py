"""The program of a worker process that can also act and collect by itself."""

from __future__ import annotations

import select
import time
from collections.abc import Mapping
from typing import Any, cast

from rl_tui.engine.errors import ConfigError, NotSupportedError, PluginError, RlTuiError
from rl_tui.engine.sampling.collecting.counters import Counters
from rl_tui.engine.sampling.collecting.share import Share
from rl_tui.engine.sampling.collecting.share_collector import Numbers, OwnPolicy, ShareCollector
from rl_tui.engine.sampling.collecting.shared_blocks import BlockWriter
from rl_tui.engine.sampling.collecting.shared_weights import WeightsReader
from rl_tui.engine.sampling.failures import InstanceFailure, InstanceStopped
from rl_tui.engine.sampling.finished_episodes import Episodes
from rl_tui.engine.sampling.pools.faults import fault_to_json
from rl_tui.engine.sampling.pools.serial_instances import SerialInstances
from rl_tui.engine.sampling.pools.wire import Kind, Record, RecordReader, spec_to_json
from rl_tui.engine.sampling.pools.worker_main import Worker, prepare
from rl_tui.engine.sampling.team_policies import NumberedPolicy, made_by
from rl_tui.engine.specs import BehaviorSpec, Json, State, Trajectories


def main(commands: int, replies: int, lifeline: int, memory: int, dump: int, weights: int) -> None:
    """Serve until the pool closes the command pipe. The arguments are inherited descriptors."""
    prepare(lifeline, dump)
    CollectingWorker(commands, replies, memory, weights).run()


class CollectingWorker(Worker):
    """Carries out single steps, as any worker, until it is asked to collect. Implements Listener."""

    def __init__(self, commands: int, replies: int, memory: int, weights: int) -> None:
        super().__init__(RecordReader(commands), replies, memory)
        self._memory, self._weights = memory, weights
        self._incoming = select.poll()
        self._incoming.register(commands, select.POLLIN)
        self._collector: ShareCollector | None = None
        self._stepped: SerialInstances | None = None
        self._writer: BlockWriter | None = None
        self._counters: Counters | None = None
        self._is_paused = False
        self._has_acted = False

    def _advance(self) -> None:
        collector = self._collector
        if collector is None or self._is_paused or not collector.is_going or self._incoming.poll(0):
            super()._advance()
            return
        self._status.write("act", 0, time.monotonic_ns())
        try:
            has_arrived = collector.advance()
        except (ConfigError, NotSupportedError, PluginError, InstanceFailure) as failure:
            self._report(collector, failure)
            return
        finally:
            self._status.write("wait", 0, 0)
        if not has_arrived:  # the user has stopped every instance, and they are to be reset
            super()._advance()
        elif not self._has_acted:
            self._has_acted = True
            self._replies.write([Record(Kind.ACTS)])

    def _report(self, collector: ShareCollector, failure: RlTuiError) -> None:
        """Pass on what was collected before an instance failed, and its failure: this process ends, except where the
        user has stopped one instance."""
        number = 0
        if isinstance(failure, InstanceStopped):
            number = (failure.instance or 0) - (self._first_instance or 0)
            collector.abandon(number)
        else:
            for instance in range(len(self._instances)):
                collector.abandon(instance)
            collector.flush()
            collector.is_going = False
        self._replies.write([Record(Kind.FAULT, number, payload=fault_to_json(failure))])

    def _carry_out(self, record: Record) -> list[Record]:
        match record.kind:
            case Kind.COLLECT:
                self._begin_collecting(cast(Mapping[str, Any], record.payload))
            case Kind.RESET if self._collector is not None and self._stepped is not None:
                self._collector.abandon(record.instance)
                self._stepped.reset_instance(record.instance, None if record.value < 0 else record.value)
            case Kind.POLICY:
                self._take_policy(cast(Mapping[str, Any], record.payload))
            case Kind.OPPONENT:
                self._take_opponent(cast(Mapping[str, Any], record.payload))
            case Kind.GO:
                assert self._collector is not None
                shares = cast(Mapping[str, Mapping[str, int]], record.payload)
                self._collector.go({name: Share(**share) for name, share in shares.items()})
            case Kind.ENOUGH:
                assert self._collector is not None
                self._collector.stop()
            case Kind.PAUSE:
                self._is_paused = bool(record.value)
            case _:
                return super()._carry_out(record)
        return []

    def _begin_collecting(self, request: Mapping[str, Any]) -> None:
        assert self._first_instance is not None
        self._stepped = SerialInstances(self._instances, self._calling)
        self._counters = Counters(self._memory, int(request["counters"]))
        self._writer = BlockWriter(self._memory, bool(request["has_checksums"]))
        numbers = Numbers(self._first_instance, int(request["num_instances"]))
        self._collector = ShareCollector(self._stepped, numbers, self, self._counters, int(request["spare_rows"]))

    def _take_policy(self, given: Mapping[str, Any]) -> None:
        assert self._collector is not None
        policy = made_by(given["policy"])
        reader = WeightsReader(self._weights, given["weights"])
        own = OwnPolicy(given["number"], policy, given["horizon"], given["cuts_at_update"], reader)
        self._collector.give_policy(given["behavior"], own)

    def _take_opponent(self, given: Mapping[str, Any]) -> None:
        assert self._collector is not None
        opponent = None
        if given["policy"] is not None:
            policy, weights = made_by(given["policy"]), WeightsReader(self._weights, given["weights"]).read()
            policy.load(weights)
            opponent = NumberedPolicy(given["number"], policy, weights)
        self._collector.assign(given["behavior"], given["team"], opponent)

    def add_block(self, behavior: str, block: Trajectories) -> None:
        """Write the block, and say where it is."""
        assert self._writer is not None
        assert self._counters is not None
        header = self._writer.write(behavior, block, self._counters.num_copied)
        self._replies.write([Record(Kind.BLOCK, payload=header.to_json())])

    def add_episodes(self, behavior: str, episodes: Episodes, num_learned: int) -> None:
        """Pass them on."""
        payload: Json = {
            "behavior": behavior,
            "returns": episodes.returns.tolist(),
            "lengths": episodes.lengths.tolist(),
            "ends": episodes.ends.tolist(),
            "num_learned": num_learned,
        }
        self._replies.write([Record(Kind.EPISODES, payload=payload)])

    def end_round(self, states: Mapping[str, State]) -> None:
        """Say that it waits, and where the generators of the policies are."""
        self._replies.write([Record(Kind.ROUND, payload={name: state.values for name, state in states.items()})])

    def await_policy(self, spec: BehaviorSpec) -> None:
        """Ask for it, and serve records until it has come."""
        assert self._collector is not None
        self._status.write("wait", 0, 0)
        num_agents: list[Json] = [dict(instance.num_agents) for instance in self._instances]
        self._replies.write([Record(Kind.MET, payload={"spec": spec_to_json(spec), "num_agents": num_agents})])
        while not self._collector.has_policy(spec.name):
            super()._advance()
