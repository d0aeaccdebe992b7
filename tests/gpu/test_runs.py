"""Whole runs on a device: files, resuming there and on the CPU, and memory that does not suffice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rl_tui import Learner
from rl_tui.engine import registry
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.learning.sac.trainer import SACTrainer
from rl_tui.engine.session.messages import BehaviorStateChanged, CheckpointSaved, LogEmitted, RunStarted, WorkerFailed
from rl_tui.engine.storage.checkpoint_format import read
from tests.learning.rewards import signals
from tests.pretended_device import DEVICE
from tests.running.runs import LiveRun, behavior, configuration, ending, run_to_end

SIGNAL = {"extrinsic": {}, "distillation": {"network_settings": {"hidden_units": 8, "num_layers": 1}}}
SOFT = {"batch_size": 16, "buffer_size": 400, "steps_per_update": 8, "save_replay_buffer": True}
BEHAVIORS: Mapping[str, Mapping[str, Any]] = {
    "ppo": behavior(reward_signals=SIGNAL),
    "sac": behavior(trainer_type="sac", hyperparameters=SOFT, reward_signals=SIGNAL, max_steps=200),
}
NO_ROOM = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 7.79 GiB of which 1.20 GiB is free."
    " Including non-PyTorch memory, this process has 6.50 GiB memory in use."
)


@pytest.fixture(autouse=True)
def distillation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal has a name."""
    target = f"{signals.__name__}:DistillationSettings"
    monkeypatch.setitem(registry.BUILT_IN["reward_signals"], "distillation", target)  # type: ignore[arg-type]  # a dict


def run(folder: Path, settings: Mapping[str, Any], device: torch.device, **checkpoints: Any) -> LiveRun:
    """A run of that behavior, from its beginning to its end."""
    return run_to_end(
        configuration(
            folder,
            {"Line": settings},
            torch_settings={"device": str(device)},
            checkpoint_settings=checkpoints,
        )
    )


@pytest.mark.parametrize(("trainer", "is_threaded"), [("ppo", False), ("sac", True)])
def test_a_run_saves_exports_and_resumes_on_the_device_and_on_the_cpu(
    tmp_path: Path, trainer: str, is_threaded: bool, device: torch.device
) -> None:
    settings = {**BEHAVIORS[trainer], "threaded": is_threaded}
    steps = settings["max_steps"]
    for number, place in enumerate((device, torch.device("cpu"), device), 1):
        longer = {**settings, "max_steps": number * steps}
        done = run(tmp_path, longer, place, resume=number > 1)
        assert ending(done).exit_code == 0, done.recent_events()
        (started,) = done.of(RunStarted)
        assert torch.device(started.device).type == place.type
        assert not done.of(WorkerFailed)
        saved = done.of(CheckpointSaved)[-1]
        assert saved.step >= number * steps
        state, _ = read(Path(saved.path))
        assert all(np.isfinite(array).all() for array in state.tensors.values())
        if number > 1 and trainer == "sac":
            loaded = [event.message for event in done.of(LogEmitted) if "replay_buffer" in event.message]
            assert loaded, done.recent_events()
        assert (done.folder / "Line.onnx").stat().st_size > 0


@pytest.mark.parametrize(("trainer", "is_threaded"), [("ppo", True), ("sac", False)])
def test_too_little_memory_ends_the_behavior_in_one_line_with_all_that_it_learned(
    tmp_path: Path, trainer: str, is_threaded: bool, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind: Any = {"ppo": PPOTrainer, "sac": SACTrainer}[trainer]
    losses = kind._losses if trainer == "sac" else kind._loss

    def full(self: Any, *words: Any) -> Any:
        if self.num_updates >= 2:
            if device.type == "cuda" and device != DEVICE:
                torch.empty(1 << 50, device=device)
            raise torch.OutOfMemoryError(NO_ROOM)
        return losses(self, *words)

    monkeypatch.setattr(kind, losses.__name__, full)
    done = run(tmp_path, {**BEHAVIORS[trainer], "threaded": is_threaded}, device)
    last = ending(done)
    assert (last.state, last.exit_code) == ("failed", 2), done.recent_events()
    (failed,) = [event for event in done.of(BehaviorStateChanged) if event.state == "failed"]
    assert re.fullmatch(
        r"training does not fit in memory: CUDA out of memory\. Tried to allocate [^.]+\.00 GiB\. "
        r"GPU 0 has a total capacity of [^;]+ is free\. hyperparameters\.batch_size or the network must be smaller",
        failed.reason,
    )
    assert not done.of(WorkerFailed)
    saved = done.of(CheckpointSaved)[-1]
    assert saved.reason == "error"
    state, _ = read(Path(saved.path))
    assert state.part("trainer").part("trainer").number("num_updates") == 2


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (torch.OutOfMemoryError(NO_ROOM), "1.20 GiB is free. hyperparameters.batch_size or the network"),
        (
            MemoryError("Unable to allocate 9 GiB"),
            "Unable to allocate 9 GiB. hyperparameters.buffer_size or the network",
        ),
    ],
)
def test_a_trainer_that_does_not_fit_ends_the_run_before_it_trains(
    tmp_path: Path, error: Exception, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*words: Any) -> None:
        raise error

    monkeypatch.setattr(PPOTrainer, "__init__", full)
    done = run(tmp_path, BEHAVIORS["ppo"], torch.device("cpu"))
    assert ending(done).exit_code == 2
    assert "behaviors.Line: its trainer does not fit in memory: " in ending(done).reason
    assert advice in ending(done).reason


def test_a_learner_in_the_callers_hands_computes_on_the_device_and_continues_on_the_cpu(
    tmp_path: Path, device: torch.device
) -> None:
    settings = {"behaviors": {"Line": dict(behavior())}}
    for number, place in enumerate((device, torch.device("cpu")), 1):
        with Learner(settings, "toy:line", tmp_path / "run", seed=1, num_envs=4, device=str(place)) as learner:
            losses = learner.run(2)
            assert learner.num_updates == 2 * number
            assert all(np.isfinite(value) for value in losses.values())
