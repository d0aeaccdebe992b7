"""Beside mlagents 1.1.0 itself, where MLAGENTS_PEER names a virtual environment with it.

Its loader reads what is written here, and where both read a damaged file, they read the same from it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_tui.engine.demonstrations.opening import open_demonstrations
from rl_tui.engine.demonstrations.recorded import RecordedDemonstrations
from rl_tui.engine.errors import DemonstrationError
from rl_tui.engine.specs import CUT, BehaviorSpec, Ending, Observation
from tests.demonstrations.official_digest import digest
from tests.demonstrations.raw_files import old_file
from tests.demonstrations.recordings import CHOICES, EVERY_KIND, IMAGES, VECTORS, episode, episodes, write
from tests.demonstrations.test_damage import mutated

PEER = os.environ.get("MLAGENTS_PEER", "")
LENGTHS = [(5, Ending.TERMINATED), (3, Ending.TRUNCATED), (1, Ending.TERMINATED), (4, Ending.TERMINATED)]

pytestmark = pytest.mark.skipif(not PEER, reason="MLAGENTS_PEER names no virtual environment with mlagents 1.1.0")


def read_officially(paths: list[Path]) -> dict[str, dict[str, Any]]:
    """What its loader gives, by the name of the file."""
    script = Path(__file__).with_name("official_loader.py")
    command = [f"{PEER}/bin/python", str(script), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    return dict(json.loads(done.stdout))


def as_its_loader_has_it(column: Observation) -> Observation:
    """Images as floats f32[N, C, H, W]."""
    if column.dtype == np.uint8:
        column = column.astype(np.float32) / np.float32(255)
    return column.transpose(0, 3, 1, 2) if column.ndim == 4 else column


def require_equal(opened: RecordedDemonstrations, official: dict[str, Any]) -> None:
    """The records, and the pairs but those across episodes, are the same."""
    [file], columns = opened.files, opened.files[0].columns
    assert columns.num_records == official["num_records"]
    assert [opened.spec.actions.continuous, list(opened.spec.actions.branches)] == [
        official["continuous_size"],
        official["branches"],
    ]
    assert digest(columns.rewards.astype("<f4")) == official["rewards"]
    assert digest(columns.is_done.astype("u1")) == official["done"]
    assert digest(columns.is_interrupted.astype("u1")) == official["max_step_reached"]
    assert digest(columns.ids.astype("<i8")) == official["ids"]
    assert file.head.metadata.num_records in (0, columns.num_records)
    if "refused" in official:
        return
    steps = opened.transitions(np.arange(opened.num_steps))
    assert digest(opened.steps.rewards.astype("<f4")) == official["pair rewards"]
    assert digest((steps.endings != CUT).astype("u1")) == official["pair done"]
    used = [index for index, shape in enumerate(official["shapes"]) if 0 not in shape]
    for index, column in zip(used, steps.observations, strict=True):
        assert digest(as_its_loader_has_it(column)) == official[f"pair observation {index}"]
    if steps.continuous_actions.size:
        assert digest(steps.continuous_actions.astype("<f4")) == official["pair continuous"]
    if steps.discrete_actions.size:
        assert digest(steps.discrete_actions.astype("<f4")) == official["pair discrete"]


def test_its_loader_reads_what_is_written_here(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{s.name}.demo", s, episodes(s, LENGTHS)) for s in (EVERY_KIND, VECTORS, IMAGES)]
    masked = [episode(CHOICES, 9, Ending.TERMINATED, 1, has_mask=True)]
    paths.append(write(tmp_path / "masked.demo", CHOICES, masked))
    official = read_officially(paths)
    for path in paths:
        assert "refused" not in official[path.name]
        assert "pair done" in official[path.name]
        require_equal(open_demonstrations(path), official[path.name])


@pytest.mark.parametrize("num_files", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_files_that_are_read_are_read_as_its_loader_reads_them(tmp_path: Path, num_files: int) -> None:
    chance, num_equal = random.Random(11), 0
    specs: list[BehaviorSpec] = [EVERY_KIND, VECTORS, CHOICES, IMAGES]
    wholes = [write(tmp_path / f"{s.name}.demo", s, episodes(s, LENGTHS)).read_bytes() for s in specs]
    wholes.append(old_file(tmp_path / "old.demo").read_bytes())
    opened: dict[Path, RecordedDemonstrations] = {}
    for number in range(num_files):
        path = tmp_path / f"{number}.demo"
        path.write_bytes(mutated(chance, chance.choice(wholes), chance.choice(wholes)))
        try:
            found = open_demonstrations(path)
            found.transitions(np.arange(found.num_steps))
        except DemonstrationError:
            path.unlink()
        else:
            opened[path] = found
    official = read_officially(list(opened))
    for path, found in opened.items():
        if "rewards" in official[path.name]:
            require_equal(found, official[path.name])
            num_equal += 1
    assert num_equal > num_files // 20
