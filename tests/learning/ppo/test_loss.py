"""PPO's loss against torch's autograd of the formulas as ML-Agents documents them."""

from __future__ import annotations

import math
from dataclasses import fields
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rl_tui.engine.learning.on_policy.actor_critic import Outputs
from rl_tui.engine.learning.on_policy.clipping import Coefficients
from rl_tui.engine.learning.ppo.trainer import PPOTrainer, ppo_loss
from rl_tui.engine.specs import ActionSpec

Rows = dict[str, Any]
ROWS = 37
TERMS = ("policy", "value", "entropy", "divergence", "clipped")
ACTIONS = {
    "continuous": ActionSpec(3),
    "one branch": ActionSpec(0, (4,)),
    "branches": ActionSpec(0, (2, 5, 3)),
    "hybrid": ActionSpec(2, (3, 2)),
}
CASES = [
    (kind, masked, joint, clip, beta)
    for kind, masked, joint, clip, beta in product(ACTIONS, (False, True), (False, True), (None, 0.3), (0.0, 0.01))
    if not (masked and kind == "continuous")
]


def problem(kind: str, masked: bool, joint: bool, streams: int = 2, seed: int = 0) -> tuple[np.ndarray, ...]:
    """head, values, log_sigma (empty without continuous actions), and the columns of a batch, float64."""
    actions = ACTIONS[kind]
    random = np.random.default_rng(seed)
    head = random.standard_normal((ROWS, actions.continuous + actions.mask_size))
    log_sigma = random.uniform(-1, 0.5, actions.continuous)
    sigma = np.exp(log_sigma)
    continuous = head[:, : actions.continuous] + sigma * random.standard_normal((ROWS, actions.continuous))
    chosen, allowed = np.zeros((ROWS, actions.mask_size)), np.ones((ROWS, actions.mask_size))
    start = 0
    for size in actions.branches:
        picked = random.integers(0, size, ROWS)
        chosen[np.arange(ROWS), start + picked] = 1
        if masked:
            allowed[:, start : start + size] = random.random((ROWS, size)) < 0.6
        start += size
    allowed = np.maximum(allowed, chosen)
    columns = 1 if joint else actions.num_columns
    log_probs = -random.uniform(0.3, 2.5, (ROWS, columns)) * (actions.num_columns if joint else 1)
    advantage, (values, returns, old) = random.standard_normal(ROWS), random.standard_normal((3, ROWS, streams))
    return head, values, log_sigma, continuous, chosen, allowed, log_probs, advantage, returns, old


def plain_loss(
    head: Tensor, values: Tensor, log_sigma: Tensor, rows: Rows, actions: ActionSpec, coefficients: Coefficients
) -> dict[str, Tensor]:
    """The terms, a line for each formula."""
    log_probs, entropies = [], []
    if actions.continuous:
        mean, sigma = head[:, : actions.continuous], log_sigma.exp()
        log_probs.append(
            -((rows["continuous"] - mean) ** 2) / (2 * sigma**2 + 1e-7)
            - torch.log(sigma + 1e-7)
            - math.log(math.sqrt(2 * math.pi))
        )
        entropies.append((0.5 * torch.log(2 * math.pi * math.e * sigma**2 + 1e-7)).mean().expand(len(head)))
    start = 0
    for size in actions.branches:
        logits = head[:, actions.continuous + start : actions.continuous + start + size]
        if "allowed" in rows:
            allowed = rows["allowed"][:, start : start + size]
            logits = logits * allowed - 1e8 * (1 - allowed)
        p = torch.softmax(logits, 1)
        picked = rows["chosen"][:, start : start + size].argmax(1)
        log_probs.append(torch.log(p.gather(1, picked[:, None]) + 1e-7))
        entropies.append(-(p * torch.log(p + 1e-7)).sum(1))
        start += size
    new = torch.cat(log_probs, 1)
    if rows["log_probs"].shape[1] == 1:
        new = new.sum(1, keepdim=True)
    ratio = torch.exp(new - rows["log_probs"])
    bounded = torch.clamp(ratio, 1 - coefficients.epsilon, 1 + coefficients.epsilon)
    advantage = rows["advantage"][:, None]
    policy = -torch.minimum(ratio * advantage, bounded * advantage).mean()
    squares = (rows["returns"] - values) ** 2
    if coefficients.value_clip is not None:
        moved = rows["values"] + torch.clamp(values - rows["values"], -coefficients.value_clip, coefficients.value_clip)
        squares = torch.maximum(squares, (rows["returns"] - moved) ** 2)
    value, entropy = squares.mean(), torch.stack(entropies).sum(0).mean()
    return {
        "total": policy + coefficients.value * value - coefficients.beta * entropy,
        "policy": policy,
        "value": value,
        "entropy": entropy,
        "divergence": (ratio - 1 - torch.log(ratio)).mean(),
        "clipped": ((ratio - 1).abs() > coefficients.epsilon).double().mean(),
    }


