"""`rl-tui demonstrations info`: what it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Ending, ObservationSpec
from rl_tui.tui.cli import main
from tests.demonstrations.recordings import EVERY_KIND, VECTORS, episodes, write
from tests.golden_files import check_file

LENGTHS = [(5, Ending.TERMINATED), (3, Ending.TRUNCATED), (4, Ending.CUT)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "every.demo", EVERY_KIND, episodes(EVERY_KIND, LENGTHS))
    (tmp_path / "balls").mkdir()
    for name in ("first", "second"):
        write(tmp_path / f"balls/{name}.demo", VECTORS, episodes(VECTORS, [(2, Ending.CUT), (1, Ending.CUT)]))
    return tmp_path


def test_files_and_folders_are_described(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demonstrations", "info", "every.demo", "balls"]) == 0
    check_file(Path(__file__).parent / "info.txt", capsys.readouterr().out)


def test_json_has_every_field(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demonstrations", "info", "--json", "every.demo", "balls"]) == 0
    every, balls = map(json.loads, capsys.readouterr().out.splitlines())
    assert (every["path"], every["behavior"], every["names"]) == ("every.demo", "Walker", ["every"])
    assert (every["num_steps"], every["num_episodes"], every["num_unfinished"]) == (12, 3, 1)
    assert every["num_records"] == 15
    assert every["lengths"] == {"mean": 4.0, "min": 3.0, "max": 5.0}
    assert every["observations"][3] == {"name": "gray", "shape": [5, 4, 1], "dtype": "uint8", "is_goal": False}
    assert [sum(counts) for counts in every["branches"]] == [12, 12]
    assert len(every["branches"][1]) == 200
    assert (balls["num_files"], balls["num_agents"], balls["names"]) == (2, 2, ["first", "second"])
    assert balls["bytes"] == sum(path.stat().st_size for path in (folder / "balls").iterdir())
    assert len(balls["continuous"]) == 2
    assert -1 <= balls["continuous"][0]["min"] <= balls["continuous"][0]["mean"] <= balls["continuous"][0]["max"] <= 1


def test_names_in_a_file_cannot_control_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = BehaviorSpec("red\x1b[31m", (ObservationSpec("bell\a", (1,)),), ActionSpec(1))
    path = write(tmp_path / "a.demo", spec, episodes(spec, [(2, Ending.CUT)]))
    assert main(["demonstrations", "info", str(path)]) == 0
    assert "\x1b" not in (shown := capsys.readouterr().out)
    assert "\a" not in shown


def test_damaged_file_is_one_line_after_those_that_were_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cut.demo").write_bytes((folder / "every.demo").read_bytes()[:300])
    assert main(["demonstrations", "info", "every.demo", "cut.demo"]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("every.demo\n")
    assert err.startswith("cut.demo: byte 5")
    assert len(err.splitlines()) == 1


def test_observation_that_cannot_be_decoded_is_reported_as_well(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = bytearray((folder / "every.demo").read_bytes())
    damaged[damaged.index(b"IDAT") + 8] ^= 1
    (folder / "every.demo").write_bytes(damaged)
    assert main(["demonstrations", "info", "every.demo"]) == 2
    assert "a PNG file must have the checksum of its content" in capsys.readouterr().err
