"""Every kind of network, on a device other than the CPU: what it learns, and that its state moves between devices.

On a pretended device (see tests/pretended_device.py) every number must be the one that torch gives on the CPU. On a
real one, `make gpu`, numbers are those of float32 arithmetic in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.train_step import TrainStep
from rl_tui.engine.learning.trainer import Metrics, Trainer
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec, State
from tests.learning.demonstrations import random_demonstrations
from tests.learning.golden import IN_TORCH
from tests.learning.rewards import signals
from tests.learning.rollouts import Simulation
from tests.pretended_device import DEVICE, PretendedDevice

CPU = torch.device("cpu")
SPEED, PLACE = ObservationSpec("speed", (3,)), ObservationSpec("place", (4,))
CAMERA = ObservationSpec("camera", (20, 20, 1), "uint8")
LARGE = ObservationSpec("camera", (36, 36, 3), "uint8")
ENEMIES = ObservationSpec("enemies", (4, 3))
TARGET = ObservationSpec("target", (2,), is_goal=True)
CONTINUOUS, DISCRETE, HYBRID = ActionSpec(2), ActionSpec(0, (3, 2)), ActionSpec(2, (3, 2))
MEMORY = {"memory": {"sequence_length": 4, "memory_size": 8}}
EVERY_TERM = {"max_grad_norm": 0.5, "joint_ratio": True, "target_kl": 0.5, "value_clip": 0.05}
SIGNAL = {"extrinsic": {}, "distillation": {"network_settings": {"hidden_units": 8, "num_layers": 1}}}
TRAINERS: dict[str, dict[str, Any]] = {
    "ppo": {"batch_size": 32, "buffer_size": 64, "num_epoch": 1},
    "sac": {"batch_size": 32, "buffer_size": 600, "steps_per_update": 20, "save_replay_buffer": True},
}


@dataclass(frozen=True)
class Kind:
    """What a trainer trains, and its settings other than small sizes."""

    actions: ActionSpec
    observations: tuple[ObservationSpec, ...] = (SPEED, PLACE)
    network: Mapping[str, Any] = field(default_factory=dict)
    hyper: Mapping[str, Any] = field(default_factory=dict)
    rewards: Mapping[str, Any] = field(default_factory=dict)
    clones: bool = False

    @property
    def spec(self) -> BehaviorSpec:
        return BehaviorSpec("Walker", self.observations, self.actions)


EVERYTHING = (CAMERA, SPEED, ENEMIES, TARGET)
KINDS: dict[str, dict[str, Kind]] = {
    "ppo": {
        "vectors": Kind(HYBRID),
        "every term": Kind(HYBRID, hyper=EVERY_TERM),
        "memory": Kind(HYBRID, network=MEMORY),
        "shared memory": Kind(HYBRID, network=MEMORY, hyper={"shared_critic": True}),
        "image": Kind(DISCRETE, (CAMERA,)),
        "resnet": Kind(CONTINUOUS, (CAMERA, SPEED), {"vis_encode_type": "resnet"}),
        "nature": Kind(CONTINUOUS, (LARGE,), {"vis_encode_type": "nature_cnn", "precision": "bfloat16"}),
        "set": Kind(CONTINUOUS, (ENEMIES, SPEED)),
        "goal": Kind(HYBRID, (SPEED, TARGET)),
        "everything": Kind(HYBRID, EVERYTHING, network=MEMORY),
        "signal": Kind(HYBRID, rewards=SIGNAL),
        "demonstrations": Kind(HYBRID, EVERYTHING, network=MEMORY, clones=True),
    },
    "sac": {
        "continuous": Kind(CONTINUOUS),
        "discrete": Kind(DISCRETE),
        "hybrid": Kind(HYBRID, hyper={"target_q": True, "n_step": 2, "max_grad_norm": 0.5}),
        "priorities": Kind(HYBRID, hyper={"prioritized_replay": {}}),
        "memory": Kind(CONTINUOUS, network=MEMORY),
        "memory of target critics": Kind(HYBRID, network=MEMORY, hyper={"target_q": True}),
        "image": Kind(DISCRETE, (CAMERA,)),
        "set": Kind(CONTINUOUS, (ENEMIES, SPEED)),
        "goal": Kind(HYBRID, (SPEED, TARGET)),
        "everything": Kind(HYBRID, EVERYTHING, network=MEMORY),
        "signal": Kind(CONTINUOUS, rewards=SIGNAL),
        "demonstrations": Kind(HYBRID, clones=True),
    },
}
OF_EVERYTHING = (
    "shared memory",
    "image",
    "resnet",
    "nature",
    "set",
    "goal",
    "continuous",
    "discrete",
)  # parts of others
ALL = [
    pytest.param(trainer, kind, marks=[pytest.mark.slow] if kind in OF_EVERYTHING else [])
    for trainer, kinds in KINDS.items()
    for kind in kinds
]


@pytest.fixture(autouse=True)
def distillation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal has a name."""
    target = f"{signals.__name__}:DistillationSettings"
    monkeypatch.setitem(registry.BUILT_IN["reward_signals"], "distillation", target)  # type: ignore[arg-type]  # a dict


