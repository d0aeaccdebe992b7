"""`make test-all` with and without its interpreters, `make run` in a checkout without links, `make gpu` without one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadline import DEADLINE_SECONDS
from tests.gpu.__main__ import main as check_gpu

ROOT = Path(__file__).parents[1]
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def all_tests(pythons: str, tests: str) -> tuple[int, str]:
    """Exit code and output; `tests` runs in place of make."""
    words = ["make", "--no-print-directory", "test-all", f"PYTHONS={pythons}", f"MAKE={tests}"]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)
    return ended.returncode, ended.stdout


def test_every_python_that_works_has_an_environment_of_its_own_and_the_others_are_named(tmp_path: Path) -> None:
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\necho 'pyenv: python3.99: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    code, said = all_tests(f"{sys.executable} {shim} no-such-python", "echo")
    assert code == 0
    assert f"test PYTHON={sys.executable} VENV=.venv-{VERSION}\n" in said
    assert f"passed: {sys.executable}; failed: none; not found: {shim} no-such-python\n" in said


@pytest.mark.parametrize("pythons", [sys.executable, "no-such-python"])
def test_a_failure_and_having_tested_nothing_are_failures(pythons: str) -> None:
    code, said = all_tests(pythons, "false")
    assert code != 0
    assert "passed: none" in said


def test_checkout_without_symbolic_links_says_how_to_get_them(tmp_path: Path) -> None:
    """As git makes it with core.symlinks off: a link is a file with the path that it leads to."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "src/rl_tui").mkdir(parents=True)
    for name in ("src/rl_tui/engine", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text("../../engine")
    words = ["make", "run", f"PYTHON={sys.executable}"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)
    assert "must be a symbolic link: git config core.symlinks true; git checkout -- src\n" in ended.stderr
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("name", ["cudda", "cuda:-2", "cuda:x", "mps", ""])
def test_gpu_checks_of_a_device_that_they_do_not_know_say_which_they_do(name: str, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        check_gpu(["--device", name])
    assert ended.value.code == 2
    assert f"--device: must be cuda, cuda:N or cpu, got {name}\n" in capsys.readouterr().err


def test_gpu_checks_of_a_gpu_too_many_say_how_many_there_are(monkeypatch, capsys) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    with pytest.raises(SystemExit):
        check_gpu(["--device", "cuda:2"])
    assert "--device: cuda:2 is not there; torch finds 2 CUDA devices\n" in capsys.readouterr().err
