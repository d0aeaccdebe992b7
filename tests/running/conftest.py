"""Worker processes are started warm, but where a test's subject is how they start or end."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def start_workers_warm(warm_workers: None) -> None:
    """For every test of this folder, and what a module shares."""
