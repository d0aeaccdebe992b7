"""`torch_settings.device: auto` on a real GPU: what it takes is the faster one, and taking it is quick."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.trainer import make_trainer
from rl_tui.engine.running.device_choice import SECONDS, Tasks, fastest_devices
from rl_tui.engine.running.device_trials import DeviceTrials
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec
from tests.devices import gpu

pytestmark = pytest.mark.gpu
CPU = torch.device("cpu")
JOINTS = BehaviorSpec("Walker", (ObservationSpec("joints", (17,)),), ActionSpec(6))
KINDS: dict[str, tuple[BehaviorSpec, int, dict[str, Any]]] = {  # with the number of agents
    "CartPole": (
        BehaviorSpec("CartPole", (ObservationSpec("pole", (4,)),), ActionSpec(0, (2,))),
        8,
        {"hyperparameters": {"batch_size": 64, "buffer_size": 2048}, "network_settings": {"hidden_units": 64}},
    ),
    "84x84x3 pixels": (
        BehaviorSpec("Pong", (ObservationSpec("camera", (84, 84, 3), "uint8"),), ActionSpec(0, (6,))),
        16,
        {
            "hyperparameters": {"batch_size": 256, "buffer_size": 4096},
            "network_settings": {"vis_encode_type": "nature_cnn", "hidden_units": 512, "num_layers": 1},
        },
    ),
    "SAC 256x256": (
        JOINTS,
        1,
        {
            "trainer_type": "sac",
            "hyperparameters": {"batch_size": 256},
            "network_settings": {"hidden_units": 256, "num_layers": 2},
        },
    ),
    "SAC 1024x1024": (
        JOINTS,
        1,
        {
            "trainer_type": "sac",
            "hyperparameters": {"batch_size": 256},
            "network_settings": {"hidden_units": 1024, "num_layers": 2},
        },
    ),
}
EXPECTED = {"CartPole": ("cpu", "cpu"), "84x84x3 pixels": ("cuda", None), "SAC 256x256": (None, "cpu")}
AS_FAST = 1.3  # times: as fast as the other, as far as another measurement can show
LONG = 5.0  # seconds of that measurement


def trials_of(kind: str, clock: Callable[[], float] = time.perf_counter) -> DeviceTrials:
    spec, num_agents, settings = KINDS[kind]
    config = BehaviorConfig.model_validate(settings)
    return DeviceTrials(spec, config, num_agents, lambda one, device: make_trainer(spec, one, 0, device), clock)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_chosen_in_a_moment_is_the_faster_one_when_it_is_measured_for_long(kind: str) -> None:
    device = gpu()
    if device.type != "cuda":
        pytest.skip("there is nothing to choose from")
    device = torch.zeros(1, device=device).device
    tasks, lines = Tasks(updates=True, num_agents=KINDS[kind][1]), list[str]()
    fastest_devices(device, tasks, trials_of(kind), SECONDS, lambda *_: None)  # CUDA starts
    start = time.perf_counter()
    chosen = fastest_devices(device, tasks, trials_of(kind), SECONDS, lambda _, line: lines.append(line))
    taken = time.perf_counter() - start
    print(f"{kind}: {lines[0]}, in {taken:.1f} s")
    assert taken < SECONDS
    trials = trials_of(kind)
    for measure, of in ((trials.time_updates, chosen.updates), (trials.time_acting, chosen.acts)):
        timings = {place: measure(place, LONG) for place in (CPU, device)}
        best = min(timing.seconds for timing in timings.values())
        assert timings[of].seconds < AS_FAST * best, f"{of} of {timings}"
    for of, expected in zip(chosen, EXPECTED.get(kind, (None, None)), strict=True):
        assert expected in (None, of.type)


def test_what_was_timed_leaves_the_memory_of_the_gpu() -> None:
    device = gpu()
    if device.type != "cuda":
        pytest.skip("only a CUDA device has memory of its own")
    trials = trials_of("84x84x3 pixels")
    trials.time_updates(device, 0.1)
    before = torch.cuda.memory_reserved(device)
    trials.time_updates(device, 0.1)
    trials.time_acting(device, 0.1)
    assert torch.cuda.memory_reserved(device) <= before


def test_too_little_memory_on_the_gpu_is_no_end_of_a_run() -> None:
    device = gpu()
    if device.type != "cuda":
        pytest.skip("only a CUDA device has memory of its own")
    spec, _, settings = KINDS["84x84x3 pixels"]
    config, lines = BehaviorConfig.model_validate(settings), list[str]()

    def make(one: BehaviorConfig, place: torch.device) -> Any:
        if place.type == "cuda":
            torch.empty(1 << 50, device=place)
        return make_trainer(spec, one, 0, place)

    trials = DeviceTrials(spec, config, 1, make)
    chosen = fastest_devices(device, Tasks(updates=True, num_agents=0), trials, 0.5, lambda _, line: lines.append(line))
    assert chosen.updates == CPU
    assert "could not be timed, and is not used: what is timed on cuda" in lines[0]
