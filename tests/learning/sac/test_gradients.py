"""What is written out in numpy gives the losses and gradients of torch's autograd."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.acting.layers import Activation
from rl_tui.engine.learning.sac.gradients import TorchSoftGradients
from rl_tui.engine.learning.sac.gradients_numpy import NumpySoftGradients
from rl_tui.engine.learning.sac.trainer import SACTrainer
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Float32, ObservationSpec
from tests.learning.rollouts import acted

KINDS = {
    "continuous": ActionSpec(3),
    "one branch": ActionSpec(0, (4,)),
    "branches": ActionSpec(0, (2, 3)),
    "hybrid": ActionSpec(2, (3, 2)),
}
CPU = torch.device("cpu")


def trainer(kind: str, network: Mapping[str, object], device: torch.device = CPU, **hyper: object) -> SACTrainer:
    """One with two streams, whose choices are far from uniform, and something to draw from."""
    spec = BehaviorSpec("Walker", (ObservationSpec("seen", (5,)),), KINDS[kind])
    config = BehaviorConfig.model_validate(
        {
            "trainer_type": "sac",
            "hyperparameters": {"batch_size": 32, "buffer_size": 500, "init_entcoef": 0.5, **hyper},
            "network_settings": {"hidden_units": 8, **network},
        }
    )
    sac = SACTrainer(spec, config, 0, device)
    draw = torch.Generator().manual_seed(1)
    for flat in (*sac._parameters.trained().values(), sac._parameters.target):
        flat.parameters.add_(0.3 * torch.randn(flat.parameters.shape, generator=draw).to(device))
    sac.add(acted(sac.make_policy(0), np.random.default_rng(2), [9] * 30, spec, masked=bool(KINDS[kind].branches)))
    return sac


@pytest.mark.parametrize("hyper", [{"target_q": False}, {"target_q": True}, {"prioritized_replay": {}}])
@pytest.mark.parametrize("activation", ["swish", "tanh", "relu"])
@pytest.mark.parametrize("kind", KINDS)
def test_both_ways_give_the_same(
    kind: str, activation: Activation, hyper: dict[str, object], torch_device: torch.device
) -> None:
    written, recorded = (trainer(kind, {"activation": activation}, device, **hyper) for device in (CPU, torch_device))
    assert isinstance(written._gradients, NumpySoftGradients)
    recorded._gradients = TorchSoftGradients(recorded._networks, recorded._parameters, KINDS[kind])
    found: list[dict[str, Float32]] = []
    losses = []
    for sac in (written, recorded):
        trained = sac._parameters.trained()
        for flat in trained.values():
            flat.gradient.fill_(7.0)  # what an earlier mini-batch left does not count
        losses.append(sac._losses(sac._draw(0), np.random.default_rng(3)))
        found.append({name: flat.gradient.cpu().numpy().copy() for name, flat in trained.items()})
    for name, gradient in found[0].items():
        scale = np.abs(found[1][name]).max() + 1e-6
        np.testing.assert_allclose(gradient / scale, found[1][name] / scale, atol=2e-5, err_msg=name)
    for term in ("policy", "q", "value", "entropy", "values", "errors", "alpha"):
        ours, theirs = (getattr(loss, term) for loss in losses)
        if theirs is None:
            assert ours is None
        else:
            np.testing.assert_allclose(ours, theirs.detach().cpu().numpy(), rtol=2e-4, atol=1e-5, err_msg=term)


@pytest.mark.parametrize(
    "network", [{"memory": {"sequence_length": 4, "memory_size": 8}}, {"goal_conditioning_type": "hyper"}]
)
def test_what_is_not_written_out_is_recorded(network: dict[str, object]) -> None:
    seen = ObservationSpec("seen", (5,)), ObservationSpec("wanted", (2,), is_goal=True)
    spec = BehaviorSpec("Walker", seen[:1] if "memory" in network else seen, ActionSpec(2))
    config = BehaviorConfig.model_validate({"trainer_type": "sac", "network_settings": {"hidden_units": 8, **network}})
    assert isinstance(SACTrainer(spec, config, 0, CPU)._gradients, TorchSoftGradients)
