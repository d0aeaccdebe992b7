"""What programs read, write and add to a trainer, on a device other than the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from rl_tui.engine.learning.loss_inputs import LossInputs
from tests.learning.rollouts import Simulation
from tests.learning.test_devices import CPU, KINDS, continued, in_torch, made, same


def penalty(inputs: LossInputs) -> Tensor:
    """Of everything that may be differentiated."""
    ratio = torch.exp(inputs.log_probs - inputs.sample.log_probs)
    advantages = inputs.sample.advantages[:, None]
    of_values = torch.square(inputs.values - inputs.sample.returns).mean()
    return 0.3 * (ratio * advantages).mean() + 0.1 * of_values - 0.2 * inputs.entropy


@pytest.mark.parametrize("kind", ["vectors", "every term", "memory", "image"])
def test_custom_loss_is_what_it_is_on_the_cpu(kind: str, device: torch.device) -> None:
    found = made("ppo", kind, device)
    found.on_loss(penalty)
    reported = continued(found, "ppo", kind, 2)
    with in_torch("ppo", device):
        expected = made("ppo", kind, CPU)
        expected.on_loss(penalty)
        of_cpu = continued(expected, "ppo", kind, 2)
    assert reported[0]["Losses/Custom Loss"] == pytest.approx(of_cpu[0]["Losses/Custom Loss"], rel=1e-2, abs=1e-4)
    same(found.state(), expected.state(), device)


@pytest.mark.parametrize(("trainer", "kind"), [("ppo", "vectors"), ("ppo", "image"), ("sac", "hybrid")])
def test_weights_modules_and_values_go_to_the_device_and_back(trainer: str, kind: str, device: torch.device) -> None:
    here, there = made(trainer, kind, CPU), made(trainer, kind, device, seed=8)
    continued(here, trainer, kind, 1)
    for name, module in here.modules().items():
        there.modules()[name].load_state_dict(module.state_dict())
    there.load_weights(here.weights().arrays)
    for name, array in there.weights().arrays.items():
        np.testing.assert_array_equal(array, here.weights().arrays[name], err_msg=name)
    (moment, *_) = next(iter(there.optimizers().values())).exp_avg.values()
    assert moment.device == next(iter(there.modules()["actor"].parameters())).device
    if "target_q" not in KINDS[trainer][kind].hyper:
        seen = Simulation(here.make_policy(3), KINDS[trainer][kind].spec, 5, 6).run(8).observations
        np.testing.assert_allclose(there.value_function()(seen), here.value_function()(seen), atol=1e-5)
