"""Groups of processes that many tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.learning.sync.ranks import Ranks, start_ranks


@pytest.fixture(scope="package")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    """Two ranks."""
    with start_ranks(2, tmp_path_factory.mktemp("two")) as ranks:
        yield ranks


@pytest.fixture(scope="package")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    """Three ranks."""
    with start_ranks(3, tmp_path_factory.mktemp("three")) as ranks:
        yield ranks


@pytest.fixture(params=[False, True], ids=["gloo", "shared memory"])
def transport(request: pytest.FixtureRequest, two: Ranks, three: Ranks) -> Iterator[None]:
    """Ranks exchange what they have over gloo, or in memory that they share."""
    for ranks in (two, three):
        ranks.in_memory = request.param
    yield
    for ranks in (two, three):
        ranks.in_memory = False
