"""What a behavior is timed with, within which limits, and that nothing else notices."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.on_policy.trainer import OnPolicyTrainer
from rl_tui.engine.learning.trainer import Trainer, make_trainer
from rl_tui.engine.running import device_trials
from rl_tui.engine.running.device_trials import MINIBATCHES, PARTS, DeviceTrials
from rl_tui.engine.sampling.random_experience import random_experience
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec
from tests.learning.demonstrations import random_demonstrations
from tests.learning.rollouts import SPEC

CPU = torch.device("cpu")
CAMERA = BehaviorSpec("Walker", (ObservationSpec("camera", (20, 20, 3), "uint8"),), ActionSpec(0, (3,)))
SMALL_NETWORK = {"hidden_units": 16, "num_layers": 1, "normalize": True}
MEMORY = {**SMALL_NETWORK, "memory": {"sequence_length": 8, "memory_size": 8}}
HYPER = {"batch_size": 64, "buffer_size": 10240}
KINDS: dict[str, tuple[BehaviorSpec, dict[str, Any]]] = {
    "ppo": (SPEC, {"hyperparameters": HYPER}),
    "ppo, images": (CAMERA, {"hyperparameters": HYPER}),
    "ppo, memory": (SPEC, {"hyperparameters": HYPER, "network_settings": MEMORY}),
    "ppo, curiosity": (SPEC, {"hyperparameters": HYPER, "reward_signals": {"extrinsic": {}, "curiosity": {}}}),
    "sac": (SPEC, {"trainer_type": "sac", "hyperparameters": {"batch_size": 64, "buffer_init_steps": 5000}}),
    "sac, memory": (SPEC, {"trainer_type": "sac", "hyperparameters": {"batch_size": 64}, "network_settings": MEMORY}),
    "poca": (SPEC, {"trainer_type": "poca", "hyperparameters": HYPER}),
    "mappo": (SPEC, {"trainer_type": "mappo", "hyperparameters": HYPER}),
    "bc": (SPEC, {"trainer_type": "bc", "hyperparameters": {"demo_path": "a.demo", "batch_size": 16}}),
}


class Clock:
    """Shows what it was set to, and may go on by itself at each look."""

    def __init__(self) -> None:
        self.now = 0.0
        self.tick = 0.0

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


def config_of(settings: dict[str, Any]) -> BehaviorConfig:
    return BehaviorConfig.model_validate({"network_settings": SMALL_NETWORK, "time_horizon": 100} | settings)


def trials(
    kind: str,
    num_agents: int = 4,
    clock: Callable[[], float] | None = None,
    made: Callable[[Trainer], Trainer] = lambda trainer: trainer,
) -> DeviceTrials:
    spec, settings = KINDS[kind]

    def make(config: BehaviorConfig, device: torch.device) -> Trainer:
        trainer = make_trainer(spec, config, 0, device)
        trainer.use_demonstrations({"a.demo": random_demonstrations(spec, [9, 50, 12])})
        return made(trainer)

    given = {} if clock is None else {"clock": clock}
    return DeviceTrials(spec, config_of(settings), num_agents, make, **given)


@pytest.mark.parametrize("kind", KINDS)
def test_every_trainer_is_timed_with_random_experience(kind: str, device: torch.device) -> None:
    for place in (CPU, device):
        timed = trials(kind)
        for timing in (timed.time_updates(place, 0.02), timed.time_acting(place, 0.02)):
            assert timing.failure == ""
            assert 0 < timing.seconds < 1000


@pytest.mark.parametrize("kind", ["ppo", "sac"])
def test_a_timed_update_has_mini_batches_of_the_size_of_the_real_one(kind: str) -> None:
    made: list[Trainer] = []
    assert trials(kind, made=lambda trainer: made.append(trainer) or trainer).time_updates(CPU, 5.0).failure == ""
    sizes = [trainer._hyper.batch_size for trainer in made]  # type: ignore[attr-defined]
    assert sizes == [*(round(64 * part) for part in PARTS), 64]


def test_the_time_of_an_update_is_divided_by_its_mini_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, counts = Clock(), []

    def update(_: Trainer, step: int, should_continue: Callable[[], bool]) -> dict[str, float]:
        count = 1
        while should_continue():
            count += 1
        counts.append(count)
        clock.now += 0.01 * count
        return {}

    monkeypatch.setattr(OnPolicyTrainer, "update", update)
    timing = trials("ppo", clock=clock).time_updates(CPU, 0.5)
    assert timing.seconds == pytest.approx(0.01)
    assert counts[-1] == MINIBATCHES
    assert counts[0] == 1, "the first one loads libraries"


def slow_updates(clock: Clock, seconds: Callable[[int], float]) -> Callable[..., dict[str, float]]:
    """Updates of one mini-batch, which take that long for the size of a mini-batch."""

    def update(trainer: Any, step: int, should_continue: Callable[[], bool]) -> dict[str, float]:
        clock.now += seconds(trainer._hyper.batch_size)
        should_continue()
        return {}

    return update


@pytest.mark.parametrize(
    ("seconds", "expected", "is_estimate", "most"),
    [
        (lambda rows: 0.001 * rows, 0.064, False, 2.0),
        (lambda rows: 0.1 * rows, 6.4, True, 1.0),
        (lambda rows: 0.02 + 0.01 * rows, 0.66, True, 0.5),
        (lambda rows: 0.2, 0.2, False, 2.0),
        (lambda rows: 10.0, 640.0, True, 20.0),
    ],
)
def test_what_would_take_too_long_is_estimated_from_small_parts(
    seconds: Callable[[int], float], expected: float, is_estimate: bool, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(OnPolicyTrainer, "update", slow_updates(clock, seconds))
    timing = trials("ppo", clock=clock).time_updates(CPU, 0.5)
    assert timing.seconds == pytest.approx(expected)
    assert timing.is_estimate == is_estimate
    assert clock.now <= most


def test_nothing_is_timed_again_once_the_difference_is_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, counts = Clock(), []
    update = slow_updates(clock, lambda rows: 0.01)

    def counting(*words: Any) -> dict[str, float]:
        counts.append(0)
        return update(*words)

    monkeypatch.setattr(OnPolicyTrainer, "update", counting)
    numbers = {}
    for best in (None, 0.009, 0.001, 0.1):
        counts.clear()
        trials("ppo", clock=clock).time_updates(CPU, 5.0, best)
        numbers[best] = len(counts)
    assert numbers[None] == numbers[0.009] > numbers[0.001] == numbers[0.1]


def test_acting_of_many_agents_is_estimated_from_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()

    def act(policy: Any, waiting: Any, memories: Any = None) -> None:
        clock.now += 0.01 * len(waiting.agent_ids)

    monkeypatch.setattr("rl_tui.engine.learning.acting.policy.NumpyPolicy.act", act)
    timing = trials("ppo", 640, clock).time_acting(CPU, 0.3)
    assert (timing.seconds, timing.is_estimate) == (pytest.approx(6.4), True)
    assert trials("ppo", 20, clock=clock).time_acting(CPU, 0.3).seconds == pytest.approx(0.2)


def test_a_device_that_fails_says_why_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, *words: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. 1 GiB is free. Process 1 has 3")

    monkeypatch.setattr(OnPolicyTrainer, "update", full)
    timing = trials("ppo").time_updates(CPU, 0.5)
    assert timing.failure.startswith("what is timed on cpu does not fit in memory: CUDA out of memory. Tried to ")
    monkeypatch.setattr(OnPolicyTrainer, "update", lambda *_: (_ for _ in ()).throw(NotImplementedError("no kernel")))
    assert trials("ppo").time_updates(CPU, 0.5).failure == "no kernel"


def test_a_trainer_that_is_never_ready_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_trials, "MOST_BLOCKS", 3)
    monkeypatch.setattr(OnPolicyTrainer, "is_ready", lambda _: False)
    failure = trials("ppo").time_updates(CPU, 0.5).failure
    assert failure.startswith("no update is due after ")
    assert failure.endswith(" steps")


def test_generators_that_all_share_draw_as_if_nothing_had_been_timed(device: torch.device) -> None:
    def draw() -> tuple[float, float, float]:
        return random.random(), float(np.random.random()), float(torch.rand(()))

    def drawing(trainer: Trainer) -> Trainer:
        draw()
        return trainer

    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    expected = draw()
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    for place in (CPU, device):
        trials("ppo", made=drawing).time_updates(place, 0.05)
        trials("ppo", made=drawing).time_acting(place, 0.05)
    assert draw() == expected


@pytest.mark.parametrize("memory_size", [0, 5])
def test_random_experience_has_the_shapes_of_the_behavior(memory_size: int) -> None:
    block = random_experience(SPEC, 100, 16, memory_size)
    assert block.num_rows == 7 * 16
    assert list(block.lengths) == [16] * 7
    assert [observation.shape[1:] for observation in block.observations] == [(3,), (4,)]
    assert (block.memories is None) == (memory_size == 0)
    assert np.isfinite(block.log_probs).all()
