"""A screenshot is what the screen shows, where the run's files are; what was copied can be seen."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from engine.session.messages import RunStarted
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.snapshots import settled_text
from tui import clipboard
from tui.app import TrainerApp


async def shot(folder: Path, theme: str = "rl-dark", **scene: int) -> tuple[TrainerApp, str, str]:
    """The app, its text before the key and after it; `folder` is the run's."""
    view = scenes.healthy(3, **scene).view()
    view.run = RunStarted("walker", str(folder), 1, "cpu", False, {})
    app = TrainerApp(FakeSession(), view, clock=lambda: view.now, theme=theme)
    async with app.run_test(size=(120, 40)) as pilot:
        app.tick()
        before = await settled_text(pilot)
        await pilot.press("o")
        await app.workers.wait_for_complete()
        return app, before, await settled_text(pilot)


async def test_the_files_hold_the_screen(tmp_path: Path) -> None:
    _, before, after = await shot(tmp_path, gpus=2)
    text, picture = sorted((tmp_path / "screenshots").iterdir(), key=lambda path: path.suffix, reverse=True)
    assert text.read_text() == before
    assert any("\u2800" < character <= "\u28ff" for character in before)
    drawn = "".join(ElementTree.parse(picture).getroot().itertext()).replace("\xa0", " ")
    for line in before.splitlines()[:20]:
        for word in line.split():
            assert word in drawn
    assert "screenshot: .txt and " in after
    assert f"/screenshots/{picture.name}" in after


async def test_without_a_run_folder_they_are_with_what_the_screen_remembers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    _, _, after = await shot(Path("no/such/folder"))
    folder = tmp_path / "state" / "rl-tui" / "screenshots"
    assert sorted(path.suffix for path in folder.iterdir()) == [".svg", ".txt"]
    assert list((tmp_path / "here").iterdir()) == []
    assert "rl-tui/screenshots/rl-tui-" in after


async def test_a_folder_that_takes_no_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "screenshots").write_text("in the way")
    _, _, after = await shot(tmp_path)
    assert "screenshot: failed, " in after


async def test_what_is_copied_goes_to_the_terminal_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    app = TrainerApp(FakeSession(), scenes.healthy(1).view())
    async with app.run_test():
        assert clipboard.copy(app, "results/Walker-1") == "copied 16 characters (OSC 52): results/Walker-1"
        assert app.clipboard == "results/Walker-1"
        assert clipboard.copy(app, "ä" * 70_000).startswith("copied 50000 of 70000 characters (OSC 52): ä")
        assert len(app.clipboard.encode()) == clipboard.LARGEST_BYTES
        clipboard.copy(app, "a\udcffb")  # a file name that is no text
        assert app.clipboard == "a?b"
        monkeypatch.setenv("TMUX", "/tmp/tmux")
        assert "tmux passes it on with set-clipboard on" in clipboard.copy(app, "x")
