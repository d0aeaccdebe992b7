"""Attention over a set with each member replaced, beside an attention over each of these sets."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from rl_tui.engine.learning.networks.attention import Attention
from rl_tui.engine.learning.networks.replaced_members import FEW, attend_with_each_replaced

SETS, SIZE = 4, 16
COUNTS = [1, 2, 3, FEW, FEW + 1, 20]


def one_by_one(attention: Attention, members: Tensor, others: Tensor, is_absent: Tensor) -> tuple[Tensor, Tensor]:
    """As it is defined."""
    means = []
    for place in range(members.shape[1]):
        replaced = members.clone()
        replaced[:, place] = others[:, place]
        means.append(attention(replaced, is_absent))
    return torch.stack(means, 1), attention(others, is_absent)


def inputs(count: int, sharpness: float = 1.0) -> tuple[Attention, Tensor, Tensor, Tensor]:
    """In float64; in the first set no one is absent, in the last all but one. sharpness: of queries and keys."""
    random = np.random.default_rng(count)
    attention = Attention(random, SIZE).double()
    with torch.no_grad():
        attention.projections.weight[: 2 * SIZE] *= sharpness
        attention.projections.bias.copy_(torch.from_numpy(random.standard_normal(3 * SIZE)))
        attention.result.bias.copy_(torch.from_numpy(random.standard_normal(SIZE)))
    members, others = torch.from_numpy(random.standard_normal((2, SETS, count, SIZE)))
    is_absent = torch.from_numpy(random.random((SETS, count)) < 0.4)
    is_absent[0], is_absent[-1] = False, True
    is_absent[:, 0] = False
    return attention, members.requires_grad_(), others.requires_grad_(), is_absent


def with_gradients(compute: object, given: tuple[Attention, Tensor, Tensor, Tensor]) -> list[Tensor]:
    """What is computed for who is there, and the gradients of it."""
    attention, members, others, is_absent = given
    assert callable(compute)
    means, alone = compute(attention, members, others, is_absent)
    random = torch.Generator().manual_seed(0)
    means = means * ~is_absent[..., None]
    total = (means * torch.rand(means.shape, generator=random)).sum()
    total = total + (alone * torch.rand(alone.shape, generator=random)).sum()
    return [means, alone, *torch.autograd.grad(total, [members, others, *attention.parameters()])]


@pytest.mark.parametrize("count", COUNTS)
def test_each_set_is_attended_to_as_if_it_were_alone(count: int) -> None:
    found = with_gradients(attend_with_each_replaced, inputs(count))
    expected = with_gradients(one_by_one, inputs(count))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("count", [3, 20])
@pytest.mark.parametrize("sharpness", [5.0, 25.0])
def test_an_agent_that_has_nearly_all_attention_can_be_replaced_in_float32(count: int, sharpness: float) -> None:
    """Without what it adds, next to nothing of a sum may be left."""
    attention, members, others, is_absent = inputs(count, sharpness)
    expected = one_by_one(attention, members, others, is_absent)[0][~is_absent]
    scores = attention.attended(members, is_absent).scores.softmax(3)
    assert scores.max() > 1 - 1e-6
    single = attention.float(), members.float(), others.float(), is_absent
    found = attend_with_each_replaced(*single)[0][~is_absent]
    plain = one_by_one(*single)[0][~is_absent]
    error, usual = (found - expected).abs().max(), (plain - expected).abs().max()
    assert error <= 4 * usual + 1e-6, (error, usual)


def test_scores_that_are_far_apart_leave_numbers() -> None:
    attention, members, others, is_absent = inputs(20, sharpness=1e3)
    single = attention.float(), members.float().detach().requires_grad_(), others.float().detach().requires_grad_()
    for each in with_gradients(attend_with_each_replaced, (*single, is_absent)):
        assert each.isfinite().all()
