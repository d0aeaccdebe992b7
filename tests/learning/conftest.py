"""Small matrices are multiplied fastest by one thread, as in a run on a small machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import threadpoolctl
import torch


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """BLAS and torch use one thread within these tests."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        yield
    torch.set_num_threads(before)
