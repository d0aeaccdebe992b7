"""The GPUs of this machine and the processes on them, from the NVIDIA driver."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import psutil

from rl_tui.engine.session.messages import Gpu, GpuProcess

SLOW_SECONDS = 0.5  # a driver that takes longer is queried again only after PATIENCE_SECONDS
PATIENCE_SECONDS = 30.0
MOST_PROCESSES = 32  # of one GPU: those with the most memory
LONGEST_NAME = 100


class GpuProbe:
    """Queries the NVIDIA driver. Used by one thread. Owns the connection to the driver, which the first query opens.

    gpu_index: torch's index of the CUDA device that trains, None on the CPU. It counts the devices that
    CUDA_VISIBLE_DEVICES shows, here in the driver's order: CUDA's own order is the same with equal cards or with
    CUDA_DEVICE_ORDER=PCI_BUS_ID. When the driver takes longer than SLOW_SECONDS, its last answer is kept and marked as
    stale.
    """

    def __init__(self, gpu_index: int | None = None):
        self._gpu_index = gpu_index
        self._nvml: ModuleType | None = None
        self._note = ""
        self._is_open = False
        self._last: tuple[Gpu, ...] = ()
        self._processes: dict[int, tuple[str, bool]] = {}  # by process id: name, and whether this run owns it
        self._patient_until = -math.inf

    def probe(self) -> tuple[tuple[Gpu, ...], str]:
        """Every GPU of this machine, and why there is none or why they are stale ("" otherwise)."""
        if not self._is_open:
            self._is_open = True
            self._open()
        if self._nvml is None or time.monotonic() < self._patient_until:
            return self._last, self._note
        began = time.monotonic()
        self._last, self._note = self._query_all(self._nvml)
        seconds = time.monotonic() - began
        if seconds > SLOW_SECONDS:
            self._patient_until = time.monotonic() + PATIENCE_SECONDS
            self._note = f"stale: the NVIDIA driver took {seconds:.1f} s"
        return self._last, self._note

    def close(self) -> None:
        """Disconnect from the driver; does nothing when there is none."""
        if self._nvml is not None:
            _query(self._nvml, self._nvml.nvmlShutdown)
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

    def _query_all(self, nvml: ModuleType) -> tuple[tuple[Gpu, ...], str]:
        try:
            handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        except nvml.NVMLError as error:
            return (), f"NVIDIA driver: {error}"
        uuids = [_as_text(_query(nvml, nvml.nvmlDeviceGetUUID, handle)) for handle in handles]
        in_use = position_in_use(self._gpu_index, uuids, os.environ)
        processes = self._describe([_memory_by_process(nvml, handle) for handle in handles])
        gpus = tuple(
            _gpu(nvml, index, handle, index == in_use, processes[index]) for index, handle in enumerate(handles)
        )
        return gpus, "" if gpus else "no NVIDIA GPU"

    def _describe(self, by_gpu: list[dict[int, int | None]]) -> list[tuple[GpuProcess, ...]]:
        """The processes of each GPU, most memory first; each is looked up once. by_gpu: bytes by process id.

        In a container the driver may use the process ids of its host: such processes have no name and are not ours.
        """
        self._processes = {pid: self._processes.get(pid) or _identify(pid) for memory in by_gpu for pid in memory}
        return [
            tuple(GpuProcess(pid, self._processes[pid][0], memory[pid], self._processes[pid][1]) for pid in memory)
            for memory in by_gpu
        ]


def position_in_use(gpu_index: int | None, uuids: list[str], environment: Mapping[str, str]) -> int | None:
    """The driver's position of torch's CUDA device `gpu_index`; None without one.

    CUDA_VISIBLE_DEVICES lists positions or prefixes of UUIDs; CUDA ignores everything from the first bad one on.
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
    def query(function: Callable[..., Any], *arguments: object) -> Any:
        return _query(nvml, function, handle, *arguments)

    utilization = query(nvml.nvmlDeviceGetUtilizationRates)
    # Version 2 leaves out what the driver reserves for itself, as nvidia-smi does; old drivers only have version 1.
    memory = query(nvml.nvmlDeviceGetMemoryInfo, nvml.nvmlMemory_v2) or query(nvml.nvmlDeviceGetMemoryInfo)
    power, limit = query(nvml.nvmlDeviceGetPowerUsage), query(nvml.nvmlDeviceGetEnforcedPowerLimit)
    temperature = query(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU)
    return Gpu(
        index=index,
        name=_as_text(query(nvml.nvmlDeviceGetName)) or f"GPU {index}",
        utilization_percent=None if utilization is None else float(utilization.gpu),
        memory_used_bytes=None if memory is None else int(memory.used),
        memory_total_bytes=None if memory is None else int(memory.total),
        temperature_celsius=None if temperature is None else float(temperature),
        power_watts=None if power is None else power / 1000,
        power_limit_watts=None if limit is None else limit / 1000,
        in_use=in_use,
        processes=processes,
    )


def _memory_by_process(nvml: ModuleType, handle: Any) -> dict[int, int | None]:
    """Bytes by process id, None where the driver does not say, of at most MOST_PROCESSES; {} when it fails."""
    memory: dict[int, int | None] = {}
    for kind in ("Compute", "Graphics"):
        for process in _running(nvml, handle, kind):  # one that does both is in both lists, with all its memory
            memory[process.pid] = max(memory.get(process.pid) or 0, process.usedGpuMemory or 0) or None
    largest = sorted(memory.items(), key=lambda item: (-(item[1] or 0), item[0]))
    return dict(largest[:MOST_PROCESSES])


def _running(nvml: ModuleType, handle: Any, kind: str) -> list[Any]:
    for version in ("v3", "v2"):  # drivers before 510 only have the second
        try:
            return list(getattr(nvml, f"nvmlDeviceGet{kind}RunningProcesses_{version}")(handle))
        except nvml.NVMLError_FunctionNotFound:
            continue
        except nvml.NVMLError:
            break
    return []


def _identify(pid: int) -> tuple[str, bool]:
    """The process's name, and whether it is this one or one of its descendants."""
    try:
        process = psutil.Process(pid)
        is_ours = os.getpid() in (pid, *(parent.pid for parent in process.parents()))
        return process.name()[:LONGEST_NAME], is_ours
    except (psutil.Error, OSError):  # it has ended, or is hidden from this process
        return "", False


def _query(nvml: ModuleType, function: Callable[..., Any], *arguments: object) -> Any:
    """The driver's answer; None when it cannot answer."""
    try:
        return function(*arguments)
    except nvml.NVMLError:
        return None


def _as_text(name: str | bytes | None) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name or ""
