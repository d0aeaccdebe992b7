"""On which devices a behavior updates and acts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch

from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.policies import CPU
from rl_tui.engine.running.device_trials import DeviceTrials, Timing
from rl_tui.engine.running.worker_advice import in_words
from rl_tui.engine.session.messages import LogLevel
from rl_tui.engine.session.text import counted
from rl_tui.engine.storage.device_choices import DeviceKinds, read_device_choices, write_device_choice
from rl_tui.engine.storage.run_folder import RunFolder

SECONDS = 3.0  # for all behaviors of a file together, besides the first use of a GPU
UPDATING, ACTING = 0.15, 0.08  # of these, for each device; the rest is for making what is timed
GAIN = 1.1  # times as fast as the CPU: a device that gains less would only use its memory

Log: TypeAlias = Callable[[LogLevel, str], object]
_Measure: TypeAlias = Callable[[torch.device, float, float | None], Timing]


class Devices(NamedTuple):
    """updates: of the trainer. acts: of the policies that collect, unless they do so in worker processes."""

    updates: torch.device = CPU
    acts: torch.device = CPU

    @property
    def kinds(self) -> DeviceKinds:
        """What a run stores."""
        return DeviceKinds(self.updates.type, self.acts.type)


@dataclass(frozen=True, slots=True)
class Tasks:
    """What a behavior does in this process: whether it updates, and how many agents act together; 0 for none."""

    updates: bool
    num_agents: int


def named_devices(device: torch.device, layout: FeatureLayout, tasks: Tasks) -> Devices:
    """Where the file names the device: updates are there, and acting where there are images; a handful of numbers
    reaches the CPU faster."""
    has_images = any(observation.kind == "image" for observation in layout.others)
    return Devices(device, device if has_images and tasks.num_agents else CPU)


def choose_devices(
    behavior: str, device: torch.device, folder: RunFolder, tasks: Tasks, trials: DeviceTrials, seconds: float, log: Log
) -> Devices:
    """Of a behavior whose device is chosen: those that an earlier process of the run chose, where they are there, else
    the fastest of the CPU and `device`, which are stored.

    device: what torch finds besides the CPU; the CPU where it finds nothing: then there is no choice, and nothing to
    time.
    """
    kept = read_device_choices(folder.device_choices).get(behavior) if folder.is_resumed else None
    missing = {kept.updates, kept.acts} - {CPU.type, device.type} if kept is not None else set()
    if kept is not None and not missing:
        devices = on_device(kept, device, tasks)
        log("info", f"updates on {devices.updates}, acts on {devices.acts}, as this run has chosen")
        return devices
    if device == CPU:
        if missing:
            log("info", f"updates and acts on cpu: torch finds no {' or '.join(missing)} here, which this run has used")
        return Devices()
    devices = fastest_devices(device, tasks, trials, seconds, log)
    if tasks.updates:
        try:
            write_device_choice(folder.device_choices, behavior, devices.kinds)
        except OSError as error:
            log("warning", f"{folder.device_choices}: cannot be written ({error.strerror}); --resume will choose again")
    return devices


def on_device(kinds: DeviceKinds, device: torch.device, tasks: Tasks) -> Devices:
    """Devices of these kinds, each the CPU or `device`, for what the behavior does in this process."""
    updates = device if tasks.updates and kinds.updates == device.type else CPU
    return Devices(updates, device if tasks.num_agents and kinds.acts == device.type else CPU)


def fastest_devices(device: torch.device, tasks: Tasks, trials: DeviceTrials, seconds: float, log: Log) -> Devices:
    """The faster of the CPU and this device, apart for updates and for acting; the figures are logged.

    seconds: for all that is timed, besides the first use of a GPU. A device on which it fails has lost.
    """
    said, candidates = [], (device, CPU)
    updates = acts = CPU
    if tasks.updates:
        timings = _timed(trials.time_updates, candidates, seconds * UPDATING, log)
        updates = _fastest(timings)
        said.append(f"updates on {updates} ({_figures(timings, updates, 'a mini-batch')})")
    if tasks.num_agents:
        timings = _timed(trials.time_acting, candidates, seconds * ACTING, log)
        acts = _fastest(timings)
        unit = f"a step of {counted(tasks.num_agents, 'agent')}"
        said.append(f"acts on {acts} ({_figures(timings, acts, unit)})")
    if said:
        log("info", ", ".join(said))
    return Devices(updates, acts)


def _timed(measure: _Measure, candidates: Sequence[torch.device], limit: float, log: Log) -> dict[torch.device, Timing]:
    timings: dict[torch.device, Timing] = {}
    for device in candidates:
        best = min((timing.seconds for timing in timings.values()), default=math.inf)
        timings[device] = timing = measure(device, limit, best if math.isfinite(best) else None)
        if timing.failure:
            log("warning", f"{device} could not be timed, and is not used: {timing.failure}")
    return timings


def _fastest(timings: Mapping[torch.device, Timing]) -> torch.device:
    """The CPU, unless another one is clearly faster."""
    seconds = {device: timing.seconds * (1 if device == CPU else GAIN) for device, timing in timings.items()}
    return min(seconds, key=lambda device: (seconds[device], device != CPU))


def _figures(timings: Mapping[torch.device, Timing], chosen: torch.device, unit: str) -> str:
    """Of the chosen one first: "3.1 ms a mini-batch; cpu 21.0 ms"."""
    others = [f"{device} {_in_words(timing)}" for device, timing in timings.items() if device != chosen]
    return "; ".join([f"{_in_words(timings[chosen])} {unit}", *others])


def _in_words(timing: Timing) -> str:
    if timing.failure:
        return "failed"
    return f"about {in_words(timing.seconds)}" if timing.is_estimate else in_words(timing.seconds)
