"""Trainings on several ranks, and the same in one process that has all their rows in the same mini-batches."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.experience import join_by_agent
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.learning.loss_inputs import LossInputs
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.on_policy import group_trainer
from rl_tui.engine.learning.on_policy import trainer as on_policy_trainer
from rl_tui.engine.learning.on_policy.actor_critic import TorchActorCritic
from rl_tui.engine.learning.on_policy.group_networks import GroupActorCritic
from rl_tui.engine.learning.on_policy.minibatches import Part, split_rows
from rl_tui.engine.learning.replay.buffer import Minibatch, ReplayBuffer
from rl_tui.engine.learning.sac import trainer as sac_module
from rl_tui.engine.learning.sac.networks import SoftNetworks
from rl_tui.engine.learning.sac.trainer import SACTrainer
from rl_tui.engine.learning.sync import OneRank, Sync
from rl_tui.engine.learning.train_step import TrainStep
from rl_tui.engine.learning.trainer import Trainer, make_trainer
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Int64, ObservationSpec, State, Trajectories
from tests.learning.demonstrations import random_demonstrations
from tests.learning.poca.group_episodes import SPEC as GROUPS_SPEC
from tests.learning.poca.group_episodes import Groups
from tests.learning.rollouts import Simulation
from tests.learning.sync.signals import SharedSettings

CPU = torch.device("cpu")
SEED = 7
VECTORS = ObservationSpec("speed", (3,)), ObservationSpec("place", (4,))
CONTINUOUS, DISCRETE, HYBRID = ActionSpec(2), ActionSpec(0, (3, 2)), ActionSpec(2, (3, 2))
MEMORY = {"memory": {"sequence_length": 4, "memory_size": 8}}
HORIZON = 4
DEMO = "walks.demo"


@dataclass(frozen=True)
class Case:
    """A training. agents: of each rank, which act so many steps in each of the two blocks of an update.

    first_steps: in each block of the first update.
    """

    trainer: str
    actions: ActionSpec
    agents: tuple[int, ...]
    steps: int = 5
    first_steps: int = 0
    updates: int = 20
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=dict)
    has_learned_signal: bool = False
    has_custom_loss: bool = False
    clones: bool = False  # also learns from demonstrations
    is_in_torch: bool = False  # PPO where vectors would be left to numpy

    @property
    def spec(self) -> BehaviorSpec:
        """Of the behavior that is trained."""
        return (
            replace(GROUPS_SPEC, name="Walker") if self.is_of_groups else BehaviorSpec("Walker", VECTORS, self.actions)
        )

    @property
    def is_of_groups(self) -> bool:
        """Whether agents act in groups, of which `agents` is the number."""
        return self.trainer in ("poca", "mappo")

    @property
    def settings(self) -> BehaviorConfig:
        """Small and quick."""
        own: dict[str, Any] = {"batch_size": 16, "learning_rate": 1e-3}
        signals: dict[str, Any] = {"extrinsic": {}}
        if self.has_learned_signal:
            registry.BUILT_IN["reward_signals"]["shared"] = f"{SharedSettings.__module__}:SharedSettings"  # type: ignore[index]  # a dict
            layers = {"hidden_units": 8, "num_layers": 1, "normalize": True}
            signals["shared"] = {"strength": 0.5, "network_settings": layers}
        own |= {"steps_per_update": 30, "buffer_size": 400} if self.trainer == "sac" else {"num_epoch": 2}
        return BehaviorConfig.model_validate(
            {
                "trainer_type": self.trainer,
                "hyperparameters": own | dict(self.hyperparameters),
                "network_settings": {"hidden_units": 8, "num_layers": 1, "normalize": True} | dict(self.network),
                "normalize_reward": True,
                "reward_signals": signals,
                "behavioral_cloning": {"demo_path": DEMO, "batch_size": 7, "num_epoch": 1} if self.clones else None,
                "time_horizon": HORIZON,
                "max_steps": 10**6,
            }
        )

    def blocks(self, rank: int) -> Iterator[list[Trajectories]]:
        """For every update, what a rank collects. The policy stays as it is: what is learned changes no experience."""
        if self.is_of_groups:
            for update in range(self.updates):
                block = Groups(100 * update + rank, self.agents[rank], self.spec).experience(self.steps)
                yield [numbered(block, rank)]
            return
        policy = make_trainer(self.spec, self.settings, SEED, CPU).make_policy(rank)
        simulation = Simulation(policy, self.spec, self.agents[rank], min(self.steps, HORIZON), seed=rank)
        for update in range(self.updates):
            steps = self.steps if update else max(self.steps, self.first_steps)
            yield [numbered(_run(simulation, steps), rank) for _ in range(2)]


def demonstrations(case: Case) -> dict[str, Demonstrations]:
    """The same on all ranks."""
    return {DEMO: random_demonstrations(case.spec, [9, 5, 8])}


def penalty(inputs: LossInputs) -> Tensor:
    """A custom loss, the mean over rows of what depends on everything that may be differentiated."""
    return 0.1 * torch.square(inputs.values).mean() + torch.square(inputs.log_probs).mean() - 0.01 * inputs.entropy


def _run(simulation: Simulation, steps: int) -> Trajectories:
    """That many steps, or more until a segment is finished."""
    while True:
        with suppress(ValueError):  # of an empty block
            return simulation.run(steps)


def numbered(block: Trajectories, rank: int) -> Trajectories:
    """No two ranks have an agent or a group in common."""
    first = 1000 * rank
    groups = None if block.group_ids is None else block.group_ids + first
    return replace(block, agent_ids=block.agent_ids + first, departed=block.departed + first, group_ids=groups)


@dataclass(frozen=True)
class Trained:
    """state: in the end. metrics, digests: of every update; a digest is of all bits that ranks share."""

    state: State
    metrics: list[Mapping[str, float]]
    digests: list[str]


def train(sync: Sync, case: Case) -> Trained:
    """The training of one rank, in float64."""
    with in_double(case):
        trainer = make_trainer(case.spec, case.settings, SEED, CPU, sync)
    if case.has_custom_loss:
        trainer.on_loss(penalty)
    trainer.use_demonstrations(demonstrations(case))
    return trained(trainer, case, case.blocks(sync.rank), later=10000 * sync.rank)


def trained(trainer: Trainer, case: Case, blocks: Iterator[list[Trajectories]], later: int = 0) -> Trained:
    """All updates of a trainer. later: by how many steps it is ahead of others, whose schedules it follows."""
    metrics, digests = [], []
    for update, of_update in enumerate(blocks):
        for block in of_update:
            trainer.add(block)
        metrics.append(trainer.update(update * 100 + later))
        digests.append(digest(trainer.state()))
    return Trained(trainer.state(), metrics, digests)


def digest(state: State) -> str:
    """Of every bit but those of generators, and of counts of a replay buffer."""
    values = {name: value for name, value in state.values.items() if name not in ("drawing", "shuffling")}
    values["trainer"] = {k: v for k, v in dict(values["trainer"]).items() if k != "num_added"}  # type: ignore[call-overload,arg-type]  # it is a mapping
    if (signal := values.get("reward_shared")) is not None:
        values["reward_shared"] = {k: v for k, v in dict(signal).items() if k != "random"}  # type: ignore[call-overload,arg-type]
    found = hashlib.sha256(repr(sorted(values.items())).encode())
    for name, array in sorted(state.tensors.items()):
        found.update(name.encode() + array.tobytes())
    return found.hexdigest()


@contextmanager
def in_double(case: Case) -> Iterator[None]:
    """Trainers that are made in here compute in float64."""
    make_actor_critic, soft_networks = on_policy_trainer.make_actor_critic, sac_module.soft_networks

    def soft_in_double(*arguments: Any, **named: Any) -> SoftNetworks:
        networks = soft_networks(*arguments, **named)
        for one in fields(networks):
            if (network := getattr(networks, one.name)) is not None:
                network.double()
        return networks

    with ExitStack() as leaving:
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)  # of the temperature
        leaving.callback(torch.set_default_dtype, before)
        make = (lambda networks, *_: TorchActorCritic(networks, CPU)) if case.is_in_torch else make_actor_critic
        in_double = lambda networks, *rest: make(networks.double(), *rest)  # noqa: E731
        leaving.enter_context(patch.object(on_policy_trainer, "make_actor_critic", in_double))
        of_groups = lambda module, device: GroupActorCritic(module.double(), device)  # noqa: E731
        leaving.enter_context(patch.object(group_trainer, "GroupActorCritic", of_groups))
        leaving.enter_context(patch.object(sac_module, "soft_networks", soft_in_double))
        yield


def train_alone(case: Case) -> Trained:
    """The same in one process, by the trainer as it is, but for where its mini-batches come from."""
    size = len(case.agents)
    by_rank = zip(*(case.blocks(rank) for rank in range(size)), strict=True)
    if case.trainer == "sac":
        with in_double(case):
            sac = SACOfAllRanks(case)
        sac.use_demonstrations(demonstrations(case))
        return trained(sac, case, map(sac.noted, by_rank))
    with in_double(case):
        on_policy: Any = make_trainer(case.spec, case.settings, SEED, CPU)
    if case.has_custom_loss:
        on_policy.on_loss(penalty)
    on_policy.use_demonstrations(demonstrations(case))
    splitter = SplitAsRanks(size)
    with patch.object(on_policy_trainer, "split_rows", splitter):
        return trained(on_policy, case, map(splitter.noted, by_rank))


def generator(rank: int) -> np.random.Generator:
    """What a rank shuffles and draws with."""
    seed = np.random.SeedSequence([SEED, rank]).generate_state(1, np.uint64)[0]
    return np.random.Generator(np.random.PCG64(int(seed)))


class SplitAsRanks:
    """`split_rows`, but every part has the rows that each rank would have in it, one rank after the other."""

    def __init__(self, size: int):
        self._random = [generator(rank) for rank in range(size)]
        self._rows: list[int] = []

    def noted(self, blocks: Sequence[list[Trajectories]]) -> list[Trajectories]:
        """The blocks of all ranks for one update, as one."""
        self._rows = [sum(block.num_rows for block in of_rank) for of_rank in blocks]
        return [join_by_agent(list(itertools.chain(*blocks)))]

    def __call__(
        self,
        num_rows: int,
        parts: int,
        _: object,
        sequences: Sequences | None = None,
        joint: Int64 | None = None,
    ) -> list[Part]:
        """See split_rows."""
        assert num_rows == sum(self._rows)
        of_ranks, begin, first = [], 0, 0
        for random, rows in zip(self._random, self._rows, strict=True):
            own, end = None, first
            if sequences is not None:
                end = int(np.searchsorted(sequences.lengths.cumsum(), begin + rows)) + 1
                own = Sequences(sequences.lengths[first:end], sequences.memories[first:end])
                assert own.lengths.sum() == rows
            of_joint = None if joint is None else joint[begin : begin + rows]
            split = split_rows(rows, parts, random, own, of_joint)
            of_ranks.append([Part(part.rows + begin, part.sequences) for part in split])
            begin, first = begin + rows, end
        return [_joined(part) for part in zip(*of_ranks, strict=True)]


def _joined(parts: Sequence[Part]) -> Part:
    rows = np.concatenate([part.rows for part in parts])
    sequences = [part.sequences for part in parts if part.sequences is not None]
    if not sequences:
        return Part(rows, None)
    memories: Any = np.concatenate([np.asarray(own.memories) for own in sequences])
    return Part(rows, Sequences(np.concatenate([own.lengths for own in sequences]), memories))


class SACOfAllRanks(SACTrainer):
    """Draws what each rank would draw from its own replay buffer, one rank after the other."""

    def __init__(self, case: Case):
        super().__init__(case.spec, case.settings, SEED, CPU)
        size = len(case.agents)
        layout = self._replay_layout()
        layout = replace(layout, capacity=math.ceil(layout.capacity / size))
        self._replays = [ReplayBuffer(layout) for _ in range(size)]
        self._generators = [generator(rank) for rank in range(size)]
        self._random = _Noise()  # type: ignore[assignment]  # only its noise is read
        self._rows: list[int] = []
        if self._hyper.prioritized_replay is not None:
            self._train_step_hooks = [self._set_priorities]

    def noted(self, blocks: Sequence[list[Trajectories]]) -> list[Trajectories]:
        """The blocks of all ranks for one update, as one."""
        self._by_rank = [join_by_agent(of_rank) for of_rank in blocks]
        return [join_by_agent(list(itertools.chain(*blocks)))]

    def _include(self, block: Trajectories) -> dict[str, Sequence[float]]:
        rewards, memories = self._evaluate(block), self._critic_memories(block)
        begin, initial = 0, self._hyper.buffer_init_steps / len(self._replays)
        for replay, own in zip(self._replays, self._by_rank, strict=True):
            rows = slice(begin, begin + own.num_rows)
            missing = max(0, int(np.ceil(initial)) - replay.num_steps)
            replay.add(own, rewards[rows], None if memories is None else memories[rows])
            self._due_steps += max(0, own.num_rows - missing)
            begin = rows.stop
        return {}

    def _draw(self, step: int) -> Minibatch:
        drawn, noise, size = [], [], self._hyper.batch_size
        for rank, (replay, random) in enumerate(zip(self._replays, self._generators, strict=True)):
            ranks = len(self._replays)
            self._replay, self._random = replay, random
            count = size * (rank + 1) // ranks - size * rank // ranks
            with patch.object(OneRank, "own_part", lambda *_, part=count: range(part)):
                minibatch = super()._draw(step)
            if minibatch is not None:
                drawn.append(minibatch)
                shape = (2, minibatch.num_rows, self._spec.actions.continuous)
                noise.append(random.standard_normal(shape, np.float32))
        self._rows = [one.num_rows for one in drawn]
        self._drawn = drawn
        self._random = _Noise(np.concatenate(noise, 1))  # type: ignore[assignment]
        columns = {one.name: [getattr(minibatch, one.name) for minibatch in drawn] for one in fields(Minibatch)}
        return Minibatch(**{name: _concatenated(parts) for name, parts in columns.items()})

    def _set_priorities(self, step: TrainStep) -> None:
        assert step.errors is not None
        begin = 0
        for replay, own in zip(self._replays, self._drawn, strict=True):
            errors = step.errors[begin : begin + own.num_rows]
            replay.update_priorities(own.rows, np.asarray(errors.tolist(), np.float32))
            begin += own.num_rows

    def state(self) -> State:
        """Without a generator."""
        random, self._random = self._random, generator(0)
        found, self._random = super().state(), random
        return found


class _Noise:
    """Gives what was drawn already."""

    def __init__(self, noise: np.ndarray | None = None):
        self._noise = noise

    def standard_normal(self, shape: tuple[int, ...], dtype: type) -> np.ndarray:
        assert self._noise is not None
        assert self._noise.shape == shape
        return self._noise


def _concatenated(parts: Sequence[Any]) -> Any:
    if parts[0] is None:
        return None
    if isinstance(parts[0], tuple):
        return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))
    return np.concatenate(parts)
