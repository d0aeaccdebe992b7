"""What the NVIDIA driver tells about its GPUs."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from rl_tui.engine.running.machine.gpu_processes import ProcessNames, memory_by_process
from rl_tui.engine.session.messages import Gpu, GpuProcess

SLOW_SECONDS = 0.5  # a driver that takes longer is asked again only after PATIENCE_SECONDS
PATIENCE_SECONDS = 30.0


class GpuProbe:
    """Asks the NVIDIA driver. Used by one thread. Owns the connection to the driver, made at the first question.

    gpu_index: torch's index of the CUDA device that trains, None on the CPU. It counts the devices that
    CUDA_VISIBLE_DEVICES shows, here in the driver's order: CUDA's own order is the same with equal cards or with
    CUDA_DEVICE_ORDER=PCI_BUS_ID. A driver that takes longer than SLOW_SECONDS leaves its last answer standing, marked
    as stale.
    """

    def __init__(self, gpu_index: int | None = None):
        self._gpu_index = gpu_index
        self._nvml: ModuleType | None = None
        self._note = ""
        self._is_open = False
        self._last: tuple[Gpu, ...] = ()
        self._names = ProcessNames()
        self._patient_until = -math.inf

    def probe(self) -> tuple[tuple[Gpu, ...], str]:
        """Every GPU of this machine, and why there is none or why they are old news ("" when all is well)."""
        if not self._is_open:
            self._is_open = True
            self._open()
        if self._nvml is None or time.monotonic() < self._patient_until:
            return self._last, self._note
        began = time.monotonic()
        self._last, self._note = self._ask_all(self._nvml)
        seconds = time.monotonic() - began
        if seconds > SLOW_SECONDS:
            self._patient_until = time.monotonic() + PATIENCE_SECONDS
            self._note = f"stale: the NVIDIA driver took {seconds:.1f} s"
        return self._last, self._note

    def close(self) -> None:
        """Leave the driver; harmless when there is none."""
        if self._nvml is not None:
            _answer(self._nvml, self._nvml.nvmlShutdown)
            self._nvml, self._note = None, "closed"

    def _open(self) -> None:
        try:
            import pynvml
        except ImportError:
            self._note = "nvidia-ml-py is not installed"
            return
        try:
            pynvml.nvmlInit()
        except (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_DriverNotLoaded):
            self._note = "no NVIDIA driver"
        except pynvml.NVMLError as error:
            self._note = f"NVIDIA driver: {error}"
        else:
            self._nvml = pynvml

    def _ask_all(self, nvml: ModuleType) -> tuple[tuple[Gpu, ...], str]:
        try:
            handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        except nvml.NVMLError as error:
            return (), f"NVIDIA driver: {error}"
        uuids = [_as_text(_answer(nvml, nvml.nvmlDeviceGetUUID, handle)) for handle in handles]
        mine = position_in_use(self._gpu_index, uuids, os.environ)
        processes = self._names.described([memory_by_process(nvml, handle) for handle in handles])
        gpus = tuple(_gpu(nvml, index, handle, index == mine, processes[index]) for index, handle in enumerate(handles))
        return gpus, "" if gpus else "no NVIDIA GPU"


def position_in_use(gpu_index: int | None, uuids: list[str], environment: Mapping[str, str]) -> int | None:
    """The driver's position of torch's CUDA device `gpu_index`; None without one.

    CUDA_VISIBLE_DEVICES lists positions or beginnings of UUIDs; CUDA ignores everything from the first bad one on.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if gpu_index is None:
        return None
    if visible is None:
        return gpu_index if gpu_index < len(uuids) else None
    positions: list[int] = []
    for name in (entry.strip() for entry in visible.split(",")):
        if name.isdigit() and int(name) < len(uuids):
            positions.append(int(name))
            continue
        matches = [position for position, uuid in enumerate(uuids) if name and uuid.startswith(name)]
        if len(matches) != 1:
            break
        positions.append(matches[0])
    return positions[gpu_index] if gpu_index < len(positions) else None


def _gpu(nvml: ModuleType, index: int, handle: Any, in_use: bool, processes: tuple[GpuProcess, ...]) -> Gpu:
    def ask(function: Callable[..., Any], *arguments: object) -> Any:
        return _answer(nvml, function, handle, *arguments)

    utilization = ask(nvml.nvmlDeviceGetUtilizationRates)
    # Version 2 leaves out what the driver keeps for itself, as nvidia-smi does; old drivers know only version 1.
    memory = ask(nvml.nvmlDeviceGetMemoryInfo, nvml.nvmlMemory_v2) or ask(nvml.nvmlDeviceGetMemoryInfo)
    power, limit = ask(nvml.nvmlDeviceGetPowerUsage), ask(nvml.nvmlDeviceGetEnforcedPowerLimit)
    temperature = ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU)
    return Gpu(
        index=index,
        name=_as_text(ask(nvml.nvmlDeviceGetName)) or f"GPU {index}",
        utilization_percent=None if utilization is None else float(utilization.gpu),
        memory_used_bytes=None if memory is None else int(memory.used),
        memory_total_bytes=None if memory is None else int(memory.total),
        temperature_celsius=None if temperature is None else float(temperature),
        power_watts=None if power is None else power / 1000,
        power_limit_watts=None if limit is None else limit / 1000,
        in_use=in_use,
        processes=processes,
    )


def _answer(nvml: ModuleType, function: Callable[..., Any], *arguments: object) -> Any:
    """What the driver answers; None where it cannot tell."""
    try:
        return function(*arguments)
    except nvml.NVMLError:
        return None


def _as_text(name: str | bytes | None) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name or ""
