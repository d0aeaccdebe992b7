"""Removing runs: only our own, only idle ones, and nothing beyond their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_tui.engine.errors import ConfigError, RlTuiError, RunBusyError
from rl_tui.engine.session.summaries import Removal
from rl_tui.engine.storage.archive import Archive
from rl_tui.engine.storage.disk import DISK, Disk
from rl_tui.engine.storage.run_folder import RunFolder
from tests.tui.recorded import record


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run with a checkpoint."""
    record(tmp_path, "walk")
    folder = tmp_path / "walk"
    checkpoint = folder / "Walker/checkpoints/Walker-100"
    checkpoint.mkdir(parents=True)
    (checkpoint / "MANIFEST.json").write_text("{}")
    (folder / "run.lock").write_text("1\n")
    return folder


def test_run_is_gone_with_everything_in_it_and_its_neighbor_stays(run: Path) -> None:
    record(run.parent, "other")
    found = preview(run)
    assert found.path == str(run)
    assert found.num_checkpoints == 1
    assert found.num_bytes == sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    remove(run)
    assert [path.name for path in run.parent.iterdir()] == ["other"]


def test_links_in_a_run_are_removed_and_not_followed(run: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "thesis.tex").write_text("years of work")
    (run / "Walker/checkpoints/Walker-200").symlink_to(elsewhere)
    (run / "run_logs").symlink_to(elsewhere)
    assert preview(run).num_bytes < 100_000
    remove(run)
    assert (elsewhere / "thesis.tex").read_text() == "years of work"
    assert not run.exists()


def preview(folder: Path) -> Removal:
    return Archive(folder.parent).preview_removal(folder.name)


def remove(folder: Path, disk: Disk = DISK) -> None:
    Archive(folder.parent, disk).remove(folder.name)


def refused(folder: Path, error: type[RlTuiError], words: str) -> None:
    before = sorted(folder.rglob("*"))
    for action in (preview, remove):
        with pytest.raises(error, match=words):
            action(folder)
    assert sorted(folder.rglob("*")) == before


def test_folder_that_is_a_link_is_refused(run: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(run)
    refused(link, ConfigError, f"^{link}: ")


def test_run_that_a_process_writes_to_is_refused(run: Path) -> None:
    with RunFolder(run.parent, run.name) as folder:
        folder.open(resume=True)
        refused(run, RunBusyError, f"^{run}: ")


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    thesis, unity = tmp_path / "thesis", tmp_path / "unity"
    for folder in (thesis, unity / "Walker"):
        folder.mkdir(parents=True)
    (thesis / "chapter.tex").write_text("words")
    (unity / "Walker/checkpoint.pt").write_text("")
    refused(thesis, ConfigError, r"\(chapter.tex\)")
    refused(unity, ConfigError, "of ML-Agents")
    refused(tmp_path / "nothing", ConfigError, "/nothing: ")


def test_run_that_was_removed_by_half_can_be_removed_again(run: Path) -> None:
    class Failing(Disk):
        def unlink(self, path: Path) -> None:
            if path.name == "events.jsonl":
                raise OSError(5, "Input/output error", str(path))
            super().unlink(path)

    with pytest.raises(ConfigError, match=r"/events.jsonl: .*Input/output error"):
        remove(run, Failing())
    assert not (run / "Walker").exists()
    assert [summary.run_id for summary in Archive(run.parent).runs()] == ["walk"]
    remove(run)
    assert not run.exists()
