"""`torch_settings.device: auto`: a behavior is timed, updates and acts on the faster device, and keeps it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from rl_tui import Learner
from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.actor_trainer import ActorTrainer
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.policies import TorchPolicy
from rl_tui.engine.running.device_choice import Devices, Tasks, fastest_devices, named_devices
from rl_tui.engine.running.device_trials import DeviceTrials, Timing
from rl_tui.engine.session.messages import CheckpointSaved, LogEmitted, RunStarted, Stop
from rl_tui.engine.specs import ObservationSpec
from rl_tui.engine.storage.device_choices import DeviceKinds, read_device_choices, write_device_choice
from tests.pretended_device import DEVICE, PretendedDevice
from tests.running.runs import LiveRun, behavior, configuration, ending, equal, live, run_to_end, tensors_of

CPU = torch.device("cpu")
ON_GPU, ON_CPU = Timing(0.0031), Timing(0.021)
FULL = Timing(failure="CUDA out of memory. Tried to allocate 2.00 GiB.")
BOTH = Tasks(updates=True, num_agents=16)
AUTO = {"device": "auto"}
Script = Mapping[str, Mapping[torch.device, Timing]]
GPU_UPDATES: Script = {
    "updates": {DEVICE: ON_GPU, CPU: ON_CPU},
    "acting": {DEVICE: Timing(0.0009), CPU: Timing(0.0003)},
}
GPU_ACTS: Script = {"updates": {DEVICE: ON_CPU, CPU: ON_GPU}, "acting": {DEVICE: ON_GPU, CPU: ON_CPU}}


class Scripted(DeviceTrials):
    """Takes as long as a script says."""

    def __init__(self, script: Script):
        self._script = script
        self.asked: list[tuple[str, torch.device]] = []

    def time_updates(self, device: torch.device, limit: float, best: float | None = None) -> Timing:
        self.asked.append(("updates", device))
        return self._script["updates"][device]

    def time_acting(self, device: torch.device, limit: float, best: float | None = None) -> Timing:
        self.asked.append(("acting", device))
        return self._script["acting"][device]


def chosen(script: Script, tasks: Tasks = BOTH) -> tuple[Devices, list[str]]:
    lines: list[str] = []
    found = fastest_devices(DEVICE, tasks, Scripted(script), 3.0, lambda level, text: lines.append(f"{level}: {text}"))
    return found, lines


def test_updates_and_acting_have_the_faster_device_each_and_the_figures_are_logged() -> None:
    found, lines = chosen(GPU_UPDATES)
    assert found == Devices(DEVICE, CPU)
    updates = "updates on cuda:99 (3.1 ms a mini-batch; cpu 21.0 ms)"
    assert lines == [f"info: {updates}, acts on cpu (300 us a step of 16 agents; cuda:99 900 us)"]
    assert chosen(GPU_ACTS)[0] == Devices(CPU, DEVICE)


def test_a_gain_that_is_not_clear_leaves_it_on_the_cpu() -> None:
    close = {DEVICE: Timing(0.020), CPU: ON_CPU}
    assert chosen({"updates": close, "acting": close})[0] == Devices(CPU, CPU)


def test_an_estimate_says_so() -> None:
    script = {"updates": {DEVICE: ON_GPU, CPU: Timing(2.5, is_estimate=True)}, "acting": GPU_UPDATES["acting"]}
    found, lines = chosen(script)
    assert found.updates == DEVICE
    assert "(3.1 ms a mini-batch; cpu about 2500.0 ms)" in lines[0]


@pytest.mark.parametrize("other", [CPU, DEVICE])
def test_a_device_that_fails_has_lost(other: torch.device) -> None:
    failed = DEVICE if other == CPU else CPU
    found, lines = chosen({"updates": {other: ON_CPU, failed: FULL}, "acting": {other: ON_CPU, failed: FULL}})
    assert found == Devices(other, other)
    why = f"warning: {failed} could not be timed, and is not used: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert lines[:2] == [why, why]
    assert f"{failed} failed)" in lines[2]


def test_where_both_fail_the_error_is_left_to_the_start() -> None:
    both = {CPU: FULL, DEVICE: FULL}
    assert chosen({"updates": both, "acting": both})[0] == Devices(CPU, CPU)


def test_only_what_it_does_is_timed() -> None:
    for tasks, expected in ((Tasks(True, 0), {"updates"}), (Tasks(False, 3), {"acting"}), (Tasks(False, 0), set())):
        trials = Scripted(GPU_ACTS)
        fastest_devices(DEVICE, tasks, trials, 3.0, lambda *_: None)
        assert {what for what, _ in trials.asked} == expected


@pytest.mark.parametrize(
    ("shape", "acts"), [((4,), CPU), ((5, 3), CPU), ((36, 36, 3), DEVICE), ((4, 4, 1), CPU), (None, CPU)]
)
def test_a_named_device_updates_and_acts_where_there_are_images(
    shape: tuple[int, ...] | None, acts: torch.device
) -> None:
    seen = ObservationSpec("seen", shape or (36, 36, 3))
    tasks = Tasks(updates=True, num_agents=0 if shape is None else 2)
    found = named_devices(DEVICE, FeatureLayout.of((seen,), NetworkSettings()), tasks)
    assert found == Devices(DEVICE, acts)


def test_the_file_of_choices_is_read_again_and_worth_nothing_when_broken(tmp_path: Path) -> None:
    path = tmp_path / "devices.json"
    assert read_device_choices(path) == {}
    write_device_choice(path, "A", DeviceKinds("cuda", "cpu"))
    write_device_choice(path, "B", DeviceKinds())
    assert read_device_choices(path) == {"A": DeviceKinds("cuda", "cpu"), "B": DeviceKinds("cpu", "cpu")}
    for broken in (b"{", b"[1]", b'{"A": 3}', b'{"A": {"updates": "cpu"}}', b"\xff"):
        path.write_bytes(broken)
        assert read_device_choices(path) == {}


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedDevice]:
    """torch finds a GPU, a pretended one."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with PretendedDevice().everywhere() as device:
        yield device


