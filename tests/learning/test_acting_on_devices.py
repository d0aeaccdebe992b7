"""A policy whose network is on a device acts as on the CPU, and costs a known number of copies."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rl_tui.engine.learning.acting.policy import NumpyPolicy
from rl_tui.engine.learning.policies import TorchPolicy
from rl_tui.engine.sampling.team_policies import made_by
from rl_tui.engine.specs import CopyPolicy, Policy
from tests.learning.rollouts import decisions
from tests.learning.test_devices import CPU, KINDS, made
from tests.pretended_device import DEVICE, PretendedDevice

COPIES = {"vectors": (1, 1), "memory": (2, 2), "image": (1, 1), "resnet": (2, 1), "set": (2, 1), "everything": (4, 2)}


def policy_on(kind: str, device: torch.device, trained_on: torch.device = CPU) -> Policy:
    trainer = made("ppo", kind, trained_on)
    trainer.act_on(device)
    return trainer.make_policy(3)


@pytest.mark.parametrize("kind", COPIES)
def test_actions_are_those_of_the_cpu(kind: str, device: torch.device) -> None:
    """Bit for bit where torch computes both."""
    there, here = policy_on(kind, device), policy_on(kind, CPU)
    assert isinstance(there, NumpyPolicy if device == CPU and kind in ("vectors", "memory") else TorchPolicy)
    is_same = device == DEVICE and not isinstance(here, NumpyPolicy)
    random, memories = np.random.default_rng(1), None
    for _ in range(3):
        seen = decisions(random, 5, KINDS["ppo"][kind].spec)
        found, expected = (policy.act(seen, memories) for policy in (there, here))
        tolerance = 0.0 if is_same else 1e-4
        np.testing.assert_array_equal(found.actions.discrete, expected.actions.discrete)
        np.testing.assert_allclose(found.continuous, expected.continuous, rtol=0, atol=tolerance)
        np.testing.assert_allclose(found.log_probs, expected.log_probs, rtol=0, atol=tolerance)
        memories = expected.memories


def test_only_the_policies_that_collect_act_there() -> None:
    with PretendedDevice().everywhere() as device:
        trainer = made("ppo", "image", DEVICE)
        arrivals = device.num_arrivals
        trainer.make_policy(3)
        trainer.policy_maker(3)(True)
        assert device.num_arrivals == arrivals, "unless it is said otherwise, policies act on the CPU"
        trainer.act_on(DEVICE)
        trainer.make_policy(3)
        assert device.num_arrivals > arrivals
        arrivals = device.num_arrivals
        trainer.policy_maker(3)(True).load(trainer.weights())
        assert device.num_arrivals == arrivals


@pytest.mark.parametrize(("kind", "copies"), COPIES.items())
def test_acting_copies_each_kind_of_observation_once_and_weights_in_one(kind: str, copies: tuple[int, int]) -> None:
    """And waits for what comes back: the head, and the memories."""
    with PretendedDevice().everywhere() as device:
        policy = policy_on(kind, DEVICE)
        weights = made("ppo", kind, CPU).weights()
        arrivals = device.num_arrivals
        policy.load(weights)
        assert device.num_arrivals == arrivals + 1
        spec = KINDS["ppo"][kind].spec
        memories = np.zeros((5, policy.memory_size), np.float32)
        seen = decisions(np.random.default_rng(1), 5, spec)
        arrivals, waits = device.num_arrivals, device.num_waits
        policy.act(seen, memories)
        assert (device.num_arrivals - arrivals, device.num_waits - waits) == copies


@pytest.mark.parametrize("kind", ["vectors", "image"])
def test_what_workers_make_of_its_recipe_acts_on_the_cpu(kind: str) -> None:
    with PretendedDevice().everywhere():
        policy = policy_on(kind, DEVICE)
        assert isinstance(policy, CopyPolicy)
        recipe = policy.recipe(range(2), 2)
        assert recipe is not None
        made_of_it = made_by(recipe.to_json())
        assert isinstance(made_of_it, TorchPolicy)
        assert {parameter.device for parameter in made_of_it._actor.parameters()} == {CPU}