def made(trainer: str, kind: str, device: torch.device, seed: int = 7, **hyper: object) -> Trainer:
    """A trainer on that device."""
    of = KINDS[trainer][kind]
    config = BehaviorConfig.model_validate(
        {
            "trainer_type": trainer,
            "hyperparameters": TRAINERS[trainer] | dict(of.hyper) | hyper,
            "network_settings": {"hidden_units": 8, "num_layers": 1, "normalize": True} | dict(of.network),
            **({"reward_signals": dict(of.rewards)} if of.rewards else {}),
            "behavioral_cloning": {"demo_path": "a.demo", "batch_size": 12, "num_epoch": 1} if of.clones else None,
            "normalize_reward": trainer == "ppo",
            "time_horizon": 6,
            "max_steps": 2000,
        }
    )
    new: Trainer = registry.implementation("trainers", trainer)(of.spec, config, seed, device)
    new.use_demonstrations({"a.demo": random_demonstrations(of.spec, [9, 5, 12])})
    return new


@contextmanager
def in_torch(trainer: str, device: torch.device) -> Iterator[None]:
    """The CPU, too, computes in torch what a device computes."""
    if device != DEVICE:
        yield
        return
    with patch.object(*IN_TORCH[trainer]):
        yield


def trained(trainer: str, kind: str, device: torch.device, updates: int = 1) -> tuple[Trainer, list[Metrics]]:
    """A trainer and what it reported; the policy that acts keeps its first weights, so that all see the same."""
    new = made(trainer, kind, device)
    return new, continued(new, trainer, kind, updates)


def continued(of: Trainer, trainer: str, kind: str, updates: int, seed: int = 3) -> list[Metrics]:
    """What so many more updates report."""
    policy = made(trainer, kind, CPU).make_policy(3)
    simulation, reported, step = Simulation(policy, KINDS[trainer][kind].spec, 5, 6, seed), [], 0
    while len(reported) < updates:
        block = simulation.run(16)
        of.add(block)
        step += block.num_rows
        if of.is_ready():
            reported.append(of.update(step))
    return reported


def same(found: State, expected: State, device: torch.device, tolerance: float = 1e-2) -> None:
    """Bit for bit with torch on the CPU; on a real device, or against numpy, within a share of the largest number.

    A step of Adam is as large for a small gradient as for a large one: where rounding decides a sign, a parameter is
    off by two learning rates (3e-4 each) for every step.
    """
    assert found.tensors.keys() == expected.tensors.keys()
    for name, array in found.tensors.items():
        if device == DEVICE:
            np.testing.assert_array_equal(array, expected.tensors[name], err_msg=name)
        elif array.dtype.kind == "f" and array.size:
            limit = 3e-3 + tolerance * np.abs(expected.tensors[name]).max()
            np.testing.assert_allclose(array, expected.tensors[name], rtol=0, atol=limit, err_msg=name)


@pytest.mark.parametrize(("trainer", "kind"), ALL)
def test_an_update_gives_what_it_gives_on_the_cpu(trainer: str, kind: str, device: torch.device) -> None:
    """The loss of its next block, too."""
    found, reported = trained(trainer, kind, device)
    with in_torch(trainer, device):
        expected, expected_reports = trained(trainer, kind, CPU)
    block = Simulation(found.make_policy(3), KINDS[trainer][kind].spec, 5, 6).run(8)
    reported.append(found.loss(block))
    expected_reports.append(expected.loss(block))
    is_half = KINDS[trainer][kind].network.get("precision") == "bfloat16"
    rel, absolute = (0, 0) if device == DEVICE else (0.1, 1e-2) if is_half else (1e-2, 1e-4)
    for ours, theirs in zip(reported, expected_reports, strict=True):
        assert ours == pytest.approx(theirs, rel=rel, abs=absolute)
    same(found.state(), expected.state(), device, 0.1 if is_half else 1e-2)


@pytest.mark.parametrize(
    ("trainer", "kind"),
    [one for one in ALL if one.values[1] in ("memory", "goal", "priorities", "signal", "demonstrations")],
)
def test_a_state_moves_to_the_device_and_back(trainer: str, kind: str, device: torch.device) -> None:
    """Trained on one, it continues on the other as it would have where it was; the replay buffer comes along."""
    with in_torch(trainer, device):
        here, _ = trained(trainer, kind, CPU)
        there = made(trainer, kind, device, seed=8)
        again = made(trainer, kind, CPU, seed=9)
        for one, other in ((here, there), (there, again)):
            other.load(one.state())
            if (replay := one.replay()) is not None:
                other.load_replay(replay)
            for array, moved in zip(one.state().tensors.values(), other.state().tensors.values(), strict=True):
                np.testing.assert_array_equal(array, moved)
        here.load(here.state())  # which forgets unfinished episodes, as the others have
        reports = [continued(each, trainer, kind, 1, seed=4) for each in (here, there, again)]
    rel, absolute = (0, 0) if device == DEVICE else (0.1, 1e-2)
    for report in reports[1:]:
        assert report[0] == pytest.approx(reports[0][0], rel=rel, abs=absolute)
    for other in (there, again):
        same(other.state(), here.state(), device)
        for array, moved in zip(here.weights().arrays.values(), other.weights().arrays.values(), strict=True):
            np.testing.assert_allclose(moved, array, rtol=1e-2, atol=3e-3)


