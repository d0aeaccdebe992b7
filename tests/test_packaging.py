"""The same files are installed from a checkout, a source distribution and a ZIP archive of the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling.build import build_editable, build_sdist, build_wheel

from tests.deadline import DEADLINE_SECONDS

ROOT = Path(__file__).parents[1]
FOLDERS = ("engine", "tui", "config", "src", "docs", "tools")
FILES = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "constraints.txt", ".gitignore")
LINKS = {"engine": "engine", "tui": "tui", "presets": "config"}  # in src/rl_tui, and the folder that each leads to
GENERATED = "engine/sampling/environments/unity/unity_messages_pb2.py"
RECORDING = "tui/demo/recorded/demo.jsonl.gz"


@pytest.fixture(autouse=True)
def nothing_is_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler of the messages is in the isolated surroundings of a build only; what it made is copied."""
    monkeypatch.setenv("HATCH_BUILD_NO_HOOKS", "true")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of this one."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    return folder


def without_links(checkout: Path) -> Path:
    """What code hosts serve as a ZIP archive, unpacked: a link is a text file."""
    for name, leads_to in LINKS.items():
        link = checkout / "src/rl_tui" / name
        link.unlink()
        link.write_text(f"../../{leads_to}")
    return checkout


def wheel_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files in the wheel that is built there."""
    monkeypatch.chdir(folder)
    with zipfile.ZipFile(folder / build_wheel(str(folder))) as wheel:
        return sorted(wheel.namelist())


def package_of(checkout: Path) -> Iterator[str]:
    """The files that rl_tui is made of."""
    for name, leads_to in LINKS.items():
        folder = checkout / leads_to
        yield from (f"rl_tui/{name}/{path.relative_to(folder)}" for path in folder.rglob("*") if path.is_file())
    yield from (f"rl_tui/{path.name}" for path in (checkout / "src/rl_tui").iterdir() if not path.is_symlink())


def test_wheels_of_a_checkout_a_source_distribution_and_an_archive_hold_the_same(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = sorted(package_of(checkout))
    assert {f"rl_tui/{GENERATED}", f"rl_tui/{RECORDING}"} <= {*expected}
    of_checkout = wheel_of(checkout, monkeypatch)
    assert [name for name in of_checkout if ".dist-info/" not in name] == expected

    with tarfile.open(checkout / build_sdist(str(checkout))) as archive:
        archive.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.glob("rl_tui-*")
    assert wheel_of(unpacked, monkeypatch) == of_checkout
    assert {path.name for path in (unpacked / "docs").iterdir()} == {path.name for path in (ROOT / "docs").iterdir()}

    assert wheel_of(without_links(checkout), monkeypatch) == of_checkout


def test_installed_wheel_finds_its_presets(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacked, which is all that pip does with a wheel besides writing the command."""
    wheel_of(without_links(checkout), monkeypatch)
    with zipfile.ZipFile(next(checkout.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "installed")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rl_tui", "presets"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "ppo/CartPole" in done.stdout


def test_editable_installation_puts_the_folder_of_the_links_on_the_path(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    with zipfile.ZipFile(checkout / build_editable(str(checkout))) as wheel:
        [path] = [name for name in wheel.namelist() if ".dist-info/" not in name]
        assert wheel.read(path).decode().split() == [str(checkout / "src")]


@pytest.mark.slow
def test_pip_builds_an_archive_with_the_messages_compiled(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `pip install .`, `pipx` and `uv` do, in surroundings of its own, which need a package index."""
    monkeypatch.delenv("HATCH_BUILD_NO_HOOKS")
    folder = without_links(checkout)
    expected = {*package_of(folder)} - {f"rl_tui/{name}" for name in LINKS}
    for generated in folder.glob(f"{GENERATED}*"):
        generated.unlink()
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(folder)]
    subprocess.run(words, check=True, timeout=DEADLINE_SECONDS)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected
