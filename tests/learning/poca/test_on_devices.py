"""Trainers of groups on a device other than the CPU, real or pretended: see tests/learning/test_devices.py."""

from __future__ import annotations

from unittest.mock import patch

import pytest
import torch

from rl_tui.engine.learning.networks import replaced_members
from tests.learning.poca.test_trainers_of_groups import CPU, KINDS, TRAINERS, experience, made
from tests.learning.test_devices import same
from tests.pretended_device import DEVICE, PretendedDevice

SLOW = ("images", "memory of images")  # on a pretended device
CASES = [
    pytest.param(name, kind, replaced_members.FEW, marks=[pytest.mark.slow] if kind in SLOW else [])
    for name in TRAINERS
    for kind in KINDS
]


@pytest.mark.parametrize(("name", "kind", "few"), [*CASES, ("poca", "vectors", 0)])
def test_an_update_for_groups_gives_what_it_gives_on_the_cpu(
    name: str, kind: str, few: int, device: torch.device
) -> None:
    """few: agents of a group up to which all its sets are looked at one by one."""
    found, expected = (made(name, kind, each, is_curious=False) for each in (device, CPU))
    rel, absolute = (0, 0) if device == DEVICE else (1e-2, 1e-4)
    with patch.object(replaced_members, "FEW", few):
        for seed in (1, 2):
            block = experience(expected, seed)
            reports = []
            for trainer in (found, expected):
                trainer.add(block)
                reports.append(
                    trainer.update(0) | {f"loss of {tag}": loss for tag, loss in trainer.loss(block).items()}
                )
            assert reports[0] == pytest.approx(reports[1], rel=rel, abs=absolute)
    same(found.state(), expected.state(), device)


def test_a_mini_batch_of_groups_never_waits_for_the_device() -> None:
    """It gets the numbers of its rows, and of the agents of their joint steps; nothing is read back."""
    waits = []
    for batch_size in (512, 64):
        with PretendedDevice().everywhere() as device:
            trainer = made("poca", "vectors", DEVICE, is_curious=False, batch_size=batch_size)
            block = experience(made("poca", "vectors", CPU), 1)
            trainer.add(block)
            trainer.update(0)
            before = device.num_waits
            trainer.add(block)
            trainer.update(0)
            waits.append(device.num_waits - before)
    assert waits[0] == waits[1], "more mini-batches wait no more"
