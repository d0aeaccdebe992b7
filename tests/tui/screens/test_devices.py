"""The devices: a block each, their history and their processes; every key; one GPU, eight, and none."""

from __future__ import annotations

import math
import re

import pytest

from rl_tui.engine.session.history import History
from rl_tui.engine.session.messages import DevicesSampled, Gpu, GpuProcess
from rl_tui.engine.session.view import RunView
from rl_tui.tui.charts.percent import column_means, percent_chart, time_span
from rl_tui.tui.drawing.glyphs import ASCII, UNICODE, Glyphs
from rl_tui.tui.drawing.lines import cells
from rl_tui.tui.panes.device_blocks import DevicesList
from rl_tui.tui.panes.list import plain
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.scenes import GIB
from tests.tui.snapshots import check

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}
NAMES = ("python3.11", "ray::worker", "Xorg", "")


def machine(num_gpus: int, samples: int = 120, note: str = "") -> RunView:
    """Devices of which each is busy in turns, three seconds from sample to sample."""
    story = scenes.healthy(1)
    for at in range(samples):
        gpus = tuple(gpu(index, 50 + 45 * math.sin(at / (9 + index))) for index in range(num_gpus))
        cpu, used = 40 + 30 * math.sin(at / 20), 12 * GIB + at * GIB // 20
        story.publish(DevicesSampled(gpus, note, cpu, 16, used, 128 * GIB, GIB, 402 * GIB, 915 * GIB), after=3)
    return story.view()


def gpu(index: int, percent: float) -> Gpu:
    """One with as many processes as its index; the first of them is of this run."""
    processes = tuple(GpuProcess(1000 + 10 * index + at, NAMES[at % 4], (30 - at) * GIB if at < 3 else None, at == 0)
                      for at in range(index))  # fmt: skip
    return Gpu(index, "NVIDIA H200", percent, 31 * GIB, 139 * GIB, 61.0, 412.0, 700.0, index < 2, processes)


@pytest.mark.parametrize("size", ["80x24", "120x40"])
async def test_two_gpus_look_as_they_should(size: str) -> None:
    async with Driven(machine(2), SIZES[size], opened="devices") as screen:
        check(f"devices-{size}", await screen.text())


async def test_screen_without_unicode() -> None:
    async with Driven(machine(2), (120, 40), opened="devices", is_ascii=True) as screen:
        text = await screen.text()
        check("devices-ascii-120x40", text)
        assert text.isascii()


async def test_axis_of_a_chart_looks_the_same_when_the_cursor_is_on_its_device() -> None:
    async with Driven(machine(2), (80, 24), opened="devices") as screen:
        await screen.text()
        pane = screen.screen.query_one(DevicesList)
        of_first = next(spans for spans in pane._lines if any("gpu0" in span.text for span in spans))
        labels = [span for span in of_first if span.text.strip().startswith("100")]
        assert labels, "the chart begins in the device's line"
        assert all(span.tone != "strong" for span in labels)
        assert any(span.tone == "strong" for span in of_first), "the device's figures are bright"


@pytest.mark.parametrize("size", ["120x40", "200x60"])
@pytest.mark.parametrize("num_gpus", [0, 1, 2])
async def test_use_and_memory_stand_side_by_side_and_take_all_rows(num_gpus: int, size: str) -> None:
    async with Driven(machine(num_gpus), SIZES[size], opened="devices") as screen:
        rows = (await screen.text()).splitlines()
        axes = [row for row in rows if row.count("100┤") == 2]
        assert len(axes) == num_gpus + 1
        below = next(number for number, row in enumerate(rows) if "disk" in row)
        assert "402G free" in rows[below]
        assert below >= min(SIZES[size][1] - 3 - 2 - num_gpus, 28 * (num_gpus + 1))
        for number, (first, second) in enumerate((("gpu0", "mem"), ("cpu", "ram"))[num_gpus == 0 :]):
            row = next(row for row in rows if first in row)
            assert row.index(second) == axes[-1 if first == "cpu" else number].rindex("100")


