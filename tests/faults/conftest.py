"""Of a disk that these tests damage, only a model is ever without power."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def leave_syncing_to_the_system(unsynced_disk: None) -> None:
    """The model notes what was to be synced."""
