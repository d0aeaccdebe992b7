"""Of a disk that these tests damage, only a model is ever without power."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module", autouse=True)
def leave_syncing_to_the_system(unsynced_disk: None) -> None:
    """The model notes what was to be synced."""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory, where there is a gibibyte: thousands of folders are removed, which takes 3 ms each on a disk."""
    has_room = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 2**30
    with tempfile.TemporaryDirectory(dir=MEMORY if has_room else None) as folder:
        yield Path(folder)
