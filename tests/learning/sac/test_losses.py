"""The losses of soft actor-critic against the same formulas written with torch.distributions, in float64."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, Normal, TanhTransform, TransformedDistribution, kl_divergence

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.networks.critics import StateCritic, TwinCritic
from rl_tui.engine.learning.sac.batch import SoftBatch
from rl_tui.engine.learning.sac.losses import SoftLosses, soft_losses
from rl_tui.engine.learning.sac.networks import SoftNetworks
from rl_tui.engine.learning.sac.policy import soft_policy
from rl_tui.engine.specs import ActionSpec, ObservationSpec

KINDS = {
    "continuous": ActionSpec(3),
    "one branch": ActionSpec(0, (4,)),
    "branches": ActionSpec(0, (2, 3)),
    "hybrid": ActionSpec(2, (3, 2)),
}
ROWS, STREAMS, TARGET = 9, 2, -1.5
LAYOUT = FeatureLayout((ObservationSpec("seen", (5,)),))
NETWORK = NetworkSettings(hidden_units=8, num_layers=2)


@dataclass
class Case:
    """Networks and rows of one kind of actions."""

    networks: SoftNetworks
    batch: SoftBatch
    actions: ActionSpec
    alpha: Tensor

    def losses(self) -> SoftLosses:
        return soft_losses(self.networks, self.batch, self.actions, self.alpha, TARGET)


def case(kind: str, target_q: bool, seed: int = 0) -> Case:
    random, draw = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    actions = KINDS[kind]
    actor = Actor(random, LAYOUT, actions, NETWORK, is_squashed=True).double()
    with torch.no_grad():  # choices far from uniform
        for parameter in actor.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=draw, dtype=torch.float64))
    q = TwinCritic(random, LAYOUT, actions, NETWORK, STREAMS).double()
    value = None if target_q else StateCritic(random, LAYOUT, NETWORK, STREAMS).double()
    target = copy.deepcopy(q if value is None else value).requires_grad_(False)
    with torch.no_grad():
        for parameter in target.parameters():
            parameter.add_(0.1)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw, dtype=torch.float64)

    chosen, masks = torch.zeros(ROWS, actions.mask_size, dtype=torch.float64), [None, None]
    start = 0
    for size in actions.branches:
        picked = torch.randint(0, size, (ROWS,), generator=draw)
        chosen[torch.arange(ROWS), start + picked] = 1
        start += size
    if actions.branches:
        masks = [(torch.rand(ROWS, actions.mask_size, generator=draw) < 0.6).double() for _ in range(2)]
        for mask in masks:  # something is allowed in every branch
            mask[:, np.cumsum((0, *actions.branches[:-1]))] = 1
    batch = SoftBatch(
        features=(numbers(ROWS, 5),),
        next_features=(numbers(ROWS, 5),),
        continuous=numbers(ROWS, actions.continuous).tanh(),
        chosen=chosen,
        allowed=masks[0],
        next_allowed=masks[1],
        rewards=numbers(ROWS, STREAMS),
        discounts=0.9 * (torch.rand(ROWS, STREAMS, generator=draw) < 0.7).double(),
        weights=torch.rand(ROWS, generator=draw, dtype=torch.float64),
        noise=numbers(ROWS, actions.continuous),
        next_noise=numbers(ROWS, actions.continuous),
        recurrent_state=None,
    )
    alpha = torch.linspace(-1.0, 0.5, 1 + len(actions.branches), dtype=torch.float64).exp()
    return Case(SoftNetworks(actor, q, value, target), batch, actions, alpha)


@dataclass
class Reference:
    """A policy in the words of torch.distributions."""

    action: Tensor
    log_prob: Tensor
    branches: list[Categorical]


def reference_policy(case: Case, features: Tensor, noise: Tensor, allowed: Tensor | None) -> Reference:
    size = case.actions.continuous
    head = case.networks.actor((features,))
    action, log_prob = noise, torch.zeros(ROWS, dtype=torch.float64)
    if size:
        normal = Normal(head[:, :size], head[:, size : 2 * size].clamp(-20, 2).exp())
        drawn = normal.loc + normal.scale * noise
        squashed = TransformedDistribution(normal, [TanhTransform(cache_size=1)])
        action = squashed.transforms[0](drawn)
        log_prob = squashed.log_prob(action).sum(1)
    branches = []
    for index, logits in enumerate(
        head[:, 2 * size :].split(list(case.actions.branches), 1) if case.actions.branches else []
    ):
        mask = allowed.split(list(case.actions.branches), 1)[index]
        branches.append(Categorical(logits=logits.masked_fill(mask == 0, -1e8)))
    return Reference(action, log_prob, branches)


def expectation(case: Case, policy: Reference, q: Tensor) -> Tensor:
    """f64[B, S] of one critic's f64[B, S, M]: over the choices of each branch, then the mean of the branches."""
    if not policy.branches:
        return q[..., 0]
    parts = q.split(list(case.actions.branches), -1)
    means = [(branch.probs[:, None, :] * part).sum(-1) for branch, part in zip(policy.branches, parts, strict=True)]
    return torch.stack(means).mean(0)


