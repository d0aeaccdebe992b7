"""GPUs, CPU, memory and disk."""

from __future__ import annotations

import math

from engine.session.messages import DevicesSampled, Gpu
from engine.session.text import safe_text
from tui.charts.bar import bar
from tui.glyphs import Glyphs
from tui.lines import Line, Span, Tone, line, pack
from tui.panes.base import Frame, Pane
from tui.text import fit, left, right, size

HOT_CELSIUS = 85.0
DISK_LOW_BYTES = 2 * 1024**3  # a few checkpoints of a large network and their temporary copies
NAME_WIDTH, BAR_WIDTH = 5, 10


class DevicesPane(Pane):
    """A line per GPU, or why there is none; then the machine."""

    seconds = math.inf

    def inputs(self, frame: Frame) -> object:
        """The newest sample."""
        return frame.view.devices

    def heading(self, frame: Frame) -> str:
        """Its name."""
        return "Devices"

    def wanted_height(self, frame: Frame, width: int) -> int:
        """Every GPU and the machine."""
        devices = frame.view.devices
        return 1 + max(1, len(devices.gpus)) if devices else 2

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """GPUs that the run uses come first when not all fit."""
        devices, glyphs = frame.view.devices, frame.glyphs
        if devices is None:
            return [line(Span(f" {glyphs.waiting} not sampled yet", "wait"))]
        machine = machine_lines(devices, glyphs, width)
        if not devices.gpus:
            note = f" {glyphs.dot} {safe_text(devices.gpu_note)}" if devices.gpu_note else ""
            return [*machine, line(" ", Span("CPU only"), Span(fit(note, width - 10, glyphs.ellipsis), "dim"))]
        gpus = sorted(devices.gpus, key=lambda gpu: (not gpu.in_use, gpu.index))
        room = max(1, height - len(machine))
        note_line = line(Span(f" {glyphs.warning} {safe_text(devices.gpu_note)}", "warning"))
        notes = [note_line] if devices.gpu_note else []
        return [*machine, *notes, *(gpu_line(gpu, glyphs, width) for gpu in gpus[: room - len(notes)])]


def machine_lines(devices: DevicesSampled, glyphs: Glyphs, width: int) -> list[Line]:
    """CPU, memory, the process and the disk, on one line or two."""
    cpu = line(*_bar("cpu", devices.cpu_percent, glyphs), Span(f" of {devices.num_cpus}", "dim"))
    memory = line(
        Span("ram ", "dim"),
        f"{size(devices.memory_used_bytes)}/{size(devices.memory_total_bytes)}",
    )
    process = line(Span("process ", "dim"), size(devices.process_memory_bytes))
    is_low = devices.disk_free_bytes < DISK_LOW_BYTES
    disk = line(
        Span(f"{glyphs.warning} disk " if is_low else "disk ", "warning" if is_low else "dim"),
        Span(size(devices.disk_free_bytes), "warning" if is_low else "text"),
        Span(" free", "dim"),
    )
    return [line(" ", *pack([cpu, memory, process, disk], width - 1))]


def gpu_line(gpu: Gpu, glyphs: Glyphs, width: int) -> Line:
    """One device; what its driver does not tell is left out."""
    used = gpu.utilization_percent
    parts = [line(*_bar(f"gpu{gpu.index}", used, glyphs))]
    if gpu.memory_used_bytes is not None and gpu.memory_total_bytes is not None:
        memory = f"{size(gpu.memory_used_bytes)}/{size(gpu.memory_total_bytes)}"
        parts.append(line(Span("mem ", "dim"), memory))
    if gpu.temperature_celsius is not None:
        tone: Tone = "warning" if gpu.temperature_celsius >= HOT_CELSIUS else "text"
        sign = f"{glyphs.warning} " if tone == "warning" else ""
        parts.append(line(Span(f"{sign}{gpu.temperature_celsius:.0f}C", tone)))
    if gpu.power_watts is not None:
        limit = f"/{gpu.power_limit_watts:.0f}" if gpu.power_limit_watts is not None else ""
        parts.append(line(f"{gpu.power_watts:.0f}{limit}W"))
    parts.append(line(Span("in use" if gpu.in_use else "idle", "good" if gpu.in_use else "dim")))
    parts.append(line(Span(fit(safe_text(gpu.name), 24, glyphs.ellipsis), "dim")))
    return line(" ", *pack(parts, width - 1))


def _bar(name: str, used_percent: float | None, glyphs: Glyphs) -> Line:
    if used_percent is None:
        return line(Span(left(name, NAME_WIDTH), "dim"), Span(" " * BAR_WIDTH + "  n/a", "dim"))
    shown = right(f"{used_percent:.0f}%", 5)
    return line(Span(left(name, NAME_WIDTH), "dim"), *bar(used_percent / 100, BAR_WIDTH, glyphs, "accent"), shown)
