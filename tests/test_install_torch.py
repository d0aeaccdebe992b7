"""Which torch `make run` installs, and what happens where PyTorch's own index cannot be reached."""

from __future__ import annotations

import ctypes.util
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tools import install_torch

SCRIPT = Path(install_torch.__file__)
FROM_CPU_INDEX = " ".join(install_torch.FROM_CPU_INDEX)


class Pip:
    """A pip install command that writes down its arguments; it can fail for PyTorch's index."""

    def __init__(self, folder: Path) -> None:
        self.path, self._log = folder / "pip", folder / "log"
        self.answer(0)

    def answer(self, status_of_cpu_index: int) -> None:
        """With that exit status where the index is named, 0 elsewhere."""
        text = (
            f'echo "$@" >> {self._log}\ncase "$*" in *index-url*) echo refused >&2; exit {status_of_cpu_index};; esac\n'
        )
        self.path.write_text(f"#!/bin/sh\n{text}")
        self.path.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        """The arguments of each call."""
        return self._log.read_text().splitlines()


@pytest.fixture
def pip(tmp_path: Path) -> Pip:
    return Pip(tmp_path)


@pytest.fixture
def linux(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Linux machine without a driver; the folder is its PATH."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(install_torch, "DRIVER", tmp_path / "no-driver")
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def install(choice: str, pip: Pip) -> int:
    return install_torch.main(choice, str(pip.path), "-c", "constraints.txt")


def test_cpu_build_is_taken_where_no_driver_is_found(linux: Path, pip: Pip) -> None:
    assert install("auto", pip) == 0
    assert pip.calls == [f"-c constraints.txt {FROM_CPU_INDEX} torch"]


def test_command_of_the_driver_on_the_path_leaves_it_to_pip(linux: Path, pip: Pip) -> None:
    (linux / "nvidia-smi").write_text("#!/bin/sh\n")
    (linux / "nvidia-smi").chmod(0o755)
    assert install("auto", pip) == 0
    assert pip.calls == ["-c constraints.txt torch"]


def test_loaded_driver_or_its_library_leaves_it_to_pip(
    linux: Path, pip: Pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctypes.util, "find_library", {"cuda": "libcuda.so.1"}.get)
    install("auto", pip)
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    (tmp_path / "no-driver").mkdir()
    install("auto", pip)
    assert pip.calls == ["-c constraints.txt torch"] * 2


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "arm64"), ("Linux", "ppc64le")])
def test_other_machines_leave_it_to_pip(
    linux: Path, pip: Pip, monkeypatch: pytest.MonkeyPatch, system: str, machine: str
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert install("auto", pip) == 0
    assert pip.calls == ["-c constraints.txt torch"]


def test_index_out_of_reach_is_said_and_pip_decides(linux: Path, pip: Pip, capfd: pytest.CaptureFixture[str]) -> None:
    pip.answer(1)
    assert install("auto", pip) == 0
    assert pip.calls == [f"-c constraints.txt {FROM_CPU_INDEX} torch", "-c constraints.txt torch"]
    printed = capfd.readouterr().out
    assert "torch for the CPU could not be installed" in printed
    assert "5.6 GB" in printed


def test_cpu_that_was_asked_for_is_never_replaced_by_gigabytes(pip: Pip) -> None:
    pip.answer(1)
    ended = run("cpu", pip)
    assert ended.returncode == 1
    assert pip.calls == [f"-c constraints.txt {FROM_CPU_INDEX} torch"]
    assert "refused" in ended.stderr
    assert install_torch.CPU_INDEX in ended.stderr


def test_default_is_what_pip_itself_would_take(pip: Pip) -> None:
    assert run("default", pip).returncode == 0
    assert pip.calls == ["-c constraints.txt torch"]


def test_other_words_are_refused(pip: Pip) -> None:
    ended = run("gpu", pip)
    assert (ended.returncode, ended.stderr) == (2, "TORCH must be auto, cpu or default, got gpu\n")


def test_make_hands_over_the_choice_and_the_pinned_versions(tmp_path: Path) -> None:
    words = ["make", "-n", "run", f"VENV={tmp_path}/venv", "TORCH=cpu"]
    printed = subprocess.run(words, cwd=SCRIPT.parents[1], capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in printed.splitlines() if SCRIPT.name in line]
    assert " cpu " in line
    assert line.endswith("-c constraints.txt")


def run(choice: str, pip: Pip) -> subprocess.CompletedProcess[str]:
    """The script as a process of its own."""
    words = [sys.executable, str(SCRIPT), choice, str(pip.path), "-c", "constraints.txt"]
    return subprocess.run(words, env=dict(os.environ), capture_output=True, text=True, check=False)