def reference_value(case: Case, policy: Reference, q: Tensor) -> Tensor:
    """Values of the states by the smaller critic, with the entropy bonus where there are no choices."""
    both = torch.stack([expectation(case, policy, q[twin]) for twin in range(2)]).min(0).values
    return both if policy.branches else both - (case.alpha[0] * policy.log_prob)[:, None]


def reference_losses(case: Case) -> dict[str, Tensor]:
    nets, batch, alphas = case.networks, case.batch, case.alpha
    if case.actions.continuous and case.actions.branches:
        alphas = alphas / 2  # values do not read them then
    policy = reference_policy(case, batch.features[0], batch.noise, batch.allowed)
    taken = nets.q(batch.features[0], batch.continuous)
    if batch.chosen.shape[1]:
        parts = zip(
            taken.split(list(case.actions.branches), -1),
            batch.chosen.split(list(case.actions.branches), 1),
            strict=True,
        )
        taken = torch.stack([(part * one[:, None]).sum(-1) for part, one in parts]).mean(0)
    else:
        taken = taken[..., 0]
    with torch.no_grad():
        if nets.value is not None:
            following = nets.target(batch.next_features)
        else:
            after = reference_policy(case, batch.next_features[0], batch.next_noise, batch.next_allowed)
            following = reference_value(case, after, nets.target(batch.next_features[0], after.action))
        goal = batch.rewards + batch.discounts * following
    q_losses = [
        sum(0.5 * batch.weights @ (taken[twin, :, s] - goal[:, s]) ** 2 / ROWS for s in range(STREAMS)) / STREAMS
        for twin in range(2)
    ]
    losses = {"q1": q_losses[0], "q2": q_losses[1]}
    frozen = copy.deepcopy(nets.q).requires_grad_(False)
    of_policy = frozen(batch.features[0], policy.action)
    if nets.value is not None:
        goal_value = reference_value(case, policy, of_policy).detach()
        error = nets.value(batch.features) - goal_value
        losses["value"] = sum(0.5 * batch.weights @ error[:, s] ** 2 / ROWS for s in range(STREAMS)) / STREAMS
    judged = of_policy[0] if nets.value is not None else of_policy.min(0).values
    continuous = torch.zeros(ROWS, dtype=torch.float64)
    if case.actions.continuous:  # the choices are weighed as they stand
        still = replace_probabilities(policy)
        continuous = alphas[0] * policy.log_prob - expectation(case, still, judged).mean(1)
    discrete = torch.zeros(ROWS, dtype=torch.float64)
    values = judged.detach().mean(1)
    for index, branch in enumerate(policy.branches):
        start = sum(case.actions.branches[:index])
        own = values[:, start : start + case.actions.branches[index]]
        # temperature * KL from what the critic asks for, up to what does not depend on the policy
        wanted = Categorical(logits=(own / alphas[1 + index]).masked_fill(branch.probs == 0, -1e8))
        log_total = torch.logsumexp((own / alphas[1 + index]).masked_fill(branch.probs == 0, -1e8), 1)
        discrete = discrete + alphas[1 + index] * (kl_divergence(branch, wanted) - log_total)
    losses["policy"] = (continuous + discrete).mean()
    return losses


def replace_probabilities(policy: Reference) -> Reference:
    return Reference(policy.action, policy.log_prob, [Categorical(probs=b.probs.detach()) for b in policy.branches])


