"""The machine that the demo pretends to run on."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from engine.session.messages import DevicesSampled, Gpu, GpuProcess
from tui.demo.policy import approach

GIB = 1024**3
OURS, OTHER = 41_207, 9_313  # process ids


class Machine:
    """Two H200, 16 cores. Owns temperatures, memory and the disk's free space as they develop."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._celsius = [58.0, 41.0]
        self._memory = 38.0  # GiB
        self._disk = 402.0  # GiB free

    def write(self, size_bytes: int) -> None:
        """So much more is on disk; negative when files were removed."""
        self._disk = max(0.0, self._disk - size_bytes / GIB)

    def sample(self, load: Mapping[int, int], seconds: float) -> DevicesSampled:
        """The machine `seconds` after the last sample. load: how many behaviors learn on each GPU now."""
        chance, busy = self._chance, sum(load.values())
        gpus = tuple(self._gpu(index, load.get(index, 0), seconds) for index in range(2))
        self._memory = approach(self._memory, 30.0 + 6.0 * busy, seconds / 60) + chance.gauss(0, 0.05)
        return DevicesSampled(
            gpus=gpus,
            gpu_note="",
            cpu_percent=min(99.0, 4 + 16 * busy + chance.uniform(-3, 3)),
            num_cpus=16,
            memory_used_bytes=int(min(118.0, self._memory) * GIB),
            memory_total_bytes=128 * GIB,
            process_memory_bytes=int((1.4 + 1.9 * busy) * GIB),
            disk_free_bytes=int(self._disk * GIB),
            disk_total_bytes=915 * GIB,
        )

    def _gpu(self, index: int, num_learning: int, seconds: float) -> Gpu:
        chance = self._chance
        wanted = 1.0 + min(92.0, 44.0 * num_learning**0.7)
        percent = max(0.0, min(100.0, wanted + chance.gauss(0, 5 if num_learning else 0.6)))
        self._celsius[index] = approach(self._celsius[index], 36 + 0.33 * wanted, seconds / 45)
        ours = int((3.2 + 13.6 * num_learning) * GIB)
        processes = [GpuProcess(OURS + index, "rl-tui", ours, True)]
        if index == 1:
            processes.append(GpuProcess(OTHER, "python", int(11.5 * GIB), False))
        return Gpu(
            index=index,
            name="NVIDIA H200",
            utilization_percent=percent,
            memory_used_bytes=sum(process.memory_used_bytes or 0 for process in processes),
            memory_total_bytes=139 * GIB,
            temperature_celsius=round(self._celsius[index] + chance.uniform(-0.4, 0.4)),
            power_watts=70 + 5.6 * percent,
            power_limit_watts=700.0,
            in_use=num_learning > 0,
            processes=tuple(processes),
        )
