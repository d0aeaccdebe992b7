"""What every run of these tests rests on, where a test's subject is not that."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def start_workers_warm(warm_workers: None) -> None:
    """Worker processes are started warm, also those that a module shares."""


@pytest.fixture(scope="module", autouse=True)
def leave_syncing_to_the_system(unsynced_disk: None) -> None:
    """tests/faults cut the power, of a model of the disk."""


@pytest.fixture(autouse=True)
def watch_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What plays for a picture is as important as anything: on a busy machine it would not start within its minute."""
    monkeypatch.setattr("rl_tui.engine.running.watching.viewer.NICENESS", 0)
