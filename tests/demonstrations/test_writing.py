"""Files that are written, beyond what reading them shows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rl_tui.engine.demonstrations.file_head import read_head
from rl_tui.engine.demonstrations.file_writer import DemonstrationWriter
from rl_tui.engine.errors import DemonstrationError
from rl_tui.engine.specs import Ending
from tests.demonstrations.recordings import VECTORS, episode, episodes, write

LENGTHS = [(5, Ending.TERMINATED), (3, Ending.CUT)]


def test_metadata_counts_records_and_episodes_and_is_repeated_at_the_end(tmp_path: Path) -> None:
    recorded = episodes(VECTORS, LENGTHS)
    content = write(tmp_path / "walk.demo", VECTORS, recorded).read_bytes()
    head = read_head(content)
    assert (head.metadata.version, head.metadata.name, head.behavior) == (1, "walk", "Ball")
    assert (head.metadata.num_records, head.metadata.num_episodes) == (10, 2)
    returns = [float(one.rewards.sum()) for one in recorded]
    assert head.metadata.mean_return == pytest.approx(sum(returns) / 2)
    metadata = content[1 : 1 + content[0]]
    assert content[1 + content[0] : 33] == bytes(32 - content[0])
    assert content.endswith(metadata)


def test_episode_that_was_dropped_is_not_in_the_file(tmp_path: Path) -> None:
    first, second, third = (episode(VECTORS, length, Ending.TERMINATED, length) for length in (5, 3, 4))
    written = write(tmp_path / "walk.demo", VECTORS, [first, third]).read_bytes()
    with DemonstrationWriter(tmp_path / "again.demo", VECTORS, "walk") as writer:
        for one in (first, second, second):
            writer.write(one)
        writer.drop_last()
        writer.drop_last()
        writer.write(third)
    assert (tmp_path / "again.demo").read_bytes() == written


def test_without_an_episode_there_is_no_file(tmp_path: Path) -> None:
    with DemonstrationWriter(tmp_path / "walk.demo", VECTORS, "walk") as writer:
        writer.write(episode(VECTORS, 3, Ending.TERMINATED, 1))
        writer.drop_last()
    assert os.listdir(tmp_path) == []


def test_name_is_cut_where_it_does_not_fit(tmp_path: Path) -> None:
    with DemonstrationWriter(tmp_path / "a.demo", VECTORS, "Über allen Gipfeln " * 3) as writer:
        writer.write(episode(VECTORS, 300, Ending.TERMINATED, 1))
    content = (tmp_path / "a.demo").read_bytes()
    assert content[0] <= 32
    name = read_head(content).metadata.name
    assert "Über allen Gipfeln Über".startswith(name)
    assert len(name) > 14


def test_nothing_is_left_of_a_recording_that_failed(tmp_path: Path) -> None:
    path = tmp_path / "walk.demo"
    path.write_bytes(b"an earlier one")

    def record() -> None:
        with DemonstrationWriter(path, VECTORS, "walk") as writer:
            writer.write(episode(VECTORS, 3, Ending.CUT, 1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record()
    assert os.listdir(tmp_path) == ["walk.demo"]
    assert path.read_bytes() == b"an earlier one"


def test_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DemonstrationError, match=r"nowhere/walk\.demo: cannot be written: No such file or directory"):
        DemonstrationWriter(tmp_path / "nowhere/walk.demo", VECTORS, "walk").__enter__()


def test_full_disk_is_reported_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = DemonstrationWriter(tmp_path / "walk.demo", VECTORS, "walk")
    monkeypatch.setattr(writer, "_unfinished", Path("/dev/full"))
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)

    def record() -> None:
        with writer:
            writer.write(episode(VECTORS, 3, Ending.CUT, 1))

    with pytest.raises(DemonstrationError, match=r"walk\.demo: cannot be written: No space left on device"):
        record()
    assert os.listdir(tmp_path) == []
