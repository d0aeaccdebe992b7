"""`rl-tui replay RUN --plot`: a chart of a recorded run on stdout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rl_tui.tui.cli import main
from tests.tui.recorded import some_runs


@pytest.fixture(autouse=True)
def in_folder_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some_runs(tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["replay", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def test_return_of_a_run_is_printed_where_no_terminal_is() -> None:
    """Through a pipe, as in the log of a batch job."""
    command = [sys.executable, "-m", "rl_tui", "replay", "bold", "--plot"]
    done = subprocess.run(command, env=os.environ | {"TERM": "dumb"}, capture_output=True, text=True, check=True)
    rows = done.stdout.splitlines()
    assert done.stderr == ""
    assert (len(rows), max(map(len, rows))) == (24, 80)
    assert "Return · Walker · bold · smooth 0.6" in rows[0]
    assert rows[-1] == " Return: last 424.5  lowest 4.310  highest 424.5"
    assert sum(char > chr(0x2800) for row in rows for char in row) > 40
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("typed", ["Policy/Entropy", "Entropy", "entropy"])
def test_metric_is_named_by_its_tag_or_its_name(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = printed(capsys, "bold", "--plot", typed, "--size", "100x30")
    assert "Entropy · Walker · bold" in rows[0]
    assert (len(rows), max(map(len, rows))) == (30, 100)


def test_behaviors_are_drawn_together_or_one_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    rows = printed(capsys, "duo", "--plot")
    assert [row.split(":")[0] for row in rows[-2:]] == [" 1 Walker", " 2 Crawler"]
    rows = printed(capsys, "duo", "--plot", "--behavior", "crawler")
    assert "Return · Crawler · duo" in rows[0]
    assert rows[-1].startswith(" Return: last")


def test_ascii_chart_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\n".join(printed(capsys, "bold", "--plot", "--ascii")).isascii()


@pytest.mark.parametrize(("words", "said"), [
    (["bold", "--plot", "entrpy"], "bold: no metric 'entrpy'. Did you mean Entropy?"),
    (["bold", "--plot", "xyz"], "bold: no metric 'xyz'. It has Return, Policy/Entropy."),
    (["duo", "--plot", "--behavior", "Wolker"], "duo: no behavior 'Wolker'. Did you mean Walker?"),
    (["bald", "--plot"], "Did you mean bold?"),
])  # fmt: skip
def test_what_is_not_there_is_an_error_that_names_what_is(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


@pytest.mark.parametrize(("words", "said"), [
    (["bold", "--size", "80x24"], "--behavior and --size: only with --plot"),
    (["bold", "--plot", "--size", "80"], "must be columns and rows from 40x10 to 1000x1000"),
    (["bold", "--plot", "--size", "39x24"], "must be columns and rows from 40x10 to 1000x1000"),
])  # fmt: skip
def test_flags_that_cannot_be_are_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["replay", *words])
    assert exit_info.value.code == 2
    assert said in capsys.readouterr().err
