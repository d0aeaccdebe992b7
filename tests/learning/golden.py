"""Golden numbers: what trainers report and learn, and what their exported policies give, from fixed seeds on the CPU.

A change that only moves code must leave every one of them as it is:

    python -m tests.learning.golden --write FILE      before the change
    python -m tests.learning.golden --compare FILE    after it, on the same machine: bit for bit, exit code 1 if not

On one machine, with the same packages, every run gives the same bits. Other processors and other builds of numpy, torch
and onnxruntime add in another order, so there the numbers only hold to a tolerance; see test_golden.py.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
import threadpoolctl
import torch

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.export.onnx_graph import OnnxGraph, graph_inputs
from rl_tui.engine.learning.on_policy import trainer as on_policy_trainer
from rl_tui.engine.learning.on_policy.actor_critic import TorchActorCritic
from rl_tui.engine.learning.sac import trainer as sac_trainer
from rl_tui.engine.learning.sac.gradients import TorchSoftGradients
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec, State, Weights
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from tests.export.exporters import actor_exporter
from tests.learning.rollouts import Simulation, acted, observed

NUM_UPDATES = 20
LENGTHS = [16, 16, 16, 12, 4]  # of the segments that are learned from in an update
NUM_AGENTS, NUM_STEPS = 4, 16  # the same with memories, which continue from segment to segment
FINGERPRINT = "SHA-256 of what was learned"

Numbers: TypeAlias = dict[str, list[float]]
Golden: TypeAlias = dict[str, list[float] | str]  # the numbers of a case by name, and its fingerprint

CPU = torch.device("cpu")
VECTORS = ObservationSpec("speed", (3,)), ObservationSpec("place", (4,))
CAMERA = ObservationSpec("camera", (20, 20, 1), "uint8")
CONTINUOUS, DISCRETE, HYBRID = ActionSpec(2), ActionSpec(0, (3, 2)), ActionSpec(2, (3, 2))
MEMORY = {"memory": {"sequence_length": 8, "memory_size": 8}}
EVERY_TERM = {"shared_critic": True, "max_grad_norm": 0.5, "joint_ratio": True}
EVERY_TERM |= {"epsilon": 0.02, "value_clip": 0.05, "learning_rate": 1e-3}  # so that much is clipped

# What makes a trainer compute in torch, where vectors would be left to numpy: a module, a name in it, and its stand-in.
IN_TORCH: Mapping[str, tuple[Any, str, Any]] = {
    "ppo": (on_policy_trainer, "make_actor_critic", lambda networks, *_: TorchActorCritic(networks, CPU)),
    "sac": (sac_trainer, "soft_gradients", lambda of, flat, _, actions, __: TorchSoftGradients(of, flat, actions)),
}


@dataclass(frozen=True)
class Case:
    """A trainer, the behavior it trains, and settings other than small sizes."""

    trainer: str
    actions: ActionSpec
    observations: tuple[ObservationSpec, ...] = VECTORS
    network: Mapping[str, Any] = field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    is_in_torch: bool = False
    is_exported: bool = False

    @property
    def spec(self) -> BehaviorSpec:
        """Of the behavior that is trained."""
        return BehaviorSpec("Walker", self.observations, self.actions)

    @property
    def settings(self) -> BehaviorConfig:
        """Small and quick."""
        own = {"ppo": {"num_epoch": 2, "buffer_size": 64}, "sac": {"steps_per_update": 16, "buffer_size": 600}}
        return BehaviorConfig.model_validate(
            {
                "trainer_type": self.trainer,
                "hyperparameters": {"batch_size": 16} | own[self.trainer] | dict(self.hyperparameters),
                "network_settings": {"hidden_units": 8, "num_layers": 1, "normalize": True} | dict(self.network),
                "normalize_reward": self.trainer == "ppo",
                "time_horizon": NUM_STEPS,
                "max_steps": 2000,
            }
        )


CASES = {
    "ppo hybrid in numpy": Case("ppo", HYBRID, is_exported=True),
    "ppo hybrid in torch": Case("ppo", HYBRID, is_in_torch=True),
    "ppo with every term": Case("ppo", HYBRID, hyperparameters=EVERY_TERM),
    "ppo images": Case("ppo", DISCRETE, (CAMERA, *VECTORS)),
    "ppo memory in numpy": Case("ppo", HYBRID, network=MEMORY, is_exported=True),
    "ppo memory in torch": Case("ppo", HYBRID, network=MEMORY, is_in_torch=True),
    "sac continuous in numpy": Case("sac", CONTINUOUS, is_exported=True),
    "sac continuous in torch": Case("sac", CONTINUOUS, is_in_torch=True),
    "sac discrete": Case("sac", DISCRETE),
    "sac hybrid with target critics": Case("sac", HYBRID, hyperparameters={"target_q": True, "n_step": 2}),
    "sac memory": Case("sac", CONTINUOUS, network=MEMORY),
}


def compute(name: str) -> Golden:
    """The numbers of a case: each metric of every update, what was learned in the end, and what is exported of it."""
    case = CASES[name]
    made = registry.implementation("trainers", case.trainer)
    with ExitStack() as leaving:
        leaving.enter_context(_one_thread())
        if case.is_in_torch:
            leaving.enter_context(patch.object(*IN_TORCH[case.trainer]))
        trainer = made(case.spec, case.settings, 7, CPU)
        numbers = _train(case, trainer)
    state = trainer.state()
    numbers |= _learned(state)
    if case.is_exported:
        numbers |= _exported(case, trainer.weights())
    return {**numbers, FINGERPRINT: _fingerprint(state)}


def _train(case: Case, trainer: Any) -> Numbers:
    """Every metric of every update."""
    policy, random = trainer.make_policy(3), np.random.default_rng(5)
    simulation = Simulation(policy, case.spec, NUM_AGENTS, NUM_STEPS, seed=5)
    numbers: Numbers = {}
    step = 0
    for _ in range(NUM_UPDATES):
        while not trainer.is_ready():
            if policy.memory_size:
                block = simulation.run(NUM_STEPS)
            else:
                block = acted(policy, random, LENGTHS, case.spec, masked=bool(case.actions.branches))
            for name, samples in trainer.add(block).items():
                numbers.setdefault(name, []).append(math.fsum(samples))
            step += block.num_rows
        for name, value in trainer.update(step).items():
            numbers.setdefault(name, []).append(value)
        policy.load(trainer.weights())
    return numbers


def _learned(state: State) -> Numbers:
    """For each kind of array that a checkpoint holds, a sum and a weighted sum of each of them, ordered by name.

    Both over the root of their length, by which the sum of so many roundings grows.
    """
    numbers: Numbers = {}
    for name, array in sorted(state.tensors.items()):
        kind = ".".join(name.split(".")[:2])
        flat, scale = array.ravel().tolist(), 1 / math.sqrt(array.size)
        weighted = (value * math.cos(index) for index, value in enumerate(flat))
        numbers.setdefault(kind, []).extend((scale * math.fsum(flat), scale * math.fsum(weighted)))
    return numbers


def _exported(case: Case, weights: Weights) -> Numbers:
    """What the exported graph gives for eight agents, twice in a row; only what is not drawn."""
    settings, random = case.settings.network_settings, np.random.default_rng(9)
    with TemporaryDirectory() as folder:
        files = BehaviorFolder(case.spec.name, Path(folder, case.spec.name))
        actor_exporter(case.spec, settings, case.trainer == "sac", ()).export(weights, 1, files)
        graph = OnnxGraph(files.final_export.read_bytes())
    memories = np.zeros((8, settings.memory.memory_size if settings.memory else 0), np.float32)
    numbers: Numbers = {}
    for _ in range(2):
        outputs = graph(graph_inputs(case.spec, observed(random, 8, case.spec), None, memories))
        memories = outputs.get("recurrent_out", memories).reshape(memories.shape)
        for name, array in outputs.items():
            if name.startswith(("deterministic", "recurrent")):
                numbers.setdefault(f"ONNX {name}", []).extend(array.ravel().tolist())
    return numbers


def _fingerprint(state: State) -> str:
    """Of every bit that a checkpoint would hold."""
    digest = hashlib.sha256(json.dumps(state.values, sort_keys=True).encode())
    for name, array in sorted(state.tensors.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


@contextmanager
def _one_thread() -> Iterator[None]:
    """BLAS and torch use one thread, whatever they used before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        yield
    torch.set_num_threads(before)


