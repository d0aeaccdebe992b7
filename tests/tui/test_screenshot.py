"""A screenshot is what the screen shows, where the run's files are; what was copied can be seen."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.session.messages import RunStarted
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.charts.figure import smoothed_at
from rl_tui.tui.drawing.painting import spots
from rl_tui.tui.panes.chart import CurvesPane, MetricChart
from rl_tui.tui.terminal import sequences
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.snapshots import settled_text


async def shot(folder: Path, theme: str = "rl-dark", **scene: int) -> tuple[TrainerApp, str, str]:
    """The app, its text before the key and after it; `folder` is the run's."""
    view = scenes.healthy(3, **scene).view()
    view.run = RunStarted("walker", str(folder), 1, "cpu", False, {})
    app = TrainerApp(FakeSession(view), clock=lambda: view.now, theme=theme)
    async with app.run_test(size=(120, 40)) as pilot:
        app.tick()
        before = await settled_text(pilot)
        await pilot.press("o")
        await app.workers.wait_for_complete()
        return app, before, await settled_text(pilot)


async def test_the_files_hold_the_screen(tmp_path: Path) -> None:
    _, before, after = await shot(tmp_path, gpus=2)
    text, picture, _ = sorted((tmp_path / "screenshots").iterdir(), key=lambda path: path.suffix, reverse=True)
    assert text.read_text() == before
    assert any("\u2800" < character <= "\u28ff" for character in before)
    drawn = "".join(ElementTree.parse(picture).getroot().itertext()).replace("\xa0", " ")
    for line in before.splitlines()[:20]:
        for word in line.split():
            assert word in drawn
    assert "screenshot: .csv, .txt and " in after
    assert f"/screenshots/{picture.name}" in after


@pytest.mark.parametrize("opened", ["", "detail", "chart", "grid"])
async def test_table_holds_what_the_charts_show_and_nothing_else(opened: str, tmp_path: Path) -> None:
    view = scenes.healthy(2).view()
    view.run = RunStarted("walker", str(tmp_path), 1, "cpu", False, {})
    async with Driven(view, (200, 60), opened=opened) as driven:
        await driven.press("+", "[", "o")
        await driven.app.workers.wait_for_complete()
        figure = driven.screen.query_one(CurvesPane).drawn()
        num_charts = 1 + sum(pane in spots(driven.screen) for pane in driven.screen.query(MetricChart))
    (file,) = (tmp_path / "screenshots").glob("*.csv")
    header, *rows = list(csv.reader(file.read_text(encoding="utf-8").splitlines()))
    assert figure is not None
    curve, (start, end) = figure.curves[0], figure.viewport.shown
    assert header[:5] == [
        "step", *(f"walker/Walker/Return {name}" for name in ("mean", "lowest", "highest", "smoothed 0.6"))
    ]  # fmt: skip
    assert len(header) == 1 + 4 * num_charts
    published = [row for row in rows if row[1]]
    inside = np.flatnonzero((curve.xs >= start) & (curve.xs <= end))
    assert 0 < len(inside) < len(curve.xs)
    assert [float(row[0]) for row in published] == curve.xs[inside].tolist()
    for column, values in ((1, curve.mean), (2, curve.low), (3, curve.high)):
        assert [float(row[column]) for row in published] == values[inside].tolist()
    for row in published[::7]:
        assert float(row[4]) == smoothed_at(figure, curve, float(row[0]))


async def test_screen_without_a_chart_writes_no_table(tmp_path: Path) -> None:
    view = scenes.healthy(1).view()
    view.run = RunStarted("walker", str(tmp_path), 1, "cpu", False, {})
    async with Driven(view, opened="log") as driven:
        await driven.press("o")
        await driven.app.workers.wait_for_complete()
        assert "screenshot: .txt and " in await driven.text()
    assert sorted(path.suffix for path in (tmp_path / "screenshots").iterdir()) == [".svg", ".txt"]


async def test_without_a_run_folder_they_are_with_what_the_screen_remembers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    _, _, after = await shot(Path("no/such/folder"))
    folder = tmp_path / "state" / "rl-tui" / "screenshots"
    assert sorted(path.suffix for path in folder.iterdir()) == [".csv", ".svg", ".txt"]
    assert list((tmp_path / "here").iterdir()) == []
    assert "rl-tui/screenshots/rl-tui-" in after


async def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "screenshots").write_text("in the way")
    _, _, after = await shot(tmp_path)
    assert "screenshot: failed, " in after


async def test_what_is_copied_goes_to_the_terminal_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    app = TrainerApp(FakeSession(scenes.healthy(1).view()))
    async with app.run_test():
        assert sequences.copy_text(app, "results/Walker-1") == "copied 16 characters (OSC 52): results/Walker-1"
        assert app.clipboard == "results/Walker-1"
        assert sequences.copy_text(app, "ä" * 70_000).startswith("copied 50000 of 70000 characters (OSC 52): ä")
        assert len(app.clipboard.encode()) == sequences.LARGEST_COPY
        sequences.copy_text(app, "a\udcffb")  # a file name that is no text
        assert app.clipboard == "a?b"
        monkeypatch.setenv("TMUX", "/tmp/tmux")
        assert "tmux passes it on with set-clipboard on" in sequences.copy_text(app, "x")
