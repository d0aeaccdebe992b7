"""GPUs, CPU, memory and disk; of a run on several machines, those of each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rl_tui.engine.session.history import History
from rl_tui.engine.session.messages import DevicesSampled, Gpu
from rl_tui.engine.session.ranks_view import Machine
from rl_tui.engine.session.text import counted, safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.charts.arrays import np
from rl_tui.tui.charts.percent import bar
from rl_tui.tui.charts.sparkline import by_time, sparkline
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, cells, line, pack, padded
from rl_tui.tui.drawing.text import fit, fit_path, left, num_cells, right, size
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.rank_words import short_hosts

HOT_CELSIUS = 85.0
DISK_LOW_BYTES = 2 * 1024**3  # a few checkpoints of a large network and their temporary copies
NAME_WIDTH, BAR_WIDTH, SHORT_BAR, SHORT_HISTORY, LONGEST_HISTORY = 5, 10, 6, 6, 60
LONGEST_HOST, WITH_BARS = 20, 80  # of several machines; cells beside the name of one from which bars have room
HISTORY_SECONDS = 120.0  # longer than an update takes: a device that is busy in turns shows its turns


class DevicesPane(Pane):
    """The machine, and a line per GPU with its last minutes, or why there is none; where ranks are on several machines,
    a line for each of these. In one line where that is all."""

    can_focus = True
    topic = "devices"
    seconds = math.inf

    def inputs(self, frame: Frame) -> object:
        """The newest samples."""
        return frame.view.devices, frame.view.ranks.other_machines

    def heading(self, frame: Frame) -> str:
        """On how many machines they are, where these are several."""
        others = len(frame.view.ranks.other_machines)
        return f"Devices {frame.glyphs.dot} {others + 1} machines" if others else "Devices"

    def wanted_height(self, frame: Frame, width: int) -> int:
        """Every GPU and the machine."""
        return len(device_lines(frame, width)) if frame.view.devices else 2

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """GPUs that the run uses come first when not all fit; machines that do not are counted."""
        if frame.view.devices is None:
            return [line(Span(f" {frame.glyphs.waiting} no sample of the devices yet", "wait"))]
        if height == 1:
            return [short_line(frame.view.devices, frame, width)]
        if frame.view.ranks.other_machines:
            rows = device_lines(frame, width)
            left_out = len(rows) - height + 1
            more = f" and {left_out} more; {frame.keymap.of_id('devices').shown} shows each"
            return rows if left_out <= 1 else [*rows[: height - 1], line(Span(more, "dim"))]
        rows = device_lines(frame, width)
        if len(rows) <= height or not frame.view.devices.gpus:
            return rows
        return dense_lines(frame.view.devices, frame, width, height)


def device_lines(frame: Frame, width: int) -> list[Line]:
    """The machine, a note if there is one, the GPUs: those that the run uses first. Of several machines a line each."""
    view, glyphs = frame.view, frame.glyphs
    devices = view.devices
    if devices is None:
        return []
    if view.ranks.other_machines:
        machines = view.ranks.machines(devices)
        names = short_hosts(each.host for each in machines)
        name_width = min(LONGEST_HOST, max(map(num_cells, names.values())))
        return [machine_line(each, names[each.host], name_width, glyphs, width) for each in machines]
    machine = machine_lines(devices, glyphs, width, view.device_histories.get("cpu"))
    if not devices.gpus:
        note = f" {glyphs.dot} {safe_text(devices.gpu_note)}" if devices.gpu_note else ""
        return [*machine, line(" ", Span("CPU only"), Span(fit(note, width - 10, glyphs.ellipsis), "dim"))]
    gpus = [gpu_line(gpu, glyphs, width, gpu_history(view, gpu)) for gpu in by_use(devices)]
    return [*machine, *_note(devices, glyphs), *gpus]


def machine_line(machine: Machine, name: str, name_width: int, glyphs: Glyphs, width: int) -> Line:
    """One of several machines: how busy its GPUs are on average, how full their memory is together, and the rest."""
    devices, has_bars = machine.devices, width - name_width >= WITH_BARS
    parts = [_busy("cpu", devices.cpu_percent, has_bars, glyphs), _ram(devices), _disk(devices, glyphs)]
    if devices.gpus:
        parts.insert(0, _all_gpus(devices.gpus, has_bars, glyphs))
    elif devices.gpu_note:
        parts.append(line(Span(safe_text(devices.gpu_note), "dim")))
    title = Span(left(fit_path(name, name_width, glyphs.ellipsis), name_width), "accent")
    return line(" ", title, "  ", *pack(parts, width - name_width - 3, gap=2))


def _all_gpus(gpus: Sequence[Gpu], has_bar: bool, glyphs: Glyphs) -> Line:
    known = [gpu.utilization_percent for gpu in gpus if gpu.utilization_percent is not None]
    use = _busy("gpu", sum(known) / len(known) if known else None, has_bar, glyphs)
    number = Span(f" of {len(gpus)}" if has_bar and len(gpus) > 1 else "", "dim")
    used = [gpu.memory_used_bytes for gpu in gpus if gpu.memory_used_bytes is not None]
    total = [gpu.memory_total_bytes for gpu in gpus if gpu.memory_total_bytes is not None]
    return line(*use, number, f" {size(sum(used))}/{size(sum(total))}" if used and total else "")


def _busy(name: str, percent: float | None, has_bar: bool, glyphs: Glyphs) -> Line:
    """With a bar, or in as few cells as it can be."""
    if has_bar:
        return _use(name, percent, glyphs, None, SHORT_BAR)
    return line(Span(f"{name} ", "dim"), "n/a " if percent is None else right(f"{percent:.0f}%", 4))


def _note(devices: DevicesSampled, glyphs: Glyphs) -> list[Line]:
    """Why what is known of the GPUs is old."""
    return [line(Span(f" {glyphs.warning} {safe_text(devices.gpu_note)}", "warning"))] if devices.gpu_note else []


def by_use(devices: DevicesSampled) -> list[Gpu]:
    """The GPUs, those in use first."""
    return sorted(devices.gpus, key=lambda gpu: (not gpu.in_use, gpu.index))


def gpu_history(view: RunView, gpu: Gpu) -> History | None:
    """How busy it has been, in percent."""
    return view.device_histories.get(f"gpu {gpu.index}")


def short_line(devices: DevicesSampled, frame: Frame, width: int) -> Line:
    """Everything on one line: what is busy, what is full."""
    glyphs, view = frame.glyphs, frame.view
    cpu = line(*_use("cpu", devices.cpu_percent, glyphs, view.device_histories.get("cpu"), SHORT_HISTORY))
    gpus = [line(*_short_gpu(gpu, frame), *_memory(gpu)) for gpu in by_use(devices)]
    marker = glyphs.marker if frame.focus == DevicesPane.topic else " "
    others = len(view.ranks.other_machines)
    more = [line(Span(counted(others, "more machine"), "dim"))] if others else []
    parts = [*gpus[:1], cpu, *more, _disk(devices, glyphs), _ram(devices), *gpus[1:]]
    return line(Span(marker, "accent"), *pack(parts, width - 1, gap=2))


def dense_lines(devices: DevicesSampled, frame: Frame, width: int, height: int) -> list[Line]:
    """The machine on one line and the GPUs side by side, without their memory where that needs too many lines."""
    glyphs, view = frame.glyphs, frame.view
    cpu = line(*_use("cpu", devices.cpu_percent, glyphs, view.device_histories.get("cpu"), SHORT_HISTORY))
    machine = line(" ", *pack([cpu, _disk(devices, glyphs), _ram(devices)], width - 2, gap=2))
    gpus = [_short_gpu(gpu, frame) for gpu in by_use(devices)]
    both = [line(*use, *_memory(gpu)) for use, gpu in zip(gpus, by_use(devices), strict=True)]
    rows = _side_by_side(both, width)
    if len(rows) >= height:
        rows = _side_by_side(gpus, width)
    return [machine, *_note(devices, glyphs), *rows][:height]


def _side_by_side(parts: list[Line], width: int) -> list[Line]:
    column = max(cells(part) for part in parts) + 2
    per_line = max(1, (width - 1) // column)
    return [
        line(" ", *(span for part in parts[at : at + per_line] for span in padded(part, column)))
        for at in range(0, len(parts), per_line)
    ]


def _short_gpu(gpu: Gpu, frame: Frame) -> Line:
    tone: Tone = "accent" if gpu.in_use else "dim"
    history = gpu_history(frame.view, gpu)
    return _use(f"gpu{gpu.index}", gpu.utilization_percent, frame.glyphs, history, SHORT_HISTORY, tone)


def machine_lines(devices: DevicesSampled, glyphs: Glyphs, width: int, history: History | None = None) -> list[Line]:
    """CPU, memory, the process and the disk, on as few lines as hold them all."""
    cpu = line(*_use("cpu", devices.cpu_percent, glyphs, history, _history_width(width)))
    rest = [
        line(Span(f"of {devices.num_cpus}", "dim")),
        _ram(devices),
        _disk(devices, glyphs),
        line(Span("process ", "dim"), size(devices.process_memory_bytes)),
    ]
    rows: list[Line] = [line(" ", *cpu)]
    for part in rest:
        if cells(rows[-1]) + 2 + cells(part) < width:
            rows[-1] = line(*rows[-1], "  ", *part)
        else:
            rows.append(line(" " * (NAME_WIDTH + 1), *part))
    return rows


def gpu_line(gpu: Gpu, glyphs: Glyphs, width: int, history: History | None = None) -> Line:
    """One device; what its driver does not report is left out."""
    tone: Tone = "accent" if gpu.in_use else "dim"
    parts = [line(*_use(f"gpu{gpu.index}", gpu.utilization_percent, glyphs, history, _history_width(width), tone))]
    if gpu.memory_used_bytes is not None and gpu.memory_total_bytes is not None:
        memory = right(f"{size(gpu.memory_used_bytes)}/{size(gpu.memory_total_bytes)}", 9)
        share = gpu.memory_used_bytes / max(gpu.memory_total_bytes, 1)
        parts.append(line(Span("mem ", "dim"), *(bar(share, 8, glyphs, "accent") if width >= 90 else ()), memory))
    if gpu.temperature_celsius is not None:
        is_hot = gpu.temperature_celsius >= HOT_CELSIUS
        words = f"{glyphs.warning} " * is_hot + f"{gpu.temperature_celsius:.0f}C"
        parts.append(line(Span(words, "warning" if is_hot else "text")))
    if gpu.power_watts is not None:
        limit = f"/{gpu.power_limit_watts:.0f}" if gpu.power_limit_watts is not None else ""
        parts.append(line(right(f"{gpu.power_watts:.0f}{limit}W", 8 if limit else 4)))
    parts.append(line(Span("in use" if gpu.in_use else "idle  ", "good" if gpu.in_use else "dim")))
    parts.append(line(Span(fit(safe_text(gpu.name), 24, glyphs.ellipsis), "dim")))
    return line(" ", *pack(parts, width - 2, gap=2))


def _history_width(width: int) -> int:
    """How long a history may be, beside a line's figures."""
    return max(BAR_WIDTH, min(width - 70, LONGEST_HISTORY))