def text_of(golden: Mapping[str, Golden]) -> str:
    """JSON with a line for each name; floats are written so that reading gives the same bits."""
    cases = []
    for case, numbers in golden.items():
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(values)}" for name, values in numbers.items())
        cases.append(f" {json.dumps(case)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(cases) + "\n}\n"


def differences(name: str, expected: Golden, found: Golden) -> list[str]:
    """A line for each number of a case that is not the same, bit for bit."""
    lines = [f"{name}: only one has {key}" for key in sorted(expected.keys() ^ found.keys())]
    for key in sorted(expected.keys() & found.keys()):
        if (own := found[key]) == (other := expected[key]):
            continue
        if isinstance(own, str) or isinstance(other, str) or len(own) != len(other):
            lines.append(f"{name}: {key}: expected {other}, found {own}")
            continue
        pairs = [(index, *pair) for index, pair in enumerate(zip(other, own, strict=True)) if pair[0] != pair[1]]
        largest = max(error(before, after) for _, before, after in pairs)
        index, before, after = pairs[0]
        at = f"first at {index}: expected {before!r}, found {after!r}"
        lines.append(f"{name}: {key}: {len(pairs)} of {len(own)} differ, by {largest:.1e} at most, {at}")
    return lines


def error(expected: float, found: float) -> float:
    """The largest difference, relative to the expected number where that is above 1."""
    return abs(found - expected) / max(1.0, abs(expected))


def main(words: Sequence[str] | None = None) -> int:
    """Write the numbers, or compare them with those that were written; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.learning.golden", description="Golden numbers.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", type=Path, metavar="FILE", help="write the numbers there")
    action.add_argument("--compare", type=Path, metavar="FILE", help="print every number that differs from that file's")
    arguments = parser.parse_args(words)
    golden = {name: compute(name) for name in CASES}
    if arguments.write:
        arguments.write.write_text(text_of(golden))
        return 0
    expected = json.loads(arguments.compare.read_text())
    lines = [f"only one has the case {name}" for name in sorted(expected.keys() ^ golden.keys())]
    for name in sorted(expected.keys() & golden.keys()):
        lines += differences(name, expected[name], golden[name])
    print("\n".join(lines) or f"the same, bit for bit: {', '.join(golden)}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
