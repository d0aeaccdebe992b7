"""The files of the tutorial run as they are, and the output that the page shows is theirs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rl_tui.tui.cli import main
from tests.end_to_end.program import ROOT, run

PAGE = (ROOT / "docs/tutorial.md").read_text()
FILES = re.findall(r"```\w+[^\n]*\n# (\w+\.\w+)\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with every file of the page."""
    for name, text in FILES:
        (tmp_path / name).write_text(text)
    return tmp_path


def test_page_has_two_environments_with_a_configuration_each() -> None:
    assert [name for name, _ in FILES] == ["corridor.py", "corridor.yaml", "chase.py", "chase.yaml"]


@pytest.mark.parametrize("env", ["corridor:Corridor", "chase:Chase"])
def test_environment_of_the_page_passes_the_check(
    env: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    assert main(["check-env", env]) == 0
    said = capfd.readouterr().out
    assert said.splitlines()[-1] == f"{env} is ready for training"
    shown = re.search(rf"check-env {env}\n(.*?)```", PAGE, re.DOTALL)
    if shown is not None and not shown[1].startswith("$"):
        timeless = re.compile(r"made in .* s|[\d,]+ steps per second")
        assert timeless.sub("", said) == timeless.sub("", shown[1])


@pytest.mark.slow
@pytest.mark.parametrize(("file", "behaviors"), [("corridor.yaml", ["Walker"]), ("chase.yaml", ["Chaser", "Runner"])])
def test_configuration_of_the_page_trains(file: str, behaviors: list[str], folder: Path) -> None:
    fewer = [f"--set=behaviors.{name}.{key}" for name in behaviors for key in ("max_steps=2048", "summary_freq=1024")]
    exit_code, stdout, stderr = run(file, "--no-ui", "--run-id", "a", *fewer, folder=folder)
    assert exit_code == 0, stdout + stderr
    for name in behaviors:
        assert re.search(rf"{name}\. Step: 2048\..* Mean Reward: ", stdout), stdout
        assert (folder / f"results/a/{name}.onnx").exists()
    assert "[WARNING]" not in stdout
