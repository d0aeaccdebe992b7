"""The recordings that come with ML-Agents, of packages before version 1.0: every field is what its own loader gives."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_tui.engine.demonstrations.opening import open_demonstrations
from rl_tui.engine.demonstrations.recorded import RecordedDemonstrations
from rl_tui.engine.errors import DemonstrationError
from rl_tui.engine.specs import CUT, TERMINATED
from tests.demonstrations.official_digest import digest

FOLDER = Path(os.environ.get("MLAGENTS_DATA", "/nowhere")) / "demos"
OFFICIAL: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("official.json").read_text())

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="MLAGENTS_DATA names no folder with ML-Agents' demos")


@pytest.fixture(params=sorted(OFFICIAL))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(name: str) -> RecordedDemonstrations:
    return open_demonstrations(FOLDER / name)


def test_every_field_of_every_record_is_what_the_official_loader_gives(
    name: str, opened: RecordedDemonstrations
) -> None:
    official, [file] = OFFICIAL[name], opened.files
    columns, actions = file.columns, opened.spec.actions
    assert columns.num_records == official["num_records"] == official["num_expected"] == file.head.metadata.num_records
    assert (actions.continuous, list(actions.branches)) == (official["continuous_size"], official["branches"])
    both = np.concatenate([columns.continuous, columns.discrete], axis=1)
    assert digest(columns.rewards.astype("<f4")) == official["rewards"]
    assert digest(columns.is_done.astype("u1")) == official["done"]
    assert digest(columns.is_interrupted.astype("u1")) == official["max_step_reached"]
    assert digest(columns.ids.astype("<i8")) == official["ids"]
    assert digest(both.astype("<f4")) == official["actions"]


def test_every_observation_is_what_the_official_loader_gives(name: str, opened: RecordedDemonstrations) -> None:
    official, [file] = OFFICIAL[name], opened.files
    records = np.arange(file.columns.num_records)
    shapes = [shape for shape in official["shapes"] if 0 not in shape]  # an observation without values is left out
    assert [list(one.shape) for one in opened.spec.observations] == shapes
    assert [int(one.is_goal) for one in opened.spec.observations] == official["goals"][: len(shapes)]
    columns = tuple(np.zeros((len(records), *one.shape), one.dtype) for one in opened.spec.observations)
    file.place(records, file.reader.sensors, columns, records)
    for index, column in enumerate(columns):
        assert digest(column) == official[f"observation {index}"]


@pytest.mark.parametrize("keep_bytes", [0, 2**29])
def test_steps_are_the_pairs_of_the_official_loader(name: str, keep_bytes: int) -> None:
    opened, official = open_demonstrations(FOLDER / name, keep_bytes=keep_bytes), OFFICIAL[name]
    if "pair done" not in official:
        assert name == "testdcvis.demo"
        assert "expected [84, 84, 3]" in official["refused"]  # its loader refuses images of packages before 3.0.0
        return
    steps = opened.transitions(np.arange(opened.num_steps))
    assert digest(opened.steps.rewards.astype("<f4")) == official["pair rewards"]
    assert digest((steps.endings != CUT).astype("u1")) == official["pair done"]
    assert digest(steps.observations[0]) == official["pair observation 0"]
    actions = {"pair continuous": steps.continuous_actions, "pair discrete": steps.discrete_actions}
    for key, values in actions.items():
        assert (key in official) == bool(values.size)
        if key in official:
            assert digest(values.astype("<f4")) == official[key]


def test_what_follows_a_step_is_the_next_record(opened: RecordedDemonstrations) -> None:
    steps = opened.transitions(np.arange(opened.num_steps))
    first, last = opened.episodes[0]
    for before, after in zip(steps.observations, steps.next_observations, strict=True):
        np.testing.assert_array_equal(after[first : last - 1], before[first + 1 : last])


def test_episodes_of_the_basic_recording_begin_in_the_middle_and_end_at_its_goal() -> None:
    """Ten ends, after which the recording goes on: the last episode is not finished.

    Its agent walks from place 10 to 17. What an end was recorded with is place 10 again, and the next step from there.
    """
    opened = open_demonstrations(FOLDER / "ExpertBasic.demo")
    assert opened.steps.episode_lengths.tolist() == [*[7] * 10, 2]
    assert opened.steps.endings[opened.episodes[:, 1] - 1].tolist() == [*[TERMINATED] * 10, CUT]
    assert opened.steps.num_unfinished == 1
    steps = opened.transitions(np.arange(opened.num_steps))
    places = steps.observations[0].argmax(axis=1).tolist()
    assert places == [*[10, 11, 12, 13, 14, 15, 16] * 10, 10, 11]
    np.testing.assert_allclose(opened.steps.episode_returns, [*[0.93] * 10, -0.02], rtol=1e-5)
    assert opened.num_steps == 72


def test_folder_of_different_behaviors_is_refused() -> None:
    with pytest.raises(DemonstrationError, match=r"ExpertBasic\.demo: these demonstrations are not of the behavior"):
        open_demonstrations(FOLDER)
