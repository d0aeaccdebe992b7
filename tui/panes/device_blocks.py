"""Every device by itself: how busy it has been, and the processes on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from rl_tui.engine.session.messages import DevicesSampled, Gpu, GpuProcess
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.charts.percent import bar, percent_chart, time_span
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, line, padded
from rl_tui.tui.drawing.text import duration, left, right, size
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.blocks import Block, BlocksPane
from rl_tui.tui.panes.devices import DISK_LOW_BYTES, gpu_line
from rl_tui.tui.panes.list import Entry, plain

LEAST_ROWS, MOST_ROWS = 3, 8  # of a chart beside others
LAST_SECONDS = 3600.0


class DevicesList(BlocksPane):
    """A block per GPU, then the machine's. alone: the key of the only block that is shown, large; "" for all."""

    topic = "devices"
    seconds = math.inf

    def __init__(self) -> None:
        super().__init__()
        self.alone = ""
        self._room = 0  # lines of the whole list, when it was drawn last
        self._rows = LEAST_ROWS  # of each chart then

    def inputs(self, frame: Frame) -> object:
        """The newest sample."""
        return super().inputs(frame), frame.view.devices, self.alone

    def heading(self, frame: Frame) -> str:
        """The time that the charts show."""
        return f"Devices {frame.glyphs.dot} last {duration(self._span(frame))}"

    def empty(self, frame: Frame) -> str:
        """Before the first sample."""
        return f"{frame.glyphs.waiting} no sample yet"

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """A block that stands alone takes all of the height."""
        self._room = height
        return super().lines(frame, width, height)

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """GPUs, or why there is none; CPU, memory, disk."""
        devices = frame.view.devices
        if devices is None:
            return []
        gpus: list[Entry] = [self._gpu(gpu, frame) for gpu in devices.gpus]
        if devices.gpu_note or not gpus:
            gpus.insert(0, _note(devices, frame.glyphs))
        machine = _machine(devices, frame.glyphs)
        self._rows = _rows(self._room, len(gpus) + len(machine), len(devices.gpus) + 2)
        blocks = [*gpus, *(self._machine(key, first, frame) for key, first in machine.items())]
        return [block for block in blocks if self.alone in ("", block.key)] or blocks

    def _gpu(self, gpu: Gpu, frame: Frame) -> Block:
        draw = partial(gpu_line, gpu, frame.glyphs)
        return self._block(f"gpu {gpu.index}", gpu_words(gpu), draw, gpu.processes, frame)

    def _machine(self, key: str, first: Line, frame: Frame) -> Block:
        return self._block(key, " ".join(plain(first).split()), lambda _: first, None, frame)

    def _block(
        self, key: str, text: str, draw: Callable[[int], Line], processes: Sequence[GpuProcess] | None, frame: Frame
    ) -> Block:
        """processes: None where none can be."""
        return Block(key, text, draw, partial(self._rest, key, processes, frame))

    def _rest(self, key: str, processes: Sequence[GpuProcess] | None, frame: Frame, width: int) -> list[Line]:
        """The history, and the processes beside it, or below it where the block stands alone."""
        process_width = 30 if width < 100 else 44
        most = max(2, self._room // 2) if self.alone else self._rows
        rows = [] if processes is None else process_lines(processes, process_width, most, frame.glyphs)
        if self.alone:
            below = [line("  ", *spans) for spans in rows]
            return [*self._chart(key, frame, width, self._room - 1 - len(below)), *below]
        if not rows:
            return self._chart(key, frame, width, self._rows)
        return beside(self._chart(key, frame, width - process_width - 2, self._rows), rows, width - process_width)

    def _chart(self, key: str, frame: Frame, width: int, height: int) -> list[Line]:
        history = frame.view.device_histories.get(key)
        if history is None:
            return []
        return percent_chart(history, frame.time, self._span(frame), width, height, frame.glyphs)

    def _span(self, frame: Frame) -> float:
        began = min((history.times[0] for history in frame.view.device_histories.values() if len(history)), default=0.0)
        return time_span(frame.time - began if began else 0.0, math.inf if self.alone else LAST_SECONDS)


def beside(these: Sequence[Line], those: Sequence[Line], width: int) -> list[Line]:
    """The lines in two columns; `these` get `width` cells."""
    height = max(len(these), len(those))
    rows = [(*these, *[()] * height)[:height], (*those, *[()] * height)[:height]]
    return [line(*padded(one, width), *other) for one, other in zip(*rows, strict=True)]


def gpu_words(gpu: Gpu) -> str:
    """All that is known of it and the processes on it, to be searched and copied."""
    parts = [
        f"gpu {gpu.index} {safe_text(gpu.name)}",
        "" if gpu.utilization_percent is None else f"{gpu.utilization_percent:.0f}%",
        "" if gpu.memory_used_bytes is None else f"memory {size(gpu.memory_used_bytes)}",
        "" if gpu.memory_total_bytes is None else f"of {size(gpu.memory_total_bytes)}",
        "" if gpu.temperature_celsius is None else f"{gpu.temperature_celsius:.0f}C",
        "" if gpu.power_watts is None else f"{gpu.power_watts:.0f}W",
        *(f"{process.pid} {safe_text(process.name)}" for process in gpu.processes),
    ]
    return ", ".join(part for part in parts if part)


def process_lines(processes: Sequence[GpuProcess], width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """A line each; where they are more than `height`, the last line counts the rest."""
    if not processes:
        return [line(Span("no process", "dim"))]
    shown = processes if len(processes) <= height else processes[: height - 1]
    rows = [process_line(process, width, glyphs) for process in shown]
    left_out = len(processes) - len(shown)
    return [*rows, line(Span(f"{'':7} and {left_out} more", "dim"))] if left_out else rows


def process_line(process: GpuProcess, width: int, glyphs: Glyphs) -> Line:
    """Whose memory it is, and how much."""
    memory = "n/a" if process.memory_used_bytes is None else size(process.memory_used_bytes)
    whose = " this run" if process.is_ours else ""
    name = left(safe_text(process.name) or "-", width - 8 - 6 - len(whose), glyphs.ellipsis)
    return line(Span(f"{process.pid:>7} ", "dim"), name, right(memory, 6), Span(whose, "good"))


def _rows(room: int, num_blocks: int, num_charts: int) -> int:
    """How high each chart may be so that all of them are visible, if that can be."""
    return max(LEAST_ROWS, min(MOST_ROWS, (room - num_blocks) // num_charts))


def _note(devices: DevicesSampled, glyphs: Glyphs) -> Entry:
    note = safe_text(devices.gpu_note)
    if devices.gpus:
        words = line(Span(f" {glyphs.warning} {note}", "warning"))
    else:
        words = line(" CPU only", Span(f" {glyphs.dot} {note}" if note else "", "dim"))
    return Entry("gpu note", plain(words).strip(), lambda _: words)


def _machine(devices: DevicesSampled, glyphs: Glyphs) -> dict[str, Line]:
    """By key: what is known of the machine."""
    used, total = devices.memory_used_bytes, devices.memory_total_bytes
    free, disk = devices.disk_free_bytes, devices.disk_total_bytes
    is_low = free < DISK_LOW_BYTES
    processor = line(f"of {devices.num_cpus} CPUs")
    memory = line(f"{size(used)} of {size(total)}", Span("   this run ", "dim"), size(devices.process_memory_bytes))
    space = line(
        Span(f"{glyphs.warning} only " if is_low else "", "warning"),
        Span(size(free), "warning" if is_low else "text"),
        f" free of {size(disk)}",
    )
    return {
        "cpu": _used("cpu", devices.cpu_percent, processor, glyphs),
        "memory": _used("ram", 100 * used / max(total, 1), memory, glyphs),
        "disk": _used("disk", 100 * (disk - free) / max(disk, 1), space, glyphs),
    }


def _used(name: str, percent: float, words: Line, glyphs: Glyphs) -> Line:
    shown = bar(percent / 100, 10, glyphs, "accent")
    return line(" ", Span(left(name, 5), "dim"), *shown, right(f"{percent:.0f}%", 5), "   ", *words)
