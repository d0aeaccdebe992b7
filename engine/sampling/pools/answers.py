"""What the instances of one worker have answered, and what they still owe, as the pool sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from rl_tui.engine.sampling.pools.shared_memory import Block
from rl_tui.engine.sampling.pools.wire import SpecJson, StatisticsJson, spec_from_json, statistics_from_json
from rl_tui.engine.specs import Actions, BehaviorSpec, Statistic, Steps


class InstanceJson(TypedDict):
    """What a worker says of an instance: its behaviors, and where its block is in the shared file."""

    specs: list[SpecJson]
    num_agents: dict[str, int]
    offset: int
    capacities: dict[str, tuple[int, int]]


class Answers:
    """By instance, numbered from 0 in the worker. Used by the pool's thread."""

    def __init__(self, metrics: Sequence[str], num_instances: int = 0) -> None:
        """num_instances: those that the worker will have, if that is known."""
        self.specs: dict[int, Mapping[str, BehaviorSpec]] = {}  # another object once there are more
        self.num_agents: dict[int, Mapping[str, int]] = {}
        self._metrics = metrics
        self._memory = -1
        self._blocks: dict[int, Block] = {}
        self._num_owed = [0] * num_instances
        self._statistics: dict[int, Mapping[str, tuple[Statistic, ...]]] = {}  # of the newest answer

    def successor(self) -> Answers:
        """Of a worker that will make the same instances, with as many agents as far as is known."""
        answers = Answers(self._metrics, self.num_instances)
        answers.num_agents = self.num_agents
        return answers

    @property
    def num_instances(self) -> int:
        """Instances that the worker has made, or will."""
        return len(self._num_owed)

    @property
    def are_pending(self) -> bool:
        """Whether any instance owes an answer."""
        return any(self._num_owed)

    def begin(self, memory: int, described: Sequence[InstanceJson]) -> None:
        """The worker has made these. memory: the descriptor of the file with their blocks."""
        self._memory = memory
        self._num_owed = [0] * len(described)
        for instance, each in enumerate(described):
            self.describe(instance, each)

    def describe(self, instance: int, described: InstanceJson) -> None:
        """From now on the instance has these behaviors, and that block."""
        specs = {spec.name: spec for spec in map(spec_from_json, described["specs"])}
        capacities = {name: (decisions, terminals) for name, (decisions, terminals) in described["capacities"].items()}
        self.specs[instance], self.num_agents[instance] = specs, described["num_agents"]
        self._blocks[instance] = Block(self._memory, described["offset"], specs, capacities, self._metrics)

    def expect(self, instance: int) -> None:
        """The instance owes one more answer; those that are pending will be dropped."""
        self._num_owed[instance] += 1

    def is_newest(self, instance: int) -> bool:
        """Count an answer that has arrived; whether it is that to the last request. Otherwise it is dropped."""
        self._num_owed[instance] -= 1
        is_newest = self._num_owed[instance] == 0
        if not is_newest:
            self._statistics.pop(instance, None)
        return is_newest

    def add_statistics(self, instance: int, reported: StatisticsJson) -> None:
        """What belongs to the instance's next answer."""
        self._statistics[instance] = statistics_from_json(reported)

    def write_actions(self, instance: int, actions: Mapping[str, Actions]) -> None:
        """Put actions where the instance will read them; they are copied."""
        for name, columns in self._blocks[instance].behaviors.items():
            columns.write_actions(actions.get(name))

    def read_steps(self, instance: int, scale: int, offset: int) -> Mapping[str, Steps]:
        """The newest answer: views of shared memory, with agent ids as id * scale + offset."""
        answer = self._blocks[instance].read_steps(scale, offset)
        for behavior, statistics in self._statistics.pop(instance, {}).items():
            answer[behavior].statistics = statistics
        return answer

    def close(self) -> None:
        """Release the blocks."""
        self._blocks.clear()