def _use(
    name: str, percent: float | None, glyphs: Glyphs, history: History | None, width: int, tone: Tone = "dim"
) -> Line:
    """How busy a device has been and is; only the present, as a bar, where no history is known."""
    title = Span(left(name, NAME_WIDTH), "dim")
    if percent is None:
        return line(title, Span(" " * width + "  n/a", "dim"))
    shown = right(f"{percent:.0f}%", 5)
    if history is None or not len(history):
        return line(title, *bar(percent / 100, width, glyphs, tone), shown)
    seconds = HISTORY_SECONDS * max(1.0, width / BAR_WIDTH / 2)
    curve = by_time(np.array(history.times), np.array(history.mean), width, seconds)
    return line(title, Span(sparkline(curve, width, glyphs.levels, (0.0, 100.0)), tone), shown)


def _memory(gpu: Gpu) -> Line:
    if gpu.memory_used_bytes is None or gpu.memory_total_bytes is None:
        return ()
    return line(f" {size(gpu.memory_used_bytes)}/{size(gpu.memory_total_bytes)}")


def _ram(devices: DevicesSampled) -> Line:
    return line(Span("ram ", "dim"), f"{size(devices.memory_used_bytes)}/{size(devices.memory_total_bytes)}")


def _disk(devices: DevicesSampled, glyphs: Glyphs) -> Line:
    is_low = devices.disk_free_bytes < DISK_LOW_BYTES
    return line(
        Span(f"{glyphs.warning} disk " if is_low else "disk ", "warning" if is_low else "dim"),
        Span(size(devices.disk_free_bytes), "warning" if is_low else "text"),
        Span(" free", "dim"),
    )
