"""Demonstrations of something else than the behavior that is to learn from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rl_tui.engine.demonstrations.opening import open_demonstrations
from rl_tui.engine.errors import DemonstrationError
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Ending, ObservationSpec
from tests.demonstrations.recordings import CHOICES, EVERY_KIND, VECTORS, episodes, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "every.demo", EVERY_KIND, episodes(EVERY_KIND, [(3, Ending.TERMINATED)]))


def message_of(path: Path, behavior: BehaviorSpec) -> str:
    """Why the file does not fit, without its folder."""
    with pytest.raises(DemonstrationError) as refused:
        open_demonstrations(path, behavior)
    return str(refused.value).replace(f"{path.parent}/", "")


def test_every_difference_is_named_with_what_would_be_right(path: Path) -> None:
    observations = list(EVERY_KIND.observations)
    observations[0] = ObservationSpec("place", (5,))
    observations[2] = ObservationSpec("others", (9, 4))
    observations[4] = ObservationSpec("camera", (8, 9, 3), "uint8")
    other = BehaviorSpec("Runner", tuple(observations), ActionSpec(3, (3, 7)))
    assert message_of(path, other).splitlines() == [
        "every.demo: these demonstrations are not of the behavior Runner:",
        "  continuous actions: must be 3, got 2",
        "  discrete actions: must have branches of [3, 7] choices, got [3, 200]",
        "  observation 0 (place): must be a vector of 5, got a vector of 3",
        "  observation 2 (others): must be 9 entities of 4 features, got 4 entities of 2 features",
        "  observation 4 (camera): must be an image of 8x9x3, got an image of 6x7x3",
    ]


def test_observations_of_another_number_are_all_named(path: Path) -> None:
    assert message_of(path, CHOICES).splitlines() == [
        "every.demo: these demonstrations are not of the behavior Basic:",
        "  continuous actions: must be 0, got 2",
        "  discrete actions: must have branches of [3, 2] choices, got [3, 200]",
        (
            "  observations: must be 1 (a vector of 4), got 7 (a vector of 3, a vector of 2, 4 entities of 2 features, "
            "an image of 5x4x1, an image of 6x7x3, an image of 4x5x5, an image of 3x4x2)"
        ),
    ]


def test_names_need_not_be_equal(path: Path) -> None:
    renamed = tuple(replace(one, name=f"my {one.name}") for one in EVERY_KIND.observations)
    opened = open_demonstrations(path, replace(EVERY_KIND, name="Mine", observations=renamed))
    assert opened.spec == EVERY_KIND


def test_files_of_a_folder_must_be_of_one_behavior(path: Path) -> None:
    write(path.with_name("other.demo"), VECTORS, episodes(VECTORS, [(2, Ending.CUT)]))
    with pytest.raises(DemonstrationError) as refused:
        open_demonstrations(path.parent)
    first, *differences = str(refused.value).splitlines()
    assert first.endswith("other.demo: these demonstrations are not of the behavior Walker in every.demo:")
    assert len(differences) == 2
