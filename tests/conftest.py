"""What every test may rely on: plain surroundings, and ML-Agents' own files where they are at hand."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.packages import Packages

if TYPE_CHECKING:
    import torch

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # read when torch and numpy are imported
    os.environ.setdefault(name, "1")  # while several processes test, more threads only wait for each other, busily
gc.disable()  # until everything is imported
settings.register_profile("few examples", max_examples=40, deadline=None)  # of each property, in `make test`
settings.register_profile("many examples", max_examples=1000, deadline=None)  # in `make test-slow`
settings.load_profile("few examples")


def pytest_collection_finish() -> None:
    """Torch, Textual and thousands of tests stay: searching them for garbage is a quarter of the time of some tests."""
    gc.freeze()
    gc.set_threshold(5000)  # an app leaves 20 000 objects behind, and was searched 30 times meanwhile
    gc.enable()


@pytest.fixture(autouse=True)
def plain_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test depends on the terminal, the colors or the language of its user."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "PYTHONUNBUFFERED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")


@pytest.fixture(scope="session", autouse=True)
def plain_signals() -> None:
    """Nor on what a shell makes its background jobs ignore, which every process that a test starts would inherit."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def mlagents_data() -> Path:
    """The folder of ML-Agents' own configurations, demonstrations and results; skips where it is not at hand."""
    folder = os.environ.get("MLAGENTS_DATA")
    if not folder:
        pytest.skip("MLAGENTS_DATA is not set: no sample files of ML-Agents here")
    return Path(folder)


@pytest.fixture(params=["pretended", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    """A device other than the CPU: a pretended one on every machine, with `make gpu` a real one."""
    from tests.devices import opened  # with torch, which most tests do without

    with opened(request.param) as found:
        yield found


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def torch_device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    """Where torch computes what is compared with numpy: the CPU, with `make gpu` a real device."""
    from tests.devices import opened

    with opened(request.param) as found:
        yield found


@pytest.fixture(scope="module")
def warm_workers() -> Iterator[None]:
    """Workers of pools and stand-in players are forked from a process with all imports. They are none the less real."""
    from tests.warm_start import WarmSubprocess, warm_parent  # few tests start a process

    warm_parent()  # before a test looks at the children of this process
    with pytest.MonkeyPatch.context() as patch:
        for module in ("pools.child", "environments.unity.player"):
            patch.setattr(f"rl_tui.engine.sampling.{module}.subprocess", WarmSubprocess("subprocess"))
        yield


@pytest.fixture(scope="module")
def unsynced_disk() -> Iterator[None]:
    """Files are not forced onto the medium, which takes a third of a short run by the clock."""
    from rl_tui.engine.storage.disk import Disk

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Disk, "sync", lambda _, path: path.stat() and None)
        yield


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Packages]:
    """A folder to install packages into, which this process searches."""
    found = Packages(tmp_path / "packages")
    monkeypatch.syspath_prepend(found.folder)
    yield found
    found.remove()