async def test_gpu_whose_memory_is_unknown_has_one_wide_chart() -> None:
    story = scenes.healthy(1)
    one = Gpu(0, "NVIDIA GB10", 60.0, None, None, 61.0, None, None, True, ())
    for _ in range(100):
        story.publish(DevicesSampled((one,), "", 50, 16, GIB, 128 * GIB, GIB, 402 * GIB, 915 * GIB), after=3)
    async with Driven(story.view(), (120, 40), opened="devices") as screen:
        rows = (await screen.text()).splitlines()
        assert [row.count("100┤") for row in rows if "100┤" in row] == [1, 2]
        assert "mem" not in next(row for row in rows if "gpu0" in row)
        axis = next(number for number, row in enumerate(rows) if "100┤" in row)
        assert rows[axis + 6].count("⣿") > 20, "60 % of ten lines"
        assert rows[axis + 6].rindex("⣿") > 110


async def test_memory_alone_stands_beside_the_processors_on_a_wider_terminal() -> None:
    async with Driven(machine(1), (80, 24), opened="devices") as screen:
        await screen.press("end", "up", "enter")
        text = await screen.text()
        assert "▸  ram" in text
        assert "16 CPUs" not in text
        await screen.pilot.resize_terminal(120, 40)
        text = await screen.text()
        assert "18G of 128G" in text
        assert "16 CPUs" in text
        assert "gpu0" not in text


@pytest.mark.parametrize("is_ascii", [False, True])
async def test_the_overview_has_them_in_its_one_line_at_80x24(is_ascii: bool) -> None:
    async with Driven(machine(2), (80, 24), is_ascii=is_ascii) as screen:
        text = await screen.text()
        row = next(row for row in text.splitlines() if "gpu0" in row)
        assert "31G/139G" in row
        assert "cpu" in row
        assert "402G free" in row


async def test_click_on_any_line_of_a_block_chooses_it() -> None:
    async with Driven(machine(2), (120, 40), opened="devices") as screen:
        rows = (await screen.text()).splitlines()
        below = next(number for number, row in enumerate(rows) if "gpu0" in row) + 2
        await screen.pilot.click(offset=(10, below))
        await screen.text()
        assert screen.app.context.state.cursors["devices"] == "gpu 0"


@pytest.mark.parametrize("size", SIZES.values())
async def test_eight_gpus_are_all_reached(size: tuple[int, int]) -> None:
    async with Driven(machine(8), size) as screen:
        text = await screen.press("g")
        assert "gpu0" in text
        for index in range(1, 8):
            text = await screen.press("down")
            assert f"▸  gpu{index}" in text
        assert "1070 python3.11" in text or "1070 python…" in text
        assert "disk" in await screen.press("end")
        assert "▸  gpu0" in await screen.press("home")
        await screen.press("pagedown")
        assert "▸  gpu0" not in await screen.press("pagedown")
        assert "▸  gpu0" in await screen.press("pageup", "pageup", "pageup", "pageup")
        await screen.press("escape")
        assert screen.screen.name == "overview"


async def test_processes_show_name_memory_and_whose_they_are() -> None:
    async with Driven(machine(4), (120, 40), opened="devices") as screen:
        text = await screen.text()
        assert "1020 python3.11" in text
        assert "30G this run" in text
        assert "no process" in text  # the first has none
        assert "and " not in text


async def test_processes_that_do_not_fit_are_counted_and_enter_shows_them() -> None:
    async with Driven(machine(8), opened="devices") as screen:
        text = await screen.press("end", "up", "up", "up")
        assert "▸  gpu7" in text
        assert "and 5 more" in text
        text = await screen.press("enter")
        assert "gpu6" not in text
        assert "1076" in text
        await screen.press("escape")
        assert screen.screen.name == "devices"
        assert "gpu6" in await screen.text()


async def test_copy_and_filter_know_gpus_by_their_processes() -> None:
    async with Driven(machine(4), opened="devices") as screen:
        text = await screen.press("slash", *"xorg", "enter")
        assert "gpu3" in text
        assert "gpu2" not in text
        await screen.press("y")
        assert screen.clipboard.startswith("gpu 3 NVIDIA H200")
        assert "1032 Xorg" in screen.clipboard


async def test_machine_without_gpu_says_why() -> None:
    async with Driven(machine(0, note="no NVIDIA driver"), opened="devices") as screen:
        text = await screen.text()
        assert "CPU only · no NVIDIA driver" in text
        assert "of 16 CPUs" in text
        assert "402G free of 915G" in text


async def test_stale_note_stands_above_the_gpus() -> None:
    async with Driven(machine(1, note="the driver has not answered for 5s"), opened="devices") as screen:
        text = await screen.text()
        assert text.index("! the driver has not answered") < text.index("gpu0")


async def test_before_the_first_sample_and_with_a_silent_driver() -> None:
    async with Driven(RunView(), opened="devices") as screen:
        assert "no sample" in await screen.text()
        assert "no sample" in await screen.press("enter")
    async with Driven(scenes.hot_gpu().view(), opened="devices") as screen:
        text = await screen.text()
        assert "n/a" in text
        assert "! only 1.0G free" in text
        assert "91C" in text


HOSTS = "gpu06", "gpu06", "gpu07", "gpu07"


@pytest.mark.parametrize("size", ["80x24", "120x40"])
async def test_devices_of_several_machines_stand_below_their_names(size: str) -> None:
    async with Driven(scenes.ranks(*HOSTS, gpus=2).view(), SIZES[size], opened="devices") as screen:
        text = await screen.text()
        check(f"devices-of-ranks-{size}", text)
        assert text.index("gpu06 · ranks 0-1") < text.index("gpu07 · ranks 2-3")


async def test_device_of_another_machine_is_found_by_its_host_and_shown_alone() -> None:
    async with Driven(scenes.ranks(*HOSTS, gpus=2).view(), (120, 40), opened="devices") as screen:
        text = await screen.press("slash", *"gpu07, gpu 1", "enter")
        assert "ranks" not in text
        assert text.count("NVIDIA H200") == 1
        await screen.press("y")
        assert screen.clipboard.startswith("gpu07, gpu 1 NVIDIA H200")
        assert "no process" in await screen.press("enter")


async def test_machine_without_gpu_among_several_says_why() -> None:
    async with Driven(scenes.ranks("a", "b").view(), (120, 40), opened="devices") as screen:
        text = await screen.text()
        assert text.count("CPU only · no NVIDIA driver") == 2
        assert "of 32 CPUs" in text


@pytest.mark.parametrize(("size", "least"), [((120, 40), "ram 60G/256G"), ((200, 60), "disk 700G free")])
async def test_overview_has_a_line_for_each_machine(size: tuple[int, int], least: str) -> None:
    async with Driven(scenes.ranks(*HOSTS, gpus=2).view(), size) as screen:
        rows = (await screen.text()).splitlines()
        assert any("Devices · 2 machines" in row for row in rows)
        (other,) = [row for row in rows if re.search(r"gpu07 +gpu .* 62G/278G +cpu", row)]
        assert least in other


async def test_overview_counts_machines_that_have_no_line() -> None:
    hosts = [f"node{number}" for number in range(12)]
    async with Driven(scenes.ranks(*hosts, seconds=4).view(), (120, 40)) as screen:
        text = await screen.text()
        assert "node2 " in text
        assert "node3 " not in text
        assert "and 9 more; g shows each" in text
    async with Driven(scenes.ranks(*hosts, seconds=4).view(), (80, 24)) as screen:
        assert "11 more machines" in await screen.text()


async def test_64_machines_are_all_reached() -> None:
    hosts = [f"node{number}" for number in range(64)]
    async with Driven(scenes.ranks(*hosts, gpus=1, seconds=4).view(), (80, 24), opened="devices") as screen:
        assert "node63 · rank 63" in await screen.press("end", "pageup")
        assert "node0 · rank 0" in await screen.press("home")


