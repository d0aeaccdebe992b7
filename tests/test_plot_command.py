"""`rl-tui replay RUN --plot`: a chart of a recorded run on stdout."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rl_tui.engine.session.messages import BehaviorStarted, MetricsReported, RunStarted
from rl_tui.engine.storage.event_log import JsonLinesWriter
from rl_tui.tui.cli import main
from tests.tui.recorded import some_runs
from tests.tui.scenes import Story, cloned


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


def test_run_without_returns_shows_what_the_screen_draws_first(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write(tmp_path / "results/cloned", cloned())
    write(tmp_path / "results/tested", cloned(is_evaluated=True))
    rows = printed(capsys, "cloned", "--plot")
    assert "Held-Out Cloning Loss + Cloning Loss · Walker · cloned" in rows[0]
    assert [row.split(":")[0] for row in rows[-2:]] == [" 1 Held-Out Cloning Loss", " 2 Cloning Loss"]
    assert "Evaluation · Walker · tested" in printed(capsys, "tested", "--plot")[0]
    assert main(["replay", "cloned", "--plot", "return"]) == 2
    assert "It has Losses/Held-Out Cloning Loss, " in capsys.readouterr().err


def test_list_of_runs_has_its_best_loss(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write(tmp_path / "results/cloned", cloned())
    assert main(["ls"]) == 0
    assert " loss 0.142 " in next(row for row in capsys.readouterr().out.splitlines() if row.startswith("cloned"))


def test_metric_without_a_value_names_those_that_have_some(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    story = cloned()
    begun = next(envelope.event for envelope in story.published if isinstance(envelope.event, BehaviorStarted))
    known = [each.event for each in story.published if isinstance(each.event, RunStarted | MetricsReported)]
    other = Story()
    for event in (*known[:1], replace(begun, learns_offline=False, headline_metrics=()), *known[1:]):
        other.publish(event)
    write(tmp_path / "results/silent", other)
    assert main(["replay", "silent", "--plot"]) == 2
    err = capsys.readouterr().err
    assert "no value of Return is finite. There are values of Policy/Learning Rate, Losses/Cloning Loss" in err


def write(folder: Path, story: Story) -> None:
    """A run that reported this."""
    folder.mkdir(parents=True)
    writer = JsonLinesWriter(folder / "events.jsonl", append=False)
    for envelope in story.published:
        writer.write(envelope)
    writer.close()


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