@pytest.mark.parametrize("target_q", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_losses_and_gradients_are_those_of_the_formulas(kind: str, target_q: bool) -> None:
    ours = case(kind, target_q)
    losses, expected = ours.losses(), reference_losses(ours)
    found = {"policy": losses.policy, "q1": losses.q[0], "q2": losses.q[1]}
    found |= {} if losses.value is None else {"value": losses.value}
    assert found.keys() == expected.keys()
    nets = ours.networks
    parameters = [
        *nets.actor.parameters(),
        *nets.q.parameters(),
        *([] if nets.value is None else nets.value.parameters()),
    ]
    for name, loss in found.items():
        torch.testing.assert_close(loss, expected[name], rtol=1e-9, atol=1e-11)
        gradients = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        references = torch.autograd.grad(expected[name], parameters, retain_graph=True, allow_unused=True)
        for gradient, reference in zip(gradients, references, strict=True):
            zero = torch.zeros(())
            first = zero if gradient is None else gradient
            second = zero if reference is None else reference
            torch.testing.assert_close(*torch.broadcast_tensors(first.double(), second.double()), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_temperature_moves_towards_the_target_entropy(kind: str) -> None:
    ours = case(kind, target_q=False)
    logs = ours.alpha.log().requires_grad_()
    policy = reference_policy(ours, ours.batch.features[0], ours.batch.noise, ours.batch.allowed)
    loss = torch.zeros((), dtype=torch.float64)
    if ours.actions.continuous:
        loss = loss - logs[0] * (policy.log_prob.detach() + TARGET).mean()
    for index, branch in enumerate(policy.branches):
        num_allowed = ours.batch.allowed.split(list(ours.actions.branches), 1)[index].sum(1)
        loss = loss - logs[1 + index] * (0.2 * num_allowed.log() - branch.entropy().detach()).mean()
    loss.backward()
    torch.testing.assert_close(ours.losses().grad_log_alpha, logs.grad)


@pytest.mark.parametrize("kind", ["one branch", "branches", "hybrid"])
def test_where_a_single_choice_is_allowed_the_temperature_of_a_branch_stays_as_it_is(kind: str) -> None:
    ours = case(kind, target_q=False)
    only = torch.zeros(ROWS, ours.actions.mask_size, dtype=torch.float64)
    only[:, np.cumsum((0, *ours.actions.branches[:-1]))] = 1
    forced = replace(ours, batch=replace(ours.batch, allowed=only))
    torch.testing.assert_close(forced.losses().grad_log_alpha[1:], torch.zeros(len(ours.actions.branches)).double())


def test_without_masks_every_choice_counts_for_the_target_entropy() -> None:
    ours = case("branches", target_q=False)
    everything = torch.ones(ROWS, ours.actions.mask_size, dtype=torch.float64)
    open_rows = replace(ours, batch=replace(ours.batch, allowed=None, next_allowed=None))
    masked = replace(ours, batch=replace(ours.batch, allowed=everything, next_allowed=everything))
    torch.testing.assert_close(open_rows.losses().grad_log_alpha, masked.losses().grad_log_alpha)


@pytest.mark.parametrize("kind", KINDS)
def test_entropy_and_errors_are_reported(kind: str) -> None:
    ours = case(kind, target_q=False)
    policy = reference_policy(ours, ours.batch.features[0], ours.batch.noise, ours.batch.allowed)
    expected = -policy.log_prob.mean() + sum(branch.entropy().mean() for branch in policy.branches)
    losses = ours.losses()
    torch.testing.assert_close(losses.entropy, expected.detach())
    assert losses.errors.shape == (ROWS,)
    doubled = replace(ours.batch, weights=2 * ours.batch.weights)
    again = soft_losses(ours.networks, doubled, ours.actions, ours.alpha, TARGET)
    torch.testing.assert_close(again.q, 2 * losses.q)
    torch.testing.assert_close(again.errors, losses.errors)


def test_a_forbidden_choice_is_never_expected_and_stays_finite_when_nothing_is_allowed() -> None:
    actions = KINDS["branches"]
    head = torch.randn(4, actions.mask_size, generator=torch.Generator().manual_seed(1)).requires_grad_()
    allowed = torch.ones(4, actions.mask_size)
    allowed[0, 1] = 0
    allowed[1] = 0
    policy = soft_policy(head, actions, torch.zeros(4, 0), allowed)
    assert policy.probabilities[0][0, 1] == 0
    total = sum(part.sum() for part in policy.negative_entropies)
    total.backward()
    assert torch.isfinite(total)
    assert torch.isfinite(head.grad).all()


def test_the_log_probability_keeps_its_digits_where_tanh_is_one() -> None:
    head = torch.tensor([[12.0, -3.0]])
    policy = soft_policy(head, ActionSpec(1), torch.zeros(1, 1), None)
    assert policy.continuous.item() == 1.0
    exact = 3.0 - 0.5 * math.log(2 * math.pi) - 2 * (math.log(2) - 12.0)
    assert policy.log_prob.item() == pytest.approx(exact, rel=1e-6)
