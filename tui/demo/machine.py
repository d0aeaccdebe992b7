"""The machine that the demo pretends to run on."""

from __future__ import annotations

from random import Random

from rl_tui.engine.session.messages import DevicesSampled, Gpu, GpuProcess
from rl_tui.tui.demo.policy import approach

GIB = 1024**3
OURS, OTHER = 41_207, 9_313  # process ids


class Machine:
    """Two H200, the run on the first of them; 16 cores. Owns temperatures, memory and free space as they develop."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._celsius = [58.0, 41.0]
        self._memory = 38.0  # GiB
        self._disk = 402.0  # GiB free

    def write(self, size_bytes: int) -> None:
        """So much more is on disk; negative when files were removed."""
        self._disk = max(0.0, self._disk - size_bytes / GIB)

    def sample(self, busy: int, seconds: float) -> DevicesSampled:
        """The machine `seconds` after the last sample. busy: how many behaviors learn now."""
        chance = self._chance
        gpus = (self._gpu(0, busy, seconds), self._gpu(1, 0, seconds))
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
        if index == 0:
            process = GpuProcess(OURS, "rl-tui", int((3.2 + 9.4 * num_learning) * GIB), True)
        else:
            process = GpuProcess(OTHER, "python", int(11.5 * GIB), False)
        return Gpu(
            index=index,
            name="NVIDIA H200",
            utilization_percent=percent,
            memory_used_bytes=process.memory_used_bytes,
            memory_total_bytes=139 * GIB,
            temperature_celsius=round(self._celsius[index] + chance.uniform(-0.4, 0.4)),
            power_watts=70 + 5.6 * percent,
            power_limit_watts=700.0,
            in_use=index == 0,
            processes=(process,),
        )
