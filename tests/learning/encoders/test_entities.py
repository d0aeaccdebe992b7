"""Sets of entities: attention against its formula, row by row and in float64; what is absent leaves no trace."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from rl_tui.engine.learning.encoders.entities import EntityEncoder
from rl_tui.engine.learning.networks.attention import Attention
from rl_tui.engine.specs import ObservationSpec

SETS = (ObservationSpec("enemies", (5, 3)), ObservationSpec("walls", (4, 2)))
GOLDEN = {0: (1.282960, 3.141095), 6: (1.382995, 2.958591)}  # by own columns: loss, length of its gradient


def tensor(seed: int, *shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def encoder(columns: int) -> EntityEncoder:
    return EntityEncoder(np.random.default_rng(0), columns, SETS)


def observed(rows: int = 4) -> tuple[Tensor, list[Tensor]]:
    """Own columns and two sets: a full row, one with gaps, one with one entity, one without any."""
    sets = [tensor(1, rows, 5, 3).float(), tensor(2, rows, 4, 2).float()]
    sets[0][1, [0, 3]] = 0
    sets[0][2:] = 0
    sets[1][2, 1:] = 0
    sets[1][3] = 0
    return tensor(3, rows, 6).float(), sets


def normalized(row: Tensor) -> Tensor:
    return (row - row.mean()) / torch.sqrt(((row - row.mean()) ** 2).mean() + 1e-5)


def attention_of_one_row(attention: Attention, entities: Tensor, is_absent: Tensor) -> Tensor:
    """Every sum written out, for E = 8 in 4 heads of 2."""
    inputs = [normalized(entity) for entity in entities]
    weights, biases = attention.projections.weight.split(8), attention.projections.bias.split(8)
    queries, keys, values = (
        [weight @ entity + bias for entity in inputs] for weight, bias in zip(weights, biases, strict=True)
    )
    total, count = torch.zeros(8, dtype=entities.dtype), 0
    for i in range(len(inputs)):
        if is_absent[i]:
            continue
        parts = []
        for head in range(4):
            part = slice(2 * head, 2 * head + 2)
            scores = [queries[i][part] @ key[part] / math.sqrt(8) for key in keys]
            shares = torch.stack([s.exp() * (not a) for s, a in zip(scores, is_absent, strict=True)])
            shares = shares / shares.sum()
            parts.append(sum((share * value[part] for share, value in zip(shares, values, strict=True))))
        mixed = attention.result.weight @ torch.cat(parts) + attention.result.bias
        total, count = total + normalized(mixed + inputs[i]), count + 1
    return total / (count + 1e-7)


def test_attention_is_its_formula_and_zero_for_a_row_without_entities() -> None:
    attention = Attention(np.random.default_rng(0), 8).double()
    torch.nn.init.constant_(attention.projections.bias, 0.3)
    torch.nn.init.constant_(attention.result.bias, 0.1)
    entities = tensor(1, 4, 5, 8)
    is_absent = torch.tensor([[0] * 5, [0, 1, 0, 1, 0], [1, 1, 1, 0, 1], [1] * 5]).bool()
    found = attention(entities, is_absent)
    expected = [attention_of_one_row(attention, *row) for row in zip(entities, is_absent, strict=True)]
    torch.testing.assert_close(found, torch.stack(expected))
    assert not found[3].any()


def test_gradients_of_attention_are_those_of_differences() -> None:
    attention = Attention(np.random.default_rng(0), 8).double()
    is_absent = torch.tensor([[False, True, False], [True, True, True]])
    assert torch.autograd.gradcheck(
        lambda entities, *_: attention(entities, is_absent),
        (tensor(1, 2, 3, 8).requires_grad_(), *attention.parameters()),
    )


@pytest.mark.parametrize("columns", [0, 6])
def test_an_entity_is_embedded_side_by_side_with_what_else_is_seen(columns: int) -> None:
    """One linear layer over own embedding and entity, with swish behind it; own embedding the same way."""
    module = encoder(columns)
    own, sets = observed()
    rows = []
    for index, entities in enumerate(sets):
        seen, layer = entities, module.sets[index].weight
        if columns:
            embedded = torch.nn.functional.silu(own @ module.own.weight.t() + module.own.bias)
            repeated = embedded[:, None].expand(-1, entities.shape[1], -1)
            seen = torch.cat([repeated, entities], 2)
            layer = torch.cat([module.own_weights[index], layer], 1)
        rows.append(torch.nn.functional.silu(seen @ layer.t() + module.sets[index].bias))
    is_absent = torch.cat([(entities**2).sum(2) < 0.01 for entities in sets], 1)
    expected = module.attention(torch.cat(rows, 1), is_absent)
    torch.testing.assert_close(module(own if columns else None, sets), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("columns", [0, 6])
def test_parameters_are_those_counted_by_hand(columns: int) -> None:
    own = (6 * 128 + 128) + 2 * 128 * 128 if columns else 0
    sets = (3 * 128 + 128) + (2 * 128 + 128)
    attention = 4 * (128 * 128 + 128)
    module = encoder(columns)
    assert sum(parameter.numel() for parameter in module.parameters()) == own + sets + attention
    for name, parameter in module.named_parameters():
        if "bias" in name:
            assert not parameter.any()
        elif parameter.numel() > 1000:
            assert float(parameter.detach().std()) == pytest.approx(math.sqrt(0.125 / 128), rel=0.05)


def test_absent_entities_leave_no_trace() -> None:
    module = encoder(6)
    own, (enemies, walls) = observed()
    expected = module(own, [enemies, walls])
    tiny = torch.where(enemies == 0, 0.05, enemies)  # the sum of squares is 0.0075
    assert torch.equal(module(own, [tiny, walls]), expected)
    longer = torch.cat([enemies, torch.zeros(4, 3, 3)], 1)
    torch.testing.assert_close(module(own, [longer, walls]), expected)
    assert not torch.allclose(module(own, [torch.where(enemies == 0, 0.2, enemies), walls]), expected)


def test_no_gradient_reaches_absent_entities() -> None:
    module = encoder(6)
    own, sets = observed()
    (gradient,) = torch.autograd.grad(module(own, [sets[0].requires_grad_(), sets[1]]).square().sum(), sets[0])
    absent = (sets[0] ** 2).sum(2) < 0.01
    assert not gradient[absent].any()
    assert gradient[~absent].all()


def test_the_order_of_entities_does_not_matter() -> None:
    module = encoder(6)
    own, (enemies, walls) = observed()
    shuffled = module(own, [enemies[:, [3, 0, 4, 2, 1]], walls[:, [2, 3, 1, 0]]])
    torch.testing.assert_close(shuffled, module(own, [enemies, walls]))


@pytest.mark.parametrize("columns", [0, 6])
def test_golden_loss_and_gradient(columns: int) -> None:
    module = encoder(columns)
    own, sets = observed()
    target = tensor(4, 4, 128).float()
    loss = (module(own if columns else None, sets) - target).square().mean()
    gradients = torch.autograd.grad(loss, list(module.parameters()))
    length = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    assert (float(loss.detach()), float(length)) == pytest.approx(GOLDEN[columns], rel=1e-4)


def test_only_the_given_generator_is_drawn_from() -> None:
    before = torch.get_rng_state()
    assert torch.equal(encoder(6)(*observed()), encoder(6)(*observed()))
    assert torch.equal(before, torch.get_rng_state())