@pytest.mark.parametrize(("trainer", "kind"), [("ppo", "vectors"), ("sac", "hybrid"), ("sac", "memory")])
def test_a_hook_reads_the_losses_of_every_step_as_numbers(trainer: str, kind: str, device: torch.device) -> None:
    """They are values, from which no gradient can be followed back, nor a graph kept."""
    steps: list[TrainStep] = []
    new = made(trainer, kind, device)
    new.on_train_step(steps.append)
    (reported,) = continued(new, trainer, kind, 1)
    for tag in steps[0].losses:
        assert np.mean([float(step.losses[tag]) for step in steps]) == pytest.approx(reported[tag], rel=1e-4, abs=1e-6)
    assert not any(getattr(loss, "requires_grad", False) for step in steps for loss in step.losses.values())


@dataclass(frozen=True)
class Counted:
    """Of an update: how often it waits for the device, how much is copied to it, and its train steps."""

    waits: int
    arrivals: int
    steps: int


def counted(trainer: str, kind: str, **hyper: object) -> Counted:
    """Of a trainer's second update."""
    steps: list[TrainStep] = []
    with PretendedDevice().everywhere() as device:
        new = made(trainer, kind, DEVICE, **hyper)
        continued(new, trainer, kind, 1)
        new.add(Simulation(new.make_policy(3), KINDS[trainer][kind].spec, 5, 6, 4).run(16))
        new.on_train_step(steps.append)
        waits, arrivals = device.num_waits, device.num_arrivals
        new.update(200)
        return Counted(device.num_waits - waits, device.num_arrivals - arrivals, len(steps))


@pytest.mark.parametrize("kind", ["vectors", "image", "set", "goal"])
def test_an_update_of_ppo_copies_what_it_learns_from_at_once(kind: str) -> None:
    """All blocks together: what was observed, then the columns with their advantages, and the numbers of the rows of
    every mini-batch. It waits for the values of which the advantages are made, and for what it reports; a mini-batch
    copies nothing and waits for nothing."""
    few, many = (counted("ppo", kind, batch_size=rows) for rows in (40, 8))
    assert many.steps >= 4 * few.steps
    for once in (few, many):
        assert (once.arrivals, once.waits) == (3, 2)
    three = counted("ppo", kind, num_epoch=3)
    assert (three.arrivals, three.waits) == (3, 2)
    assert counted("ppo", kind, num_epoch=3, target_kl=1e9).waits == 5, "each pass says how far the policy has moved"


def test_blocks_wait_on_the_host_for_the_update() -> None:
    with PretendedDevice().everywhere() as device:
        new = made("ppo", "image", DEVICE)
        block = Simulation(new.make_policy(3), KINDS["ppo"]["image"].spec, 5, 6, 4).run(16)
        arrivals, waits = device.num_arrivals, device.num_waits
        new.add(block)
        new.add(block)
        assert (device.num_arrivals, device.num_waits) == (arrivals, waits)
        new.update(200)
        assert device.num_arrivals - arrivals == 3, "however many they are"


def test_a_mini_batch_of_ppo_with_memory_never_waits_for_the_device() -> None:
    """It gets the numbers of its sequences, and how both networks pad them."""
    one, three = (counted("ppo", "memory", num_epoch=epochs) for epochs in (1, 3))
    assert three.steps == 3 * one.steps
    assert three.waits == one.waits
    assert three.arrivals - one.arrivals <= 4 * (three.steps - one.steps)


@pytest.mark.parametrize("kind", ["continuous", "discrete", "hybrid", "priorities", "image", "goal"])
def test_a_mini_batch_of_sac_is_one_copy(kind: str) -> None:
    few, many = (counted("sac", kind, steps_per_update=steps) for steps in (40, 10))
    assert many.steps > few.steps
    assert (few.arrivals, many.arrivals) == (few.steps, many.steps)


@pytest.mark.parametrize(("kind", "waits"), [("continuous", 1), ("priorities", 2), ("signal", 2), ("memory", 1)])
def test_a_mini_batch_of_sac_waits_once_to_see_that_gradients_are_finite(kind: str, waits: int) -> None:
    """And once more for the errors by which its rows are ranked, or for what a signal pays for them now."""
    few, many = (counted("sac", kind, steps_per_update=steps) for steps in (40, 10))
    assert many.steps > few.steps
    assert many.waits - few.waits == waits * (many.steps - few.steps)
