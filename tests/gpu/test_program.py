"""The program itself on the device, as its user starts it, and what it reports of the device."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from rl_tui.engine.running.machine.devices import DeviceSampler
from rl_tui.engine.session.messages import (
    CheckpointSaved,
    DevicesSampled,
    LogEmitted,
    PolicyExported,
    RunStarted,
    WorkerFailed,
)
from tests.devices import gpu
from tests.end_to_end.program import CARTPOLE, events_of, run

pytestmark = pytest.mark.gpu
SOFT = CARTPOLE.replace("trainer_type: ppo", "trainer_type: sac").replace(
    "{batch_size: 64, buffer_size: 512}",
    "{batch_size: 64, buffer_size: 4000, steps_per_update: 8, save_replay_buffer: true}",
)
GIB = 1 << 30


@pytest.mark.parametrize("text", [CARTPOLE, SOFT], ids=["ppo", "sac"])
def test_a_run_trains_saves_exports_and_resumes(tmp_path: Path, text: str) -> None:
    device = gpu()
    (tmp_path / "cartpole.yaml").write_text(text)
    words = ("cartpole.yaml", "--no-ui", "--run-id", "a", "--torch-device")
    for number, place in enumerate((str(device), "cpu", str(device)), 1):
        more = ("--resume",) if number > 1 else ()
        longer = ("--set", f"behaviors.CartPole.max_steps={2000 * number}")
        exit_code, stdout, stderr = run(*words, place, *more, *longer, folder=tmp_path)
        assert exit_code == 0, stdout + stderr
        assert stderr == ""
    events = events_of(tmp_path / "results/a")
    places = [torch.device(event.device).type for event in events if isinstance(event, RunStarted)]
    assert places == [device.type, "cpu", device.type]
    assert not [event for event in events if isinstance(event, WorkerFailed)]
    assert [event.step for event in events if isinstance(event, CheckpointSaved)][-1] >= 6000
    assert all(event.max_difference < 1e-4 for event in events if isinstance(event, PolicyExported))
    assert (tmp_path / "results/a/CartPole.onnx").stat().st_size > 0
    sampled = [event for event in events if isinstance(event, DevicesSampled)]
    if device.type == "cuda":
        assert [gpu.in_use for gpu in sampled[0].gpus].count(True) == 1
    exit_code, stdout, stderr = run("evaluate", "a", "--episodes", "3", folder=tmp_path)
    assert exit_code == 0, stdout + stderr


def test_by_default_a_run_chooses_where_there_is_a_device(tmp_path: Path) -> None:
    """For a network as small as that, the CPU."""
    (tmp_path / "cartpole.yaml").write_text(CARTPOLE.replace("max_steps: 2000", "max_steps: 600"))
    exit_code, stdout, stderr = run("cartpole.yaml", "--no-ui", "--run-id", "a", folder=tmp_path)
    assert exit_code == 0, stdout + stderr
    events = events_of(tmp_path / "results/a")
    (started,) = [event for event in events if isinstance(event, RunStarted)]
    has_choice = torch.cuda.is_available()
    assert started.device == ("auto" if has_choice else "cpu")
    lines = [event.message for event in events if isinstance(event, LogEmitted) and "updates on " in event.message]
    assert [re.sub(r" \(.*?\)", "", line) for line in lines] == ["updates on cpu, acts on cpu"] * has_choice


def test_a_device_that_is_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "cartpole.yaml").write_text(CARTPOLE)
    exit_code, stdout, stderr = run("cartpole.yaml", "--no-ui", "--torch-device", "cuda:99", folder=tmp_path)
    assert exit_code == 2, stdout + stderr
    assert "torch_settings.device: cuda:99 is not available: " in stderr
    assert "Traceback" not in stdout + stderr


def test_what_is_measured_is_what_torch_says_of_the_device(tmp_path: Path) -> None:
    device = gpu()
    if device.type != "cuda":
        pytest.skip("only a CUDA device has names and memory")
    held = torch.zeros(GIB // 4, device=device)
    torch.cuda.synchronize()
    index = torch.cuda.current_device() if device.index is None else device.index
    sampler = DeviceSampler(tmp_path, index)
    try:
        sample = sampler.sample()
    finally:
        sampler.close()
    assert sample.gpu_note == ""
    (used,) = [gpu for gpu in sample.gpus if gpu.in_use]
    assert used.name == torch.cuda.get_device_name(index)
    assert used.memory_total_bytes == pytest.approx(torch.cuda.get_device_properties(index).total_memory, rel=0.1)
    assert used.memory_used_bytes is not None
    assert used.memory_used_bytes >= held.nbytes
    assert used.utilization_percent is None or 0 <= used.utilization_percent <= 100
    assert used.temperature_celsius is None or 0 < used.temperature_celsius < 120
