"""Checkpoints of one behavior: what comes back, what stays, what is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_tui.engine.errors import CheckpointError, NonFiniteError
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Json, ObservationSpec, State
from rl_tui.engine.storage.checkpoint_format import STATE, TENSORS, describe, encode_manifest
from rl_tui.engine.storage.checkpoints import CheckpointStore, require_same_keys
from rl_tui.engine.storage.file_names import MANIFEST
from rl_tui.engine.version import VERSION

SPEC = BehaviorSpec(
    "Walker", (ObservationSpec("body", (3,)), ObservationSpec("feet", (2, 2), is_goal=True)), ActionSpec(2, (3, 4))
)


def a_state(number: float = 0.0) -> State:
    tensors = {
        "policy.weight": np.full((3, 2), number, np.float32),
        "normalizer.count": np.array(7, np.int64),
        "rng": np.arange(256, dtype=np.uint8),
        "mask": np.array([True, False]),
        "empty": np.zeros((0, 4), np.float64),
    }
    return State(tensors, {"step": 12, "schedule": {"rate": 0.5, "names": ["a", "b"]}, "generator": 2**127 + 1})


def a_store(folder: Path, keep: int = 5) -> CheckpointStore:
    return CheckpointStore(folder / "Walker" / "checkpoints", "Walker", keep, SPEC)


def assert_same(found: State, expected: State) -> None:
    assert found.values == expected.values
    assert found.tensors.keys() == expected.tensors.keys()
    for name, array in expected.tensors.items():
        assert found.tensors[name].dtype == array.dtype
        assert found.tensors[name].shape == array.shape
        assert np.array_equal(found.tensors[name], array)


def test_a_saved_state_comes_back_whole(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    path = store.save(1000, a_state(1.5), 12.25, "interval")
    assert path == tmp_path / "Walker" / "checkpoints" / "Walker-1000"
    assert sorted(os.listdir(path)) == [MANIFEST, STATE, TENSORS]
    assert os.listdir(store.folder) == ["Walker-1000"]
    state, checkpoint = a_store(tmp_path).load(path)
    assert_same(state, a_state(1.5))
    assert (checkpoint.behavior, checkpoint.step, checkpoint.mean_return) == ("Walker", 1000, 12.25)
    assert (checkpoint.reason, checkpoint.program_version, checkpoint.spec) == ("interval", VERSION, SPEC)
    assert checkpoint.size_bytes == sum(entry.stat().st_size for entry in path.iterdir())
    assert not checkpoint.is_from_other_version


def test_loaded_arrays_are_writable(tmp_path: Path) -> None:
    state, _ = a_store(tmp_path).load(a_store(tmp_path).save(1, a_state(), None, "final"))
    for array in state.tensors.values():
        array[...] = 1


def test_transposed_and_strided_arrays_and_scalars_keep_their_values(tmp_path: Path) -> None:
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    tensors = {"transposed": grid.T, "strided": grid[::2, ::-1], "scalar": np.float32(3)}
    path = a_store(tmp_path).save(1, State(tensors), None, "asked")
    loaded, _ = a_store(tmp_path).load(path)
    assert np.array_equal(loaded.tensors["transposed"], grid.T)
    assert np.array_equal(loaded.tensors["strided"], grid[::2, ::-1])
    assert loaded.tensors["scalar"].shape == ()


def test_the_oldest_goes_when_one_more_is_saved(tmp_path: Path) -> None:
    store = a_store(tmp_path, keep=2)
    removed = []
    for step in (1, 2, 3, 4):
        store.save(step, a_state(), None, "interval")
        removed += [checkpoint.step for checkpoint in store.prune()]
    assert removed == [1, 2]
    assert sorted(os.listdir(store.folder)) == ["Walker-3", "Walker-4"]


def test_the_best_by_return_is_kept_besides(tmp_path: Path) -> None:
    store = a_store(tmp_path, keep=2)
    for step, mean_return in ((1, 5.0), (2, 90.0), (3, 10.0), (10, float("nan")), (20, 20.0), (30, None)):
        store.save(step, a_state(), mean_return, "interval")
        store.prune()
    assert [checkpoint.step for checkpoint in store.list()] == [2, 20, 30]
    best = store.best()
    assert best is not None
    assert best.step == 2


def test_the_best_is_of_the_newest_lessons_with_a_known_return(tmp_path: Path) -> None:
    """An easy lesson is no measure of a hard one; lessons are shown from 1, and saved from 0."""
    store = a_store(tmp_path, keep=2)
    saved = ((1, 90.0, 0), (2, 10.0, 1), (3, 30.0, 1), (4, 20.0, 1), (5, 15.0, 1), (6, None, 2))
    for step, mean_return, lesson in saved:
        lessons = State(values={"lessons": {"wall": lesson}, "smoothed": {}})
        store.save(step, State.merge({"trainer": a_state(), "lessons": lessons}), mean_return, "interval")
        store.prune()
    assert [(checkpoint.step, checkpoint.lessons) for checkpoint in store.list()] == [
        (3, {"wall": 2}),
        (5, {"wall": 2}),
        (6, {"wall": 3}),
    ]
    best = store.best()
    assert best is not None
    assert best.step == 3


def test_of_equal_returns_the_first_is_the_best(tmp_path: Path) -> None:
    store = a_store(tmp_path, keep=1)
    for step in (1, 2, 3):
        store.save(step, a_state(), 500.0, "interval")
        store.prune()
    assert [checkpoint.step for checkpoint in store.list()] == [1, 3]


@pytest.mark.parametrize("keep", [1, 0])
def test_of_those_by_the_clock_the_newest_is_kept_and_takes_no_other_ones_place(tmp_path: Path, keep: int) -> None:
    """Not even the best of them: else one that is to be kept for its return could go for one that is not."""
    store = a_store(tmp_path, keep)
    saves = ((1, 90.0, "interval"), (2, 95.0, "clock"), (3, 10.0, "interval"), (4, 5.0, "clock"), (5, None, "clock"))
    for step, mean_return, reason in saves:
        store.save(step, a_state(), mean_return, reason)  # type: ignore[arg-type] # a literal
        store.prune()
    assert [checkpoint.step for checkpoint in store.list()] == [1, 3, 5]
    assert store.newest_valid().path == store.folder / "Walker-5"


def test_a_step_saved_by_the_clock_is_saved_again_where_it_is_to_be_kept(tmp_path: Path) -> None:
    store = a_store(tmp_path, keep=1)
    for step, reason in ((5, "clock"), (5, "clock"), (5, "asked"), (5, "final"), (5, "clock"), (6, "clock")):
        store.save(step, a_state(), None, reason)  # type: ignore[arg-type] # a literal
        store.prune()
    assert [(checkpoint.path.name, checkpoint.reason) for checkpoint in store.list()] == [
        ("Walker-5.2", "asked"),
        ("Walker-6", "clock"),
    ]


@pytest.mark.parametrize("keep", [0, -1])
def test_keeping_zero_or_less_keeps_all(tmp_path: Path, keep: int) -> None:
    store = a_store(tmp_path, keep)
    for step in range(8):
        store.save(step, a_state(), None, "interval")
        assert store.prune() == ()
    assert [checkpoint.step for checkpoint in store.list()] == list(range(8))


def test_steps_are_ordered_as_numbers(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    for step in (900, 10_000, 2_000):
        store.save(step, a_state(), None, "interval")
    assert store.newest_valid().path == store.folder / "Walker-10000"
    assert [checkpoint.step for checkpoint in store.list()] == [900, 2_000, 10_000]


def test_a_finished_checkpoint_is_never_overwritten(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    path = store.save(5, a_state(1.0), 1.0, "interval")
    before = {entry.name: (entry.stat().st_ino, entry.read_bytes()) for entry in path.iterdir()}
    assert store.save(5, a_state(1.0), 2.0, "final") == path
    assert store.save(5, a_state(2.0), 2.0, "final").name == "Walker-5.2", "as after a program has loaded other weights"
    assert {entry.name: (entry.stat().st_ino, entry.read_bytes()) for entry in path.iterdir()} == before


def with_values(number: float, **values: Json) -> State:
    return State(a_state(number).tensors, a_state().values | values)


def test_a_step_with_other_values_is_saved_beside_and_is_the_newer_one(tmp_path: Path) -> None:
    """As after a hyperparameter was set between two checkpoints of one step."""
    store = a_store(tmp_path)
    for number in (1, 2, 10, 11):
        name = "Walker-5" if number == 1 else f"Walker-5.{number if number < 10 else number - 7}"
        assert store.save(5, with_values(number, beta=number), None, "asked").name == name
    store.save(50, a_state(), None, "interval")
    store.save(6, a_state(), None, "interval")
    assert store.save(5, with_values(11, beta=11), None, "final").name == "Walker-5.4", "the newest holds these"
    assert [path.path.name for path in store.list()] == [
        *("Walker-5", "Walker-5.2", "Walker-5.3", "Walker-5.4"),
        *("Walker-6", "Walker-50"),
    ]
    for step in (50, 6):
        shutil.rmtree(store.folder / f"Walker-{step}")
    newest = a_store(tmp_path).newest_valid()
    assert newest.path is not None
    assert_same(store.load(newest.path)[0], with_values(11, beta=11))
    (newest.path / TENSORS).write_bytes(b"")
    assert store.save(5, with_values(12, beta=12), None, "asked").name == "Walker-5.4", "a damaged one gives its name"
    assert_same(store.load(newest.path)[0], with_values(12, beta=12))


def test_only_its_own_checkpoints_have_newer_ones(tmp_path: Path) -> None:
    store, other = a_store(tmp_path), CheckpointStore(tmp_path / "Crawler" / "checkpoints", "Crawler", 5)
    paths = [store.save(step, a_state(), None, "interval") for step in (5, 100, 20)]
    assert store.newer_than(paths[0]) == (paths[2], paths[1])
    assert store.newer_than(paths[1]) == ()
    theirs = other.save(5, a_state(), None, "interval")
    for path in (theirs, store.folder, store.folder / "Walker-6", store.folder / ".." / "checkpoints" / "Walker-5"):
        with pytest.raises(CheckpointError, match=re.escape(str(path))):
            store.newer_than(path)


def test_a_checkpoint_set_aside_keeps_its_content_and_takes_no_other_ones_name(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    aside = [store.set_aside(store.save(5, a_state(number), None, "interval")) for number in (1.0, 2.0, 3.0)]
    assert [path.name for path in aside] == ["Walker-5", "Walker-5.2", "Walker-5.3"]
    assert {path.parent for path in aside} == {store.folder.with_name("checkpoints.abandoned")}
    for path, number in zip(aside, (1.0, 2.0, 3.0), strict=True):
        assert_same(store.load(path)[0], a_state(number))
    assert store.list() == ()


def test_a_damaged_checkpoint_of_the_same_step_is_replaced(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    path = store.save(5, a_state(1.0), None, "interval")
    (path / TENSORS).write_bytes(b"short")
    store.save(5, a_state(2.0), None, "interval")
    assert_same(store.load(path)[0], a_state(2.0))
    assert os.listdir(store.folder) == ["Walker-5"]


def test_a_damaged_newest_is_skipped_with_its_reason(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    for step in (1, 2, 3):
        store.save(step, a_state(step), None, "interval")
    (store.folder / "Walker-3" / MANIFEST).unlink()
    (store.folder / "Walker-2" / TENSORS).write_bytes(b"")
    newest = store.newest_valid()
    assert newest.path == store.folder / "Walker-1"
    assert len(newest.skipped) == 2
    assert f"Walker-3/{MANIFEST}: " in newest.skipped[0]
    assert f"Walker-2/{TENSORS}: " in newest.skipped[1]


def test_when_none_is_valid_the_reasons_are_listed(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    for step in (1, 2):
        (store.save(step, a_state(), None, "interval") / STATE).write_text("{}")
    with pytest.raises(CheckpointError, match=rf"Walker-2/{STATE}(.|\n)*Walker-1/{STATE}"):
        store.newest_valid()


def test_a_folder_without_checkpoints_has_no_newest(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    assert store.newest_valid().path is None
    assert store.list() == ()
    assert store.best() is None
    assert not store.folder.exists(), "reading makes nothing"


def test_leftovers_of_a_dead_writer_are_swept_by_the_next_one_only(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    store.save(1, a_state(), None, "interval")
    leftover = store.folder / ".tmp-Walker-2"
    leftover.mkdir()
    (leftover / TENSORS).write_bytes(b"half")
    (store.folder / "notes.txt").write_text("of the user")
    reader = a_store(tmp_path)
    assert reader.newest_valid().skipped == ()
    assert leftover.exists(), "a reader of a live run takes nothing away"
    a_store(tmp_path).open()
    assert sorted(os.listdir(store.folder)) == ["Walker-1", "notes.txt"]


def test_sweeping_removes_links_without_following_them(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("here")
    store = a_store(tmp_path)
    store.folder.mkdir(parents=True)
    (store.folder / ".tmp-Walker-1").symlink_to(precious)
    (store.folder / ".tmp-Walker-2").mkdir()
    (store.folder / ".tmp-Walker-2" / "inner").symlink_to(precious)
    store.open()
    assert os.listdir(store.folder) == []
    assert (precious / "file").read_text() == "here"


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_state_that_is_not_finite_is_never_published(tmp_path: Path, number: float) -> None:
    store = a_store(tmp_path)
    store.save(1, a_state(1.0), None, "interval")
    with pytest.raises(NonFiniteError, match=r"Walker-2: .* policy.weight: 6 of 6 "):
        store.save(2, a_state(number), None, "interval")
    with pytest.raises(NonFiniteError, match=r"values.a\[1\].b "):
        store.save(2, State({}, {"a": [1.0, {"b": number}]}), None, "interval")
    assert os.listdir(store.folder) == ["Walker-1"]


def test_an_array_that_cannot_be_written_is_refused_before_anything_is(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    with pytest.raises(CheckpointError, match=r"Walker-1: .*complex128"):
        store.save(1, State({"spectrum": np.zeros(3, np.complex128)}), None, "asked")
    with pytest.raises(CheckpointError, match=TENSORS):
        store.save(1, State({"__metadata__": np.zeros(3)}), None, "asked")
    assert os.listdir(store.folder) == []


def test_another_behaviors_checkpoint_is_not_taken(tmp_path: Path) -> None:
    path = a_store(tmp_path).save(1, a_state(), None, "interval")
    other = CheckpointStore(path.parent, "Crawler", 5)
    with pytest.raises(CheckpointError, match=r"Crawler.*Walker"):
        other.load(path)


def test_a_checkpoint_of_another_program_version_loads_and_says_so(tmp_path: Path) -> None:
    path = a_store(tmp_path).save(1, a_state(2.0), None, "interval")
    rewrite_state(path, program_version="0.0.9")
    state, checkpoint = a_store(tmp_path).load(path)
    assert_same(state, a_state(2.0))
    assert checkpoint.is_from_other_version
    assert checkpoint.program_version == "0.0.9"


def test_a_checkpoint_of_another_format_is_refused_by_number(tmp_path: Path) -> None:
    path = a_store(tmp_path).save(1, a_state(), None, "interval")
    rewrite_state(path, format_version=2)
    with pytest.raises(CheckpointError, match=f"{STATE}: .* 1, got 2"):
        a_store(tmp_path).load(path)


def seen(observation: dict[str, object]) -> dict[str, object]:
    """A spec in JSON with this observation only."""
    return {"name": "W", "observations": [observation], "actions": {"continuous": 1, "branches": []}}


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        ({"name": "eye", "shape": [4, 4, 3], "dtype": "uint8", "is_goal": False}, ("eye", (4, 4, 3), "uint8", False)),
        ({"name": "aim", "shape": [2], "dtype": "float32", "is_goal": True}, ("aim", (2,), "float32", True)),
        ({"name": "speed", "shape": [2]}, ("speed", (2,), "float32", False)),
    ],
)
def test_every_kind_of_observation_is_read_and_one_without_a_type_is_a_vector_of_floats(
    tmp_path: Path, observation: dict[str, object], expected: tuple[Any, ...]
) -> None:
    path = a_store(tmp_path).save(1, a_state(), None, "interval")
    rewrite_state(path, spec=seen(observation))
    spec = describe(path).spec
    assert spec is not None
    assert spec.observations == (ObservationSpec(*expected),)


@pytest.mark.parametrize(
    "change",
    [
        {"step": "many"},
        {"values": []},
        {"spec": {}},
        {"spec": {"name": "W", "observations": [3], "actions": {"continuous": 1, "branches": []}}},
        {"spec": {"name": "W", "observations": [], "actions": {"continuous": 1, "branches": ["x"]}}},
        {"spec": seen({"name": "eye", "shape": [2], "dtype": "int8"})},
        {"spec": seen({"name": "eye", "shape": [2], "is_goal": 1})},
    ],
)
def test_a_description_of_the_wrong_form_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = a_store(tmp_path).save(1, a_state(), None, "interval")
    rewrite_state(path, **change)
    with pytest.raises(CheckpointError, match=STATE):
        a_store(tmp_path).load(path)


def rewrite_state(path: Path, **change: object) -> None:
    """Change entries of state.json and keep the manifest true."""
    body = json.loads((path / STATE).read_text()) | change
    (path / STATE).write_text(json.dumps(body))
    sign(path)


def sign(path: Path) -> None:
    files = {name: (path / name).read_bytes() for name in (TENSORS, STATE)}
    (path / MANIFEST).write_bytes(encode_manifest(files))


def test_a_name_that_cannot_name_a_file_gets_a_slug_inside_the_folder(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "checkpoints", "../../Evil?team=1", 5)
    path = store.save(3, a_state(), None, "final")
    assert path.parent == store.folder
    assert path.name.startswith("Evil-team-1-")
    assert store.load(path)[1].behavior == "../../Evil?team=1"
    assert os.listdir(tmp_path) == ["checkpoints"]


def test_same_keys_are_no_difference() -> None:
    """All that can differ is in the catalog of messages."""
    arrays = {"a": np.zeros(3, np.float32), "b": np.zeros((2, 2), np.float32)}
    require_same_keys(arrays, dict(arrays))


def test_a_folder_that_cannot_be_made_is_a_checkpoint_error(tmp_path: Path) -> None:
    (tmp_path / "Walker").write_text("a file where the folder should be")
    with pytest.raises(CheckpointError, match="Walker/checkpoints: "):
        a_store(tmp_path).save(1, a_state(), None, "interval")


def test_a_file_in_the_folders_place_cannot_be_read_as_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("")
    with pytest.raises(CheckpointError, match="/checkpoints: "):
        CheckpointStore(tmp_path / "checkpoints", "Walker", 5).newest_valid()