def rows_of(arrays: tuple[np.ndarray, ...], masked: bool, as_tensors: bool) -> tuple[list[Any], Rows]:
    """head, values and log_sigma, and the columns, as arrays or as tensors that share nothing with them."""
    made = [torch.from_numpy(array.copy()) if as_tensors else array.copy() for array in arrays]
    names = ("continuous", "chosen", "allowed", "log_probs", "advantage", "returns", "values")
    rows = dict(zip(names, made[3:], strict=True))
    if not masked:
        del rows["allowed"]
    return made[:3], rows


def loss_of(
    kind: str, arrays: tuple[np.ndarray, ...], masked: bool, coefficients: Coefficients, as_tensors: bool
) -> dict[str, Any]:
    """The terms and the gradients of a problem."""
    actions = ACTIONS[kind]
    (head, values, log_sigma), rows = rows_of(arrays, masked, as_tensors)
    outputs = Outputs(head, values, log_sigma if actions.continuous else None)
    loss = ppo_loss(outputs, rows, actions, coefficients)
    gradients = {f"grad_{field.name}": getattr(loss.gradients, field.name) for field in fields(Outputs)}
    assert loss.terms.keys() == set(PPOTrainer.tags)
    terms = [loss.terms[tag] for tag in PPOTrainer.tags]
    return {"total": loss.total, **dict(zip(TERMS, terms, strict=True)), **gradients}


@pytest.mark.parametrize(("kind", "masked", "joint", "clip", "beta"), CASES)
def test_loss_and_gradient_are_those_of_autograd(
    kind: str, masked: bool, joint: bool, clip: float | None, beta: float
) -> None:
    coefficients = Coefficients(epsilon=0.2, beta=beta, value=0.7, value_clip=clip)
    for streams in (1, 3):
        arrays = problem(kind, masked, joint, streams)
        (head, values, log_sigma), rows = rows_of(arrays, masked, as_tensors=True)
        inputs = [head.requires_grad_(), values.requires_grad_(), log_sigma.requires_grad_()]
        expected = plain_loss(head, values, log_sigma, rows, ACTIONS[kind], coefficients)
        gradients = torch.autograd.grad(expected["total"], inputs, allow_unused=True)
        loss = loss_of(kind, arrays, masked, coefficients, as_tensors=False)
        for name, term in expected.items():
            np.testing.assert_allclose(loss[name], term.detach(), rtol=1e-10, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(loss["grad_head"], gradients[0], rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(loss["grad_values"], gradients[1], rtol=1e-8, atol=1e-12)
        if ACTIONS[kind].continuous:
            np.testing.assert_allclose(loss["grad_log_sigma"], gradients[2], rtol=1e-8, atol=1e-12)
        else:
            assert loss["grad_log_sigma"] is None
    assert 0 < float(loss["clipped"]) < 1, "the cases should stand on both sides of the clip"


@pytest.mark.parametrize(("kind", "masked", "joint", "clip", "beta"), CASES)
def test_tensors_give_what_arrays_give(kind: str, masked: bool, joint: bool, clip: float | None, beta: float) -> None:
    coefficients = Coefficients(epsilon=0.2, beta=beta, value=0.5, value_clip=clip)
    arrays = problem(kind, masked, joint)
    on_numpy = loss_of(kind, arrays, masked, coefficients, as_tensors=False)
    on_torch = loss_of(kind, arrays, masked, coefficients, as_tensors=True)
    for name, ours in on_numpy.items():
        theirs = on_torch[name]
        if ours is not None:
            assert isinstance(theirs, Tensor), name
            precision = 1e-6 if name == "clipped" else 1e-9  # a count over rows, which torch divides in float32
            np.testing.assert_allclose(ours, theirs.numpy(), rtol=precision, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("kind", ["one branch", "hybrid"])
@pytest.mark.parametrize("as_tensors", [False, True])
def test_a_mask_that_allows_nothing_gives_finite_numbers(kind: str, as_tensors: bool) -> None:
    coefficients = Coefficients(epsilon=0.2, beta=0.01, value=0.5, value_clip=0.2)
    arrays = tuple(array.astype(np.float32) for array in problem(kind, True, False))
    arrays[5][3] = 0
    loss = loss_of(kind, arrays, True, coefficients, as_tensors)
    for name in ("total", "entropy", "divergence", "grad_head"):
        assert np.isfinite(np.asarray(loss[name])).all(), name
    start = ACTIONS[kind].continuous
    assert not np.asarray(loss["grad_head"])[3, start:].any()


def test_large_logits_do_not_overflow() -> None:
    coefficients = Coefficients(epsilon=0.2, beta=0.01, value=0.5, value_clip=None)
    arrays = [array.astype(np.float32) for array in problem("one branch", False, False)]
    arrays[0] *= 1e4
    arrays[6][:] = -0.01
    loss = loss_of("one branch", tuple(arrays), False, coefficients, as_tensors=False)
    assert math.isfinite(loss["total"])
    assert np.isfinite(loss["grad_head"]).all()


def test_float32_stays_float32() -> None:
    coefficients = Coefficients(epsilon=0.2, beta=0.01, value=0.5, value_clip=0.2)
    arrays = tuple(array.astype(np.float32) for array in problem("hybrid", True, False))
    loss = loss_of("hybrid", arrays, True, coefficients, as_tensors=False)
    assert loss["grad_head"].dtype == loss["grad_values"].dtype == np.float32
    assert loss["grad_log_sigma"].dtype == np.float32