@pytest.mark.parametrize("size", [(20, 5), (40, 12), (60, 15)])
async def test_hostile_names_and_small_sizes_break_nothing(size: tuple[int, int]) -> None:
    story = scenes.healthy(1)
    process = GpuProcess(2**31, "\x1b[31mevil\u202e" * 20, 10**18, False)
    bad = Gpu(0, "\x1b]0;x\x07" + "G" * 300, 1e9, -1, 0, float("nan"), float("inf"), None, True, (process,) * 40)
    story.publish(DevicesSampled((bad,), "\x9b2J", float("nan"), 0, 0, 0, 0, 0, 0))
    async with Driven(story.view(), size, opened="devices") as screen:
        for text in (await screen.text(), await screen.press("enter"), await screen.press("down")):
            assert not any(sign in text for sign in "\x1b\x9b\u202e")


def history(*samples: tuple[float, float]) -> History:
    made = History()
    for at, percent in samples:
        made.append(at, at, percent)
    return made


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_percent_chart_fills_what_was_busy_and_nothing_else(glyphs: object) -> None:
    assert glyphs in (UNICODE, ASCII)
    signs = UNICODE if glyphs is UNICODE else ASCII
    busy = history(*((float(at), 100.0 if at > 50 else 0.0) for at in range(101)))
    rows = [plain(row) for row in percent_chart(busy, 100.0, 100.0, 25, 3, signs)]
    assert [cells(row) for row in percent_chart(busy, 100.0, 100.0, 25, 3, signs)] == [25, 25, 25]
    assert rows[0].startswith("100")
    assert not rows[0][5:14].strip()
    assert all(row[17:24] == ("⣿" if signs.braille else "#") * 7 for row in rows)


@pytest.mark.parametrize("signs", [UNICODE, ASCII])
def test_percent_chart_shows_a_little_as_little(signs: Glyphs) -> None:
    idle, half = (history(*((float(at), percent) for at in range(101))) for percent in (1.0, 50.0))
    rows = [plain(row)[5:] for row in percent_chart(idle, 100.0, 100.0, 25, 3, signs)]
    assert not "".join(rows[:2]).strip()
    assert set(rows[2].strip()) <= {signs.levels[0], "⣀", "⡀", "⢀"}
    top, middle, bottom = (plain(row)[5:].strip() for row in percent_chart(half, 100.0, 100.0, 25, 3, signs))
    assert not top
    assert middle
    assert bottom[5] == ("⣿" if signs.braille else "#")
    assert middle[5] not in ("⣿", "#")


def test_percent_chart_needs_room_and_samples() -> None:
    one = history((10.0, 50.0))
    assert percent_chart(one, 10.0, 60.0, 5, 3, UNICODE) == []
    assert percent_chart(one, 10.0, 60.0, 20, 0, UNICODE) == []
    assert percent_chart(History(), 10.0, 60.0, 20, 3, UNICODE) == []
    assert percent_chart(history((10.0, math.nan)), 10.0, 60.0, 20, 1, UNICODE) != []


def test_columns_stand_still_until_one_is_over() -> None:
    busy = history(*((float(at), float(at % 7) * 10) for at in range(600)))
    drawn = [percent_chart(busy, now, 600.0, 65, 4, UNICODE) for now in (600.5, 602.0, 604.9)]
    assert drawn[0] == drawn[1] == drawn[2]
    assert percent_chart(busy, 606.0, 600.0, 65, 4, UNICODE) != drawn[0]


def test_means_lie_on_a_line_between_known_columns() -> None:
    import numpy as np

    means = column_means(np.array([0.5, 0.7, 3.5]), np.array([10.0, 30.0, 80.0]), (0.0, 5.0), 5)
    assert means[:4].tolist() == [20.0, 40.0, 60.0, 80.0]
    assert math.isnan(means[4])


def test_time_spans_are_round_and_cover_the_run() -> None:
    assert [time_span(seconds) for seconds in (0, 61, 899, 3600, 3601, 20_000)] == [60, 300, 900, 3600, 7200, 28800]
    assert time_span(1e6, 3600.0) == 3600
