"""What is read from files of every form, and how steps are paired."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.demonstrations import demonstration_file
from rl_tui.engine.demonstrations.file_writer import Episode
from rl_tui.engine.demonstrations.opening import open_demonstrations
from rl_tui.engine.demonstrations.record_columns import NO_LAYOUT
from rl_tui.engine.demonstrations.recorded import RecordedDemonstrations
from rl_tui.engine.errors import DemonstrationError
from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import PNG, AgentInfoProto, ObservationProto
from rl_tui.engine.specs import CUT, TERMINATED, TRUNCATED, BehaviorSpec, Ending, ObservationSpec, UnityPackage
from tests.demonstrations.raw_files import brain, info, old_brain, raw_file, record
from tests.demonstrations.recordings import CHOICES, EVERY_KIND, IMAGES, VECTORS, episode, episodes, write
from tests.unity_player.images import png

LENGTHS = [(5, Ending.TERMINATED), (3, Ending.TRUNCATED), (1, Ending.TERMINATED), (4, Ending.CUT)]


def require_equal(opened: RecordedDemonstrations, recorded: list[Episode]) -> None:
    """The steps are those of the episodes, whichever rows are asked for."""
    lengths = [len(each.rewards) for each in recorded]
    ends = np.cumsum(lengths)
    assert opened.num_steps == sum(lengths)
    assert opened.episodes.tolist() == [[end - length, end] for end, length in zip(ends, lengths, strict=True)]
    assert opened.steps.endings[ends - 1].tolist() == [each.ending for each in recorded]
    assert np.count_nonzero(opened.steps.endings) == sum(each.ending != CUT for each in recorded)
    np.testing.assert_array_equal(opened.steps.rewards, np.concatenate([each.rewards for each in recorded]))
    chance = np.random.default_rng(3)
    for rows in (np.arange(opened.num_steps), chance.integers(0, opened.num_steps, 40), np.empty(0, np.int64)):
        steps = opened.transitions(rows)
        for index, one in enumerate(opened.spec.observations):
            columns = [each.observations[index] for each in recorded]
            before = np.concatenate([column[:-1] for column in columns])[rows]
            after = np.concatenate([column[1:] for column in columns])[rows]
            assert steps.observations[index].dtype == one.dtype
            np.testing.assert_array_equal(steps.observations[index], before)
            np.testing.assert_array_equal(steps.next_observations[index], after)
        continuous = np.concatenate([each.continuous for each in recorded])[rows]
        np.testing.assert_array_equal(steps.continuous_actions, continuous)
        np.testing.assert_array_equal(steps.discrete_actions, np.concatenate([e.discrete for e in recorded])[rows])
        np.testing.assert_array_equal(steps.endings, opened.steps.endings[rows])


@pytest.mark.parametrize("keep_bytes", [0, 2**29], ids=["decoded each time", "kept"])
@pytest.mark.parametrize("spec", [EVERY_KIND, VECTORS, CHOICES, IMAGES], ids=lambda spec: spec.name)
def test_what_was_written_is_read(tmp_path: Path, spec: BehaviorSpec, keep_bytes: int) -> None:
    recorded = episodes(spec, LENGTHS)
    opened = open_demonstrations(write(tmp_path / "walk.demo", spec, recorded), keep_bytes=keep_bytes)
    assert opened.spec == spec
    require_equal(opened, recorded)


def test_masks_are_read_and_allow_what_was_chosen(tmp_path: Path) -> None:
    recorded = [episode(CHOICES, 6, Ending.TERMINATED, 1, has_mask=True), episode(CHOICES, 2, Ending.TERMINATED, 2)]
    opened = open_demonstrations(write(tmp_path / "walk.demo", CHOICES, recorded))
    mask = opened.transitions(np.arange(8)).action_mask
    assert mask is not None
    np.testing.assert_array_equal(mask[:6], recorded[0].action_mask)
    assert mask[6:].all()


def test_choice_that_the_mask_forbids_was_taken_all_the_same(tmp_path: Path) -> None:
    """Unity asks no mask when a person plays."""
    forbidden = [True, True, False]
    records = [record(info([0.0], action_mask=forbidden), discrete_actions=[1]), record(info([1.0]))]
    opened = open_demonstrations(raw_file(tmp_path / "a.demo", brain(0, [3]), records))
    mask = opened.transitions(np.arange(1)).action_mask
    assert mask is not None
    assert mask.tolist() == [[False, True, True]]


def test_mask_of_another_size_allows_everything(tmp_path: Path) -> None:
    records = [record(info([0.0], action_mask=[True]), discrete_actions=[1]), record(info([1.0]))]
    opened = open_demonstrations(raw_file(tmp_path / "a.demo", brain(0, [3]), records))
    assert opened.transitions(np.arange(1)).action_mask is None


def test_many_blocks_are_read_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = episodes(EVERY_KIND, [(7, Ending.TERMINATED)] * 5)
    path = write(tmp_path / "walk.demo", EVERY_KIND, recorded)
    for block_bytes in (1, 50, 7000, 20_000):  # the first are smaller than a record
        monkeypatch.setattr(demonstration_file, "_BLOCK_BYTES", block_bytes)
        require_equal(open_demonstrations(path, keep_bytes=0), recorded)


@pytest.mark.parametrize("ids", [[1, 1, 1, 1, 1, 1], [1, 1, 2, 2, 2, 3]], ids=["the same id", "an id per episode"])
@pytest.mark.parametrize("is_old", [False, True])
def test_end_of_an_episode_is_not_paired_with_the_beginning_of_the_next(
    tmp_path: Path, ids: list[int], is_old: bool
) -> None:
    """ML-Agents makes a step of records 1 and 2, and of 4 and 5.

    Before version 1.0 of the package, whose files have one id, an agent was reset before its end was recorded: what is
    recorded there is the first step of the next episode.
    """
    rewards_and_ends = [(0.0, {}), (1.0, {"done": True}), (5.0, {}), (2.0, {}), (3.0, {"done": True}), (4.0, {})]
    list_of_actions = "vector_actions_deprecated" if is_old else "continuous_actions"
    records = [
        record(info([float(n)], reward=reward, id=agent, **end), **{list_of_actions: [n / 10]})
        for n, (agent, (reward, end)) in enumerate(zip(ids, rewards_and_ends, strict=True))
    ]
    behavior = old_brain(1, is_continuous=True) if is_old else brain(1)
    opened = open_demonstrations(raw_file(tmp_path / "a.demo", behavior, records))
    steps = opened.transitions(np.arange(opened.num_steps))
    if is_old and len(set(ids)) == 1:
        paired, ends = [0, 1, 2, 3, 4], [TERMINATED, CUT, CUT, TERMINATED, CUT]
        assert opened.episodes.tolist() == [[0, 1], [1, 4], [4, 5]]
    else:
        paired, ends = [0, 2, 3], [TERMINATED, CUT, TERMINATED]
        assert opened.episodes.tolist() == [[0, 1], [1, 3]]
    assert steps.observations[0].ravel().tolist() == paired
    assert steps.next_observations[0].ravel().tolist() == [n + 1 for n in paired]
    np.testing.assert_allclose(steps.continuous_actions.ravel(), np.array(paired) / 10, rtol=1e-6)
    assert opened.steps.rewards.tolist() == [rewards_and_ends[n + 1][0] for n in paired]
    assert steps.endings.tolist() == ends


def test_record_after_which_another_agent_follows_is_no_step(tmp_path: Path) -> None:
    ids = [1, 1, 2, 2, 2, 1]
    records = [record(info([float(n)], id=agent), continuous_actions=[0.5]) for n, agent in enumerate(ids)]
    opened = open_demonstrations(raw_file(tmp_path / "a.demo", brain(1), records))
    steps = opened.transitions(np.arange(opened.num_steps))
    assert steps.observations[0].ravel().tolist() == [0, 2, 3]
    assert opened.episodes.tolist() == [[0, 1], [1, 3]]
    assert steps.endings.tolist() == [CUT] * 3
    assert opened.steps.agent_ids.tolist() == [1, 2, 2]


def test_only_an_end_by_the_step_limit_is_truncated(tmp_path: Path) -> None:
    ends = [{}, {"done": True, "max_step_reached": True}, {"max_step_reached": True}, {}, {"done": True}]
    records = [record(info([1.0], **end), continuous_actions=[0.5]) for end in ends]
    opened = open_demonstrations(raw_file(tmp_path / "a.demo", brain(1), records))
    assert opened.steps.endings.tolist() == [TRUNCATED, CUT, TERMINATED]


@pytest.mark.parametrize("version", [0, 1])
def test_both_versions_of_the_format_and_its_deprecated_actions_are_read(tmp_path: Path, version: int) -> None:
    numbers = [record(info([1.0]), vector_actions_deprecated=[0.25, -3.0]), record(info([2.0]))]
    path = raw_file(tmp_path / "a.demo", old_brain(2, is_continuous=True), numbers, version=version)
    steps = open_demonstrations(path).transitions(np.arange(1))
    assert steps.continuous_actions.tolist() == [[0.25, -3.0]]
    choices = [record(info([1.0]), vector_actions_deprecated=[2.0, 1.0]), record(info([2.0]))]
    path = raw_file(tmp_path / "b.demo", old_brain(3, 2, is_continuous=False), choices, version=version)
    opened = open_demonstrations(path)
    assert opened.spec.actions.branches == (3, 2)
    assert opened.transitions(np.arange(1)).discrete_actions.tolist() == [[2, 1]]


def test_records_after_the_number_that_the_file_says_are_ignored(tmp_path: Path) -> None:
    records = [record(info([float(n)]), continuous_actions=[0.5]) for n in range(4)]
    path = raw_file(tmp_path / "a.demo", brain(1), records, num_records=3, trailing=b"\xff" * 40)
    assert open_demonstrations(path).num_steps == 2


def test_recording_that_was_not_closed_is_read_to_its_end(tmp_path: Path) -> None:
    records = [record(info([float(n)]), continuous_actions=[0.5]) for n in range(4)]
    assert open_demonstrations(raw_file(tmp_path / "a.demo", brain(1), records, num_records=0)).num_steps == 3


def test_files_of_a_folder_are_read_by_name_and_not_paired(tmp_path: Path) -> None:
    parts = [episodes(VECTORS, LENGTHS, seed) for seed in (1, 10, 20)]
    for name, recorded in zip(("a", "b", "c"), parts, strict=True):
        write(tmp_path / f"{name}.demo", VECTORS, recorded)
    (tmp_path / "notes.txt").write_text("not a demonstration")
    (tmp_path / "old.demo").mkdir()
    for keep_bytes in (0, 2**29):
        require_equal(open_demonstrations(tmp_path, keep_bytes=keep_bytes), list(chain(*parts)))


def test_images_are_of_the_type_that_the_behavior_observes(tmp_path: Path) -> None:
    recorded = episodes(IMAGES, LENGTHS)
    as_floats = replace(IMAGES, observations=tuple(replace(one, dtype="float32") for one in IMAGES.observations))
    steps = open_demonstrations(write(tmp_path / "a.demo", IMAGES, recorded), as_floats).transitions(np.arange(5))
    assert steps.observations[0].dtype == np.float32
    np.testing.assert_array_equal(steps.observations[0], recorded[0].observations[0][:-1] / np.float32(255))
    scaled = [replace(one, observations=(one.observations[0] / np.float32(255),)) for one in recorded]
    opened = open_demonstrations(write(tmp_path / "b.demo", as_floats, scaled), IMAGES)
    np.testing.assert_array_equal(opened.transitions(np.arange(5)).observations[0], recorded[0].observations[0][:-1])


@pytest.mark.parametrize("properties", [[], [2, 2, 1]], ids=["without properties", "as version 2 says it"])
def test_images_of_old_packages_have_rows_first(tmp_path: Path, properties: list[int]) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (2, 4, 5, 3)).astype(np.uint8)
    shown = [
        AgentInfoProto(
            observations=[
                ObservationProto(
                    shape=[4, 5, 3], compression_type=PNG, compressed_data=png(image), dimension_properties=properties
                ),
                ObservationProto(shape=[0], float_data=ObservationProto.FloatData()),
            ]
        )
        for image in pixels
    ]
    records = [record(one, vector_actions_deprecated=[1.0]) for one in shown]
    opened = open_demonstrations(raw_file(tmp_path / "a.demo", old_brain(2, is_continuous=False), records))
    assert [one.shape for one in opened.spec.observations] == [(4, 5, 3)]
    steps = opened.transitions(np.arange(1))
    np.testing.assert_array_equal(steps.observations[0][0], pixels[0])
    np.testing.assert_array_equal(steps.next_observations[0][0], pixels[1])


@pytest.mark.parametrize("order", ["CHW", "HWC"])
def test_floats_of_images_are_in_the_order_of_the_package(tmp_path: Path, order: str) -> None:
    image = np.arange(24, dtype=np.float32).reshape(2, 3, 4)  # C, H, W
    ordered = image if order == "CHW" else image.transpose(1, 2, 0)
    shown = ObservationProto(
        shape=[2, 3, 4],
        float_data=ObservationProto.FloatData(data=ordered.ravel().tolist()),
        dimension_properties=[1, 2, 2],
    )
    records = [record(AgentInfoProto(observations=[shown]), continuous_actions=[0.0])] * 2
    path = raw_file(tmp_path / "a.demo", brain(1), records)
    steps = open_demonstrations(path, image_order=order).transitions(np.arange(1))  # type: ignore[arg-type]
    np.testing.assert_array_equal(steps.observations[0][0], image.transpose(1, 2, 0))


@pytest.mark.parametrize("order", ["CHW", "HWC"])
def test_images_of_a_player_are_written_as_its_package_records_them(tmp_path: Path, order: str) -> None:
    package = UnityPackage("3.0.0", order)  # type: ignore[arg-type]
    recorded = episodes(EVERY_KIND, LENGTHS)
    behavior = replace(EVERY_KIND, unity_package=package)
    path = write(tmp_path / "a.demo", behavior, recorded)
    require_equal(open_demonstrations(path, behavior), recorded)
    found = open_demonstrations(path).transitions(np.arange(1)).observations[-1][0]
    assert np.array_equal(found, recorded[0].observations[-1][0]) == (order == "CHW")


def test_records_that_differ_in_their_numbers_only_are_read_at_once(tmp_path: Path) -> None:
    """Also the ids below zero of old packages, for which protobuf takes ten bytes."""
    ids = [-7, -(2**31), -1, 3, 200, 2**31 - 1, -7, 0]
    records = [
        record(info([float(n), 1.0], id=agent, reward=n + 0.5), vector_actions_deprecated=[n / 8])
        for agent in ids
        for n in range(1, 5)
    ]
    opened = open_demonstrations(raw_file(tmp_path / "a.demo", old_brain(1, is_continuous=True), records))
    [columns] = [file.columns for file in opened.files]
    assert (columns.layouts != NO_LAYOUT).all()
    assert columns.ids.tolist() == [agent for agent in ids for _ in range(4)]
    assert columns.rewards.tolist() == [1.5, 2.5, 3.5, 4.5] * len(ids)
    assert opened.transitions(np.arange(3)).continuous_actions.ravel().tolist() == [0.125, 0.25, 0.375]


def test_a_batch_takes_memory_for_its_own_rows_only(tmp_path: Path) -> None:
    spec = replace(IMAGES, observations=(ObservationSpec("camera", (84, 84, 3), "uint8"),))
    still = np.zeros((501, 84, 84, 3), np.uint8)
    recorded = replace(episode(IMAGES, 500, Ending.TERMINATED, 1), observations=(still,))
    path = write(tmp_path / "a.demo", spec, [recorded])
    tracemalloc.start()
    try:
        opened = open_demonstrations(path, keep_bytes=0)
        for first in range(0, 500, 10):
            opened.transitions(np.arange(first, first + 10))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * 2**20 < still.nbytes / 2  # a block that is read has a megabyte, a batch of 10 steps 650 kB


def test_file_that_changes_while_it_is_used_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.demo", VECTORS, episodes(VECTORS, LENGTHS))
    opened = open_demonstrations(path, keep_bytes=0)
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(DemonstrationError, match=r"a\.demo: byte 0: the file has changed since it was opened"):
        opened.transitions(np.arange(2))
    path.unlink()
    with pytest.raises(DemonstrationError, match=r"a\.demo: cannot be read: No such file"):
        opened.transitions(np.arange(2))


def test_decoded_observations_are_read_once_where_they_may_stay(tmp_path: Path) -> None:
    path = write(tmp_path / "a.demo", VECTORS, episodes(VECTORS, LENGTHS))
    opened = open_demonstrations(path)
    first = opened.transitions(np.arange(opened.num_steps))
    path.unlink()
    again = opened.transitions(np.arange(opened.num_steps))
    np.testing.assert_array_equal(first.observations[0], again.observations[0])


@pytest.mark.parametrize("is_old", [False, True])
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, -5, 2**31 - 1]), st.booleans(), st.booleans(), st.floats(-9, 9, width=32)),
        min_size=2,
        max_size=40,
    )
)
def test_any_sequence_of_records_is_paired_as_a_loop_would(
    tmp_path_factory: pytest.TempPathFactory, is_old: bool, rows: list[tuple[int, bool, bool, float]]
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.demo"
    records = [
        record(
            info([float(n)], id=agent, done=done, max_step_reached=limit, reward=reward),
            **{"vector_actions_deprecated" if is_old else "continuous_actions": [n]},
        )
        for n, (agent, done, limit, reward) in enumerate(rows)
    ]
    expected = []
    for n, ((agent, done, _, _), (next_agent, ends, limit, reward)) in enumerate(pairwise(rows)):
        if agent == next_agent and (is_old or not done):
            expected.append((n, reward, (TRUNCATED if limit else TERMINATED) if ends else CUT))
    raw_file(path, old_brain(1, is_continuous=True) if is_old else brain(1), records)
    if not expected:
        with pytest.raises(DemonstrationError, match="there must be a step"):
            open_demonstrations(path)
        return
    opened = open_demonstrations(path)
    steps = opened.transitions(np.arange(opened.num_steps))
    found = zip(
        steps.continuous_actions.ravel().tolist(), opened.steps.rewards.tolist(), steps.endings.tolist(), strict=True
    )
    assert list(found) == expected
    assert (steps.next_observations[0] == steps.observations[0] + 1).all()
    is_last = np.append(np.diff([n for n, _, _ in expected]) != 1, True) | (steps.endings != CUT)
    assert (opened.episodes[:, 1] - 1).tolist() == np.flatnonzero(is_last).tolist()