@pytest.fixture
def policies(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Where each policy that a trainer has made updates and acts."""
    found, make = [], ActorTrainer.make_policy

    def noted(self: Any, *words: Any, **more: Any) -> Any:
        policy = make(self, *words, **more)
        acts = policy._device if isinstance(policy, TorchPolicy) else CPU
        found.append((torch.as_tensor(self._network.parameters).device.type, acts.type))
        return policy

    monkeypatch.setattr(ActorTrainer, "make_policy", noted)
    return found


def play(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """Timings are as the script says."""
    trials = Scripted(script)
    monkeypatch.setattr(DeviceTrials, "time_updates", lambda _, *words: trials.time_updates(*words))
    monkeypatch.setattr(DeviceTrials, "time_acting", lambda _, *words: trials.time_acting(*words))


def no_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> Timing:
        raise AssertionError("nothing is timed")

    monkeypatch.setattr(DeviceTrials, "time_updates", never)
    monkeypatch.setattr(DeviceTrials, "time_acting", never)


def run(folder: Path, max_steps: int = 128, device: str | None = "auto", **checkpoints: Any) -> LiveRun:
    settings = {"Line": behavior(max_steps=max_steps)}
    more = {"torch_settings": {"device": device}, "checkpoint_settings": checkpoints}
    done = run_to_end(configuration(folder, settings, **more))
    assert ending(done).exit_code == 0, done.recent_events()
    return done


def lines_of(done: LiveRun) -> list[str]:
    return [event.message for event in done.of(LogEmitted) if event.source == "Line" and "on c" in event.message]


def test_a_run_stores_its_choice_and_keeps_it_when_it_is_resumed(
    tmp_path: Path, gpu: PretendedDevice, policies: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    play(GPU_UPDATES, monkeypatch)
    first = run(tmp_path)
    assert first.of(RunStarted)[0].device == "auto"
    assert lines_of(first)[0].startswith("updates on cuda:99 (3.1 ms a mini-batch; cpu 21.0 ms), acts on cpu (300 us ")
    assert json.loads((first.folder / "run_logs/devices.json").read_text()) == {
        "Line": {"updates": "cuda", "acts": "cpu"}
    }
    assert policies[0] == ("cuda", "cpu")
    policies.clear()
    no_timing(monkeypatch)
    second = run(tmp_path, 256, resume=True)
    assert lines_of(second) == ["updates on cuda:99, acts on cpu, as this run has chosen"]
    assert policies[0] == ("cuda", "cpu")
    policies.clear()
    run(tmp_path, 384, "cpu", resume=True)
    assert policies[0] == ("cpu", "cpu"), "what is named wins"
    play(GPU_ACTS, monkeypatch)
    policies.clear()
    again = run(tmp_path, force=True)
    assert lines_of(again)[0].startswith("updates on cpu (3.1 ms "), "a new run chooses again"
    assert policies[0] == ("cpu", "cuda")


def test_without_the_device_a_resumed_run_goes_on_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, PretendedDevice().everywhere():
        patch.setattr(torch.cuda, "is_available", lambda: True)
        play(GPU_UPDATES, patch)
        stored = run(tmp_path).folder / "run_logs/devices.json"
    kept = stored.read_bytes()
    no_timing(monkeypatch)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    resumed = run(tmp_path, 256, resume=True)
    assert lines_of(resumed) == ["updates and acts on cpu: torch finds no cuda here, which this run has used"]
    assert stored.read_bytes() == kept, "it may be there again the next time"


def test_without_a_gpu_nothing_is_timed_logged_or_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_timing(monkeypatch)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    done = run(tmp_path, device=None)
    assert done.of(RunStarted)[0].device == "cpu"
    assert lines_of(done) == []
    assert not (done.folder / "run_logs/devices.json").exists()
    assert "device: auto" in (done.folder / "configuration.yaml").read_text()


def test_a_run_on_the_device_that_was_chosen_is_the_one_on_the_device_that_was_named(
    tmp_path: Path, gpu: PretendedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit, although trainers were made and timed before."""
    monkeypatch.setattr("rl_tui.engine.running.device_choice.GAIN", 1e9)  # the CPU
    monkeypatch.setattr("rl_tui.engine.running.device_choice.SECONDS", 0.2)
    checkpoints = []
    for folder, device in (("a", "auto"), ("b", "auto"), ("c", "cpu")):
        (tmp_path / folder).mkdir()
        done = run(tmp_path / folder, device=device)
        checkpoints.append(tensors_of(Path(done.of(CheckpointSaved)[-1].path)))
        assert len(lines_of(done)) == (device == "auto")
    assert equal(checkpoints[0], checkpoints[1])
    assert equal(checkpoints[0], checkpoints[2])


def test_agents_that_act_in_workers_are_not_timed(
    tmp_path: Path, gpu: PretendedDevice, monkeypatch: pytest.MonkeyPatch, warm_workers: None
) -> None:
    play({"updates": GPU_ACTS["updates"], "acting": {}}, monkeypatch)
    settings = configuration(
        tmp_path, {"Line": behavior(max_steps=128)}, torch_settings=AUTO, env_settings={"num_workers": 1}
    )
    done = run_to_end(settings)
    assert ending(done).exit_code == 0, done.recent_events()
    assert lines_of(done) == ["updates on cpu (3.1 ms a mini-batch; cuda:99 21.0 ms)"]


def test_a_choice_that_cannot_be_stored_is_used_all_the_same(
    tmp_path: Path, gpu: PretendedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(GPU_UPDATES, monkeypatch)

    def refused(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rl_tui.engine.running.device_choice.write_device_choice", refused)
    done = run(tmp_path)
    (line,) = [event.message for event in done.of(LogEmitted) if "devices.json" in event.message]
    assert line.endswith("devices.json: cannot be written (No space left on device); --resume will choose again")


def test_a_gpu_that_torch_finds_and_cannot_use_leaves_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_timing(monkeypatch)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    if torch.cuda.device_count():
        pytest.skip("torch can use the GPU")
    done = run(tmp_path)
    (line,) = [event.message for event in done.of(LogEmitted) if "is not available" in event.message]
    assert line.startswith("cuda is not available: ")
    assert line.endswith("; all is computed on the CPU")


def test_a_run_that_only_plays_times_acting_and_stores_nothing(
    tmp_path: Path, gpu: PretendedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_timing(monkeypatch)
    folder = run(tmp_path, device="cpu").folder
    play({"updates": {}, "acting": GPU_ACTS["acting"]}, monkeypatch)
    config = configuration(
        tmp_path,
        {"Line": behavior(max_steps=128)},
        torch_settings=AUTO,
        checkpoint_settings={"resume": True, "inference": True},
    )
    with live(config) as played:
        played.wait_for(LogEmitted, lambda event: event.message.startswith("acts on cuda:99 ("))
        played.send(Stop("now"))
        played.wait()
    assert not (folder / "run_logs/devices.json").exists()


def test_a_learner_of_a_program_chooses_too(
    tmp_path: Path, gpu: PretendedDevice, policies: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    play(GPU_UPDATES, monkeypatch)
    with Learner({"behaviors": {"Line": behavior()}}, "toy:line", tmp_path / "a") as learner:
        learner.run(1)
    assert policies[0] == ("cuda", "cpu")
