"""Files that were cut, flipped, lost, swapped or planted are detected and never executed."""

from __future__ import annotations

import os
import pickle  # noqa: TID251 - hostile ones are made here, to see them refused
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.specs import State
from rl_tui.engine.storage.checkpoint_format import STATE, TENSORS, encode_manifest
from rl_tui.engine.storage.checkpoints import CheckpointStore
from rl_tui.engine.storage.file_names import MANIFEST
from tests.faults.memory import folder_in_memory

FILES = (TENSORS, STATE, MANIFEST)
WEIGHT = np.arange(40, dtype=np.float32)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory."""
    with folder_in_memory() as folder:
        yield folder


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    store = CheckpointStore(tmp_path / "checkpoints", "Walker", 5)
    store.save(1, State({"weight": WEIGHT}, {"step": 1}), 3.5, "interval")
    store.save(2, State({"weight": WEIGHT + 1}, {"step": 2}), 4.5, "interval")
    return store


def assert_first_one_is_taken(store: CheckpointStore) -> None:
    newest = store.newest_valid()
    assert newest.path == store.folder / "Walker-1"
    assert len(newest.skipped) == 1
    assert np.array_equal(store.load(newest.path)[0].tensors["weight"], WEIGHT)


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_at_any_length_is_noticed(store: CheckpointStore, name: str) -> None:
    file = store.folder / "Walker-2" / name
    content = file.read_bytes()
    for length in range(0, len(content), max(1, len(content) // 150)):
        file.write_bytes(content[:length])
        assert_first_one_is_taken(store)


@pytest.mark.parametrize("name", FILES)
def test_any_flipped_bit_is_noticed_or_changes_nothing(store: CheckpointStore, name: str) -> None:
    """Only the manifest has bits without meaning, such as the kind of its white space."""
    file = store.folder / "Walker-2" / name
    content = file.read_bytes()
    luck = random.Random(3)
    harmless = 0
    for _ in range(400):
        flipped = bytearray(content)
        flipped[luck.randrange(len(flipped))] ^= 1 << luck.randrange(8)
        file.write_bytes(flipped)
        try:
            state, checkpoint = store.load(file.parent)
        except CheckpointError:
            continue
        harmless += 1
        assert np.array_equal(state.tensors["weight"], WEIGHT + 1)
        assert (state.values, checkpoint.step, checkpoint.mean_return) == ({"step": 2}, 2, 4.5)
    assert harmless < (20 if name == MANIFEST else 1)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_noticed(store: CheckpointStore, name: str) -> None:
    (store.folder / "Walker-2" / name).unlink()
    assert_first_one_is_taken(store)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "another checkpoint's"])
def test_something_else_in_a_files_place_is_noticed(store: CheckpointStore, name: str, kind: str) -> None:
    file = store.folder / "Walker-2" / name
    other = store.folder / "Walker-1" / name
    file.unlink()
    match kind:
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "link":
            file.symlink_to(other)
        case _:
            shutil.copy(other, file)
    assert_first_one_is_taken(store)


def test_an_empty_folder_or_a_file_named_like_a_checkpoint_is_skipped(store: CheckpointStore) -> None:
    shutil.rmtree(store.folder / "Walker-2")
    (store.folder / "Walker-2").mkdir()
    (store.folder / "Walker-3").write_text("")
    newest = store.newest_valid()
    assert newest.path == store.folder / "Walker-1"
    assert len(newest.skipped) == 2


class Hostile:
    """Unpickling this makes a file."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> object:
        return (Path.touch, (self.trace,))


def test_a_planted_pickle_is_never_executed(store: CheckpointStore, tmp_path: Path) -> None:
    """Instead of each file, with a matching manifest, and next to them."""
    trace = tmp_path / "executed"
    hostile = pickle.dumps(Hostile(trace))
    pickle.loads(hostile)
    assert trace.exists(), "the pickle works"
    trace.unlink()
    folder = store.folder / "Walker-2"
    good = {name: (folder / name).read_bytes() for name in FILES}
    for name in FILES:
        for other, content in good.items():
            (folder / other).write_bytes(content)
        (folder / name).write_bytes(hostile)
        if name != MANIFEST:
            signed = {other: (folder / other).read_bytes() for other in (TENSORS, STATE)}
            (folder / MANIFEST).write_bytes(encode_manifest(signed))
        assert_first_one_is_taken(store)
    for other, content in good.items():
        (folder / other).write_bytes(content)
    for name in ("checkpoint.pt", "data.pkl", "tensors.npy", "__init__.py", "state.pkl"):
        (folder / name).write_bytes(hostile)
    state, _ = store.load(folder)
    assert np.array_equal(state.tensors["weight"], WEIGHT + 1)
    assert not trace.exists()


HOSTILE_MANIFESTS = [
    b"[]",
    b"null",
    b"[" * 50_000,
    b'{"format_version": 1}',
    b'{"format_version": 1, "files": {"../../secret": {"size": 1, "sha256": ""}}}',
    b'{"format_version": 1, "files": {"tensors.safetensors": 1, "state.json": 2}}',
    b" " * 1_000_000,
]


@pytest.mark.parametrize("manifest", HOSTILE_MANIFESTS, ids=range(len(HOSTILE_MANIFESTS)))
def test_a_hostile_manifest_is_refused(store: CheckpointStore, manifest: bytes) -> None:
    (store.folder / "Walker-2" / MANIFEST).write_bytes(manifest)
    assert_first_one_is_taken(store)
