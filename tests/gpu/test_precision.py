"""Both precisions of a GPU: float32 with all its digits, and TF32, in which matrix products round their inputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from tests.devices import gpu, precision
from tests.gpu.precision import PRECISIONS
from tests.learning import conftest
from tests.learning import test_devices as kinds
from tests.learning.sac.test_learns import config as soft_config
from tests.learning.test_it_learns import TOY, TOY_STEPS, mean_return, toy, train

pytestmark = pytest.mark.gpu
CPU = torch.device("cpu")
distillation, one_thread = kinds.distillation, conftest.one_thread  # fixtures: here as there
TOLERANCES = dict(zip(PRECISIONS, (1e-3, 1e-2, 2e-2), strict=True))  # of losses and values


@contextmanager
def opened_with(name: str) -> Iterator[torch.device]:
    """The device of these tests, computing so."""
    with precision(*PRECISIONS[name]):
        yield gpu()


@pytest.mark.parametrize("name", TOLERANCES)
@pytest.mark.parametrize(("trainer", "kind"), kinds.ALL)
def test_an_update_agrees_with_the_cpu_within_its_precision(trainer: str, kind: str, name: str) -> None:
    with opened_with(name) as device:
        found, reported = kinds.trained(trainer, kind, device)
    expected, expected_reports = kinds.trained(trainer, kind, CPU)
    is_half = kinds.KINDS[trainer][kind].network.get("precision") == "bfloat16"
    tolerance = max(TOLERANCES[name], 0.1 * is_half)
    for ours, theirs in zip(reported, expected_reports, strict=True):
        assert ours == pytest.approx(theirs, rel=tolerance, abs=tolerance)
    kinds.same(found.state(), expected.state(), device, max(tolerance, 1e-2))


@pytest.mark.parametrize("name", TOLERANCES)
@pytest.mark.parametrize("task", ["one-step", "pixels"])
def test_it_learns_in_every_precision(task: str, name: str) -> None:
    with opened_with(name) as device:
        ppo = train(toy("discrete", task=task), TOY, TOY_STEPS, 1, device)
        sac = train(toy("continuous"), soft_config(), 2000, 1, device)
    assert mean_return(toy("discrete", task=task), ppo.make_policy(1), 400, 2) > 0.9
    assert mean_return(toy("continuous"), sac.make_policy(1), 400, 2) > 0.85
