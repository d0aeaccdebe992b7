"""What every run of these tests rests on, where a test's subject is not that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rl_tui.engine.storage.disk import Disk


@pytest.fixture(scope="module", autouse=True)
def start_workers_warm(warm_workers: None) -> None:
    """Worker processes are started warm, also those that a module shares."""


@pytest.fixture(scope="module", autouse=True)
def leave_syncing_to_the_system() -> Iterator[None]:
    """Files are not forced onto the medium, which takes a third of a short run: tests/faults cut the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Disk, "sync", lambda _, path: path.stat() and None)
        yield
