"""Every device by itself: how busy it has been, and the processes on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TypeAlias

from rl_tui.engine.session.messages import DevicesSampled, Gpu, GpuProcess
from rl_tui.engine.session.ranks_view import Machine
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.charts.percent import bar, percent_chart, time_span
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, line, pack, padded
from rl_tui.tui.drawing.text import duration, fit, left, right, size
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.blocks import Block, BlocksPane
from rl_tui.tui.panes.devices import BAR_WIDTH, DISK_LOW_BYTES, HOT_CELSIUS
from rl_tui.tui.panes.list import Entry, plain, same
from rl_tui.tui.panes.rank_words import numbers_of

LEAST_ROWS, MOST_ROWS = 3, 16  # of a device beside others
NARROW, WIDTH, WIDTH_OF_ALL = 46, 60, 86  # of a device's figures: without a bar of its memory, with, and with its name
MEMORY_WIDTH = 6
LEAST_WIDTH = 66  # where a history is worth its place beside them
LAST_SECONDS = 3600.0
WIDE, LEAST_WIDE_ROWS, MOST_WIDE_ROWS = 100, 7, 28  # of two charts side by side, below the figures of a device
Users: TypeAlias = Callable[[int, int], list[Line]]


class DevicesList(BlocksPane):
    """A block per GPU, then the machine's; below them other machines that ranks are on, without their past.

    alone: the key of the only block that is shown, large; "" for all.
    """

    topic = "devices"
    seconds = math.inf

    def __init__(self) -> None:
        super().__init__()
        self.alone = ""
        self._room, self._width = 0, 0  # lines of the whole list and cells of an entry, when it was drawn last
        self._rows = LEAST_ROWS  # of each device with a chart then

    def inputs(self, frame: Frame) -> object:
        """The newest samples."""
        return super().inputs(frame), frame.view.devices, frame.view.ranks.other_machines, self.alone

    def heading(self, frame: Frame) -> str:
        """The time that the charts show."""
        return f"Devices {frame.glyphs.dot} last {duration(self._span(frame))}"

    def empty(self, frame: Frame) -> str:
        """Before the first sample."""
        return f"{frame.glyphs.waiting} no sample yet"

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """A block that stands alone takes all of the height."""
        self._room, self._width = height, width - self.cursor_width
        return super().lines(frame, width, height)

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """GPUs, or why there is none; CPU, memory, disk. Of several machines each below its name."""
        devices = frame.view.devices
        if devices is None:
            return []
        own, *others = frame.view.ranks.machines(devices)
        below = [entry for each in others for entry in self._other_machine(each, frame)]
        notes = [_title(own, frame)] if others else []
        notes += [_note(devices, frame.glyphs)] if devices.gpu_note or not devices.gpus else []
        room = max(self._room // 2, self._room - len(below))
        rows = (room - len(notes) - 1) // (len(devices.gpus) + 1)
        is_wide = self._width >= WIDE and (bool(self.alone) or rows >= LEAST_WIDE_ROWS)
        if is_wide:
            self._rows = self._room if self.alone else min(rows, MOST_WIDE_ROWS)
            blocks = self._wide_blocks(devices, notes, frame)
        else:
            self._rows = _rows(room, len(notes) + 1, len(devices.gpus) + 2)
            gpus = [self._gpu(gpu, frame) for gpu in devices.gpus]
            machine = _machine(devices, frame.glyphs)
            blocks = [*notes, *gpus, *(self._machine(key, rows, frame) for key, rows in machine.items())]
        alone = {"memory": "cpu"}.get(self.alone, self.alone) if is_wide else self.alone  # they share a block then
        blocks += below
        return [block for block in blocks if alone in ("", block.key)] or blocks

    def _other_machine(self, machine: Machine, frame: Frame) -> list[Entry]:
        """Its name, and a line for each of its devices; below a GPU that stands alone the processes on it."""
        devices, glyphs, host = machine.devices, frame.glyphs, safe_text(machine.host)
        entries = [_title(machine, frame)]
        if devices.gpu_note or not devices.gpus:
            entries.append(_note(devices, glyphs, host))
        for gpu in devices.gpus:
            users = partial(_users, gpu, self._room if self.alone else 0, glyphs)
            key = f"{machine.host}/gpu {gpu.index}"
            entries.append(Block(key, f"{host}, {gpu_words(gpu)}", partial(gpu_row, gpu, glyphs), users))
        for name, rows in _machine(devices, glyphs).items():
            text = " ".join(plain(rows[0]).split())
            entries.append(Entry(f"{machine.host}/{name}", f"{host}, {text}", same(rows[0])))
        return entries

    def _wide_blocks(self, devices: DevicesSampled, notes: list[Entry], frame: Frame) -> list[Entry]:
        """Each GPU with its use and its memory, the machine with its processors and its memory; the disk."""
        glyphs = frame.glyphs
        blocks: list[Entry] = []
        for gpu in devices.gpus:
            use, _, rest = gpu_parts(gpu, glyphs, WIDTH_OF_ALL)
            figures = line(" ", *pack([use, *rest], self._width // 2 - 2, gap=2)), _gpu_memory(gpu, glyphs)
            keys, users = (f"gpu {gpu.index}", f"gpu {gpu.index} memory"), partial(process_lines, gpu.processes, glyphs)
            blocks.append(self._wide_block(gpu_words(gpu), figures, keys, users, frame))
        machine = _machine(devices, glyphs)
        (cpu,), (memory, ours), (disk,) = machine["cpu"], machine["memory"], machine["disk"]
        figures = cpu, line(*memory[1:], "  ", *ours[1:])
        words = " ".join(f"{plain(cpu)} {plain(figures[1])}".split())
        blocks.append(self._wide_block(words, figures, ("cpu", "memory"), lambda _width, _height: [], frame))
        return [*notes, *blocks, Entry("disk", " ".join(plain(disk).split()), lambda _: disk)]

    def _wide_block(
        self, text: str, figures: tuple[Line, Line], keys: tuple[str, str], users: Users, frame: Frame
    ) -> Block:
        """Two figures with the histories of them below; the first key is that of the block."""
        half = self._width // 2
        below = [line(" " * 4, *row) for row in users(NARROW, max(1, self._rows // 3))]
        height = self._rows - 2 - len(below)
        charts = [self._chart(key, frame, half - 2, height) for key in keys]
        rest = [*below, *(line(*one, *other) for one, other in beside(charts[0], charts[1], half))]
        if not charts[1]:
            rest = [*below, *self._chart(keys[0], frame, self._width, height)]
        rest += [line()] * (self._rows - 1 - len(rest))
        first = line(*padded(figures[0], half), *figures[1])
        return Block(keys[0], text, lambda _: first, lambda _: rest)

    def _gpu(self, gpu: Gpu, frame: Frame) -> Block:
        draw = partial(gpu_row, gpu, frame.glyphs)
        users = partial(process_lines, gpu.processes, frame.glyphs)
        return self._block(f"gpu {gpu.index}", gpu_words(gpu), draw, users, frame)

    def _machine(self, key: str, rows: Sequence[Line], frame: Frame) -> Block:
        text = " ".join(" ".join(map(plain, rows)).split())
        return self._block(key, text, lambda _: rows[0], lambda _width, _height: list(rows[1:]), frame)

    def _block(self, key: str, text: str, draw: Callable[[int], Line], users: Users, frame: Frame) -> Block:
        """users: of so many cells and lines."""
        if self.alone:
            return Block(key, text, draw, partial(self._below, key, users, frame))
        rows = cache(partial(self._side_by_side, key, draw, users, frame))

        def rest(width: int) -> list[Line]:
            return [line(*one, *other) for one, other in rows(width)[1:]]

        return Block(key, text, lambda width: rows(width)[0][0], rest, lambda width: rows(width)[0][1])

    def _side_by_side(
        self, key: str, draw: Callable[[int], Line], users: Users, frame: Frame, width: int
    ) -> list[tuple[Line, Line]]:
        """The device and its users below one another, and in each line what the history has beside them."""
        left_width = width
        if width >= LEAST_WIDTH:
            left_width = NARROW if width < 100 else WIDTH if width < 150 else WIDTH_OF_ALL
        below = users(min(left_width, WIDTH) - 6, max(1, self._rows - 1))
        figures = [draw(left_width), *(line(" " * 4, *row) for row in below)]
        return beside(figures, self._chart(key, frame, width - left_width, self._rows), left_width)

    def _below(self, key: str, users: Users, frame: Frame, width: int) -> list[Line]:
        """Where the device stands alone: its history over the whole width, and its users."""
        below = [line("  ", *spans) for spans in users(44, max(2, self._room // 2))]
        return [*self._chart(key, frame, width, self._room - 1 - len(below)), *below]

    def _chart(self, key: str, frame: Frame, width: int, height: int) -> list[Line]:
        history = frame.view.device_histories.get(key)
        if history is None:
            return []
        return percent_chart(history, frame.time, self._span(frame), width, height, frame.glyphs)

    def _span(self, frame: Frame) -> float:
        began = min((history.times[0] for history in frame.view.device_histories.values() if len(history)), default=0.0)
        return time_span(frame.time - began if began else 0.0, math.inf if self.alone else LAST_SECONDS)


def gpu_row(gpu: Gpu, glyphs: Glyphs, width: int) -> Line:
    """How busy, full, warm it is, each in its own column; what its driver does not report is left out."""
    use, memory, rest = gpu_parts(gpu, glyphs, width)
    return line(" ", *pack([use, *[memory] * bool(memory), *rest], width - 2, gap=2))


def gpu_parts(gpu: Gpu, glyphs: Glyphs, width: int) -> tuple[Line, Line, list[Line]]:
    """How busy and how full it is, and the rest; width: of all of them."""
    tone: Tone = "accent" if gpu.in_use else "dim"
    title = Span(left(f"gpu{gpu.index}", 5), tone)
    percent = gpu.utilization_percent
    use = line(title, Span(" " * BAR_WIDTH + "  n/a", "dim"))
    if percent is not None:
        use = line(title, *bar(percent / 100, BAR_WIDTH, glyphs, tone), right(f"{percent:.0f}%", 5))
    memory = line()
    if gpu.memory_used_bytes is not None and gpu.memory_total_bytes is not None:
        share = gpu.memory_used_bytes / max(gpu.memory_total_bytes, 1)
        figures = right(f"{size(gpu.memory_used_bytes)}/{size(gpu.memory_total_bytes)}", 10)
        in_bar = [] if width < WIDTH else [Span("mem ", "dim"), *bar(share, MEMORY_WIDTH, glyphs, tone)]
        memory = line(*in_bar, figures)
    rest = []
    if gpu.temperature_celsius is not None:
        is_hot = gpu.temperature_celsius >= HOT_CELSIUS
        words = f"{glyphs.warning} " * is_hot + f"{gpu.temperature_celsius:.0f}C"
        rest.append(line(Span(words, "warning" if is_hot else "text")))
    if gpu.power_watts is not None:
        has_limit = gpu.power_limit_watts is not None and width >= WIDTH
        limit = f"/{gpu.power_limit_watts:.0f}" if has_limit else ""
        rest.append(line(right(f"{gpu.power_watts:.0f}{limit}W", 8 if limit else 4)))
    rest.append(line(Span(fit(safe_text(gpu.name), 24, glyphs.ellipsis), "dim")))
    return use, memory, rest


def _gpu_memory(gpu: Gpu, glyphs: Glyphs) -> Line:
    """As that of the machine; nothing where its driver does not report it."""
    used, total = gpu.memory_used_bytes, gpu.memory_total_bytes
    if used is None or total is None:
        return line()
    return _used("mem", 100 * used / max(total, 1), line(f"{size(used)} of {size(total)}"), glyphs)[1:]


def beside(these: Sequence[Line], those: Sequence[Line], width: int) -> list[tuple[Line, Line]]:
    """The lines in two columns; `these` get `width` cells."""
    height = max(len(these), len(those))
    rows = [(*these, *[()] * height)[:height], (*those, *[()] * height)[:height]]
    return [(line(*padded(one, width)), other) for one, other in zip(*rows, strict=True)]


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


def process_lines(processes: Sequence[GpuProcess], glyphs: Glyphs, width: int, height: int) -> list[Line]:
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


def _rows(room: int, num_lines: int, num_charts: int) -> int:
    """How high each device with a chart may be so that all are visible beside `num_lines` others, if that can be."""
    return max(LEAST_ROWS, min(MOST_ROWS, (room - num_lines) // num_charts))


def _users(gpu: Gpu, height: int, glyphs: Glyphs, width: int) -> list[Line]:
    """The processes on a GPU, indented; none where there is no room for them."""
    rows = process_lines(gpu.processes, glyphs, min(width, WIDTH) - 6, height - 1) if height else []
    return [line(" " * 4, *row) for row in rows]


def _title(machine: Machine, frame: Frame) -> Entry:
    """Whose devices follow."""
    host, ranks = safe_text(machine.host), numbers_of(machine.ranks)
    words = line(" ", Span(host, "accent"), Span(f" {frame.glyphs.dot} {ranks}", "dim"))
    return Entry(f"{machine.host}/", plain(words).strip(), same(words))


def _note(devices: DevicesSampled, glyphs: Glyphs, host: str = "") -> Entry:
    note = safe_text(devices.gpu_note)
    if devices.gpus:
        words = line(Span(f" {glyphs.warning} {note}", "warning"))
    else:
        words = line(" CPU only", Span(f" {glyphs.dot} {note}" if note else "", "dim"))
    text = plain(words).strip()
    return Entry(f"{host}/gpu note", f"{host}, {text}", same(words)) if host else Entry("gpu note", text, same(words))


def _machine(devices: DevicesSampled, glyphs: Glyphs) -> dict[str, tuple[Line, ...]]:
    """By key: what is known of the machine, and below it what of that this run uses."""
    used, total = devices.memory_used_bytes, devices.memory_total_bytes
    free, disk = devices.disk_free_bytes, devices.disk_total_bytes
    is_low = free < DISK_LOW_BYTES
    processor = line(f"of {devices.num_cpus} CPUs")
    memory = line(f"{size(used)} of {size(total)}")
    ours = line(" " * 8, right(size(devices.process_memory_bytes), 5), Span(" this run", "good"))
    space = line(
        Span(f"{glyphs.warning} only " if is_low else "", "warning"),
        Span(size(free), "warning" if is_low else "text"),
        f" free of {size(disk)}",
    )
    return {
        "cpu": (_used("cpu", devices.cpu_percent, processor, glyphs),),
        "memory": (_used("ram", 100 * used / max(total, 1), memory, glyphs), ours),
        "disk": (_used("disk", 100 * (disk - free) / max(disk, 1), space, glyphs),),
    }


def _used(name: str, percent: float, words: Line, glyphs: Glyphs) -> Line:
    shown = bar(percent / 100, 10, glyphs, "accent")
    return line(" ", Span(left(name, 5), "dim"), *shown, right(f"{percent:.0f}%", 5), "   ", *words)
