"""What crosses between a worker and the training process: blocks, weights and counters."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
import pytest

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.collecting.counters import Counters, Counts, Times
from rl_tui.engine.sampling.collecting.shared_blocks import BlockHeader, BlockReader, BlockWriter
from rl_tui.engine.sampling.collecting.shared_weights import SharedWeights, WeightsReader
from rl_tui.engine.sampling.pools.shared_memory import anonymous_file
from rl_tui.engine.specs import GatheredStatistic, Trajectories, Weights
from tests.fakes import RandomPolicy
from tests.learning.rollouts import SPEC, acted


@pytest.fixture
def file() -> Iterator[int]:
    """A file in memory, with a page that others use."""
    descriptor = anonymous_file("test")
    os.truncate(descriptor, 4096)
    yield descriptor
    os.close(descriptor)


def block_of(num_rows: int, seed: int = 0) -> Trajectories:
    """A block with everything that may be absent."""
    plain = acted(RandomPolicy(SPEC.actions), np.random.default_rng(seed), [num_rows - 1, 1])
    histogram = GatheredStatistic("histogram", 3.0, 2, 1.0, num_not_finite=1)
    histogram.values.extend([2.0, 1.0])
    return replace(
        plain,
        group_ids=np.arange(num_rows),
        step_numbers=np.arange(num_rows),
        next_mate_counts=np.array([1, 0]),
        next_mate_observations=tuple([o[:1] for o in plain.observations]),
        departed=np.array([7, 9]),
        measured={"speed": (2.5, 3)},
        statistics={"height": histogram},
    )


def require_equal(first: Trajectories, second: Trajectories) -> None:
    for field in fields(Trajectories):
        ours, theirs = getattr(first, field.name), getattr(second, field.name)
        if isinstance(ours, tuple):
            assert len(ours) == len(theirs)
            for one, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(one, other)
                assert one.dtype == other.dtype
        elif isinstance(ours, np.ndarray):
            np.testing.assert_array_equal(ours, theirs)
            assert ours.dtype == theirs.dtype
        else:
            assert ours == theirs, field.name


def test_a_block_arrives_as_it_was_written(file: int) -> None:
    writer, reader = BlockWriter(file, has_checksums=True), BlockReader(file)
    headers = []
    for number, num_rows in enumerate((5, 3000, 2)):  # the second one does not fit into what the first one made
        block = block_of(num_rows, number)
        header = BlockHeader.from_json(writer.write("B", block, num_copied=number).to_json())
        require_equal(reader.read(header), block)
        headers.append(header)
    assert len({header.begin for header in headers}) == 1, "what was copied is overwritten"


def test_a_block_stays_until_it_is_copied(file: int) -> None:
    writer, reader = BlockWriter(file), BlockReader(file)
    blocks = [block_of(num_rows, num_rows) for num_rows in (40, 50, 60)]
    headers = [writer.write("B", block, num_copied=0) for block in blocks]
    for header, block in zip(headers, blocks, strict=True):
        require_equal(reader.read(header), block)


def test_a_copy_is_no_view(file: int) -> None:
    writer, reader = BlockWriter(file), BlockReader(file)
    first = reader.read(writer.write("B", block_of(30, 1), 0))
    kept = first.rewards.copy()
    writer.write("B", block_of(30, 2), 1)
    np.testing.assert_array_equal(first.rewards, kept)


def test_a_torn_or_missing_block_is_refused(file: int) -> None:
    writer, reader = BlockWriter(file, has_checksums=True), BlockReader(file)
    first, second = writer.write("B", block_of(30), 0), writer.write("B", block_of(30), 0)
    with pytest.raises(ValueError, match="block 1 must come next, got block 2"):
        reader.read(second)
    os.pwrite(file, b"torn", first.begin + 8)
    with pytest.raises(ValueError, match="block 1 must have the checksum"):
        BlockReader(file).read(first)


def test_the_newest_weights_are_read() -> None:
    shared, random = SharedWeights(), np.random.default_rng(0)
    try:
        for version in (3, 4):
            arrays = {
                "a": random.random((3, 2), dtype=np.float32),
                "b": random.random(5, dtype=np.float32),
                "c": np.zeros((0,), np.float32),
            }
            if version == 4:
                arrays = {name: arrays[name] for name in sorted(arrays, reverse=True)}  # as a file may
            for name in ("Walker", "Runner"):
                shared.write(name, Weights(version, arrays))
            reader = WeightsReader(shared.descriptor, shared.place("Runner"))
            assert reader.version == version
            read = reader.read()
            assert read.version == version
            assert read.arrays.keys() == arrays.keys()
            for name, array in arrays.items():
                np.testing.assert_array_equal(read.arrays[name], array)
    finally:
        shared.close()


def test_weights_that_are_written_meanwhile_are_read_whole() -> None:
    """Numpy copies arrays of this size without the interpreter lock."""
    shared, is_over = SharedWeights(), threading.Event()

    def write() -> None:
        version = 0
        while not is_over.is_set():
            version += 1
            arrays = {name: np.full(200_000, version, np.float32) for name in "abc"}
            shared.write("Runner", Weights(version, arrays))

    shared.write("Runner", Weights(0, {name: np.zeros(200_000, np.float32) for name in "abc"}))
    reader = WeightsReader(shared.descriptor, shared.place("Runner"))
    writer = threading.Thread(target=write)
    writer.start()
    try:
        versions = []
        while len(set(versions)) < 100:
            weights = reader.read()
            versions.append(weights.version)
            for array in weights.arrays.values():
                assert array.min() == array.max() == weights.version
    finally:
        is_over.set()
        writer.join()
        shared.close()
    assert versions == sorted(versions)


def test_counters_are_seen_on_the_other_side(file: int) -> None:
    ours, theirs = Counters(file, 4096), Counters(file, 4096)
    theirs.count(2, Counts(5, 4, 3, 2, 1))
    theirs.spend(1.5, 0.25)
    ours.note_copied(7)
    assert (ours.counts(0), ours.counts(2)) == (Counts(), Counts(5, 4, 3, 2, 1))
    assert ours.times == Times(1.5, 0.25, 0.0)
    assert theirs.num_copied == 7
    with pytest.raises(EnvironmentFailure, match="must have at most 408 behaviors, got 10001"):
        theirs.count(10_000, Counts())


def test_a_wait_is_counted_while_it_lasts(file: int) -> None:
    """An update may take minutes, and the worker can write nothing meanwhile."""
    ours, theirs = Counters(file, 0), Counters(file, 0)
    theirs.begin_wait()
    during = ours.times.waiting
    later = ours.times.waiting
    theirs.end_wait()
    after = ours.times.waiting
    assert 0 < during < later < after
    assert ours.times.waiting == after
    theirs.begin_wait()
    assert ours.times.waiting > after
