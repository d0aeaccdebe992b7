"""Attention over a set, and over the same set with each of its members replaced.

A counterfactual baseline asks for that: for each agent of a group, what the group is worth if this agent did something
else. Written plainly, a group of N needs N attentions over N members. They share their members, and so nearly all of
the arithmetic.

Shapes: B sets, N members of each at most, E columns of an embedding, H heads; K and L terms of a sum.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from rl_tui.engine.learning.networks.attention import FORBIDDEN, Attended, Attention, mean

FEW = 8  # members: up to here, few large operations are faster than less arithmetic


def attend_with_each_replaced(
    attention: Attention, members: Tensor, others: Tensor, is_absent: Tensor
) -> tuple[Tensor, Tensor]:
    """f32[B, N, E]: the mean of attention over the members where other n takes the place of member n, for each n; and
    f32[B, E]: the mean over the others alone.

    members, others: f32[B, N, E]. is_absent: bool[B, N].
    """
    attended = attention.attended(torch.cat([members, others], 1), is_absent.repeat(1, 2))
    compute = _each_set if members.shape[1] <= FEW else _differences
    return compute(attention, attended, is_absent)


def _each_set(attention: Attention, attended: Attended, is_absent: Tensor) -> tuple[Tensor, Tensor]:
    """One after the other: N + 1 sets of N members, of which the last has the others alone."""
    num_members = is_absent.shape[1]
    places = torch.arange(num_members, device=is_absent.device)
    chosen = places.repeat(num_members + 1, 1)
    chosen[places, places] += num_members
    chosen[num_members] += num_members
    is_chosen = torch.zeros(num_members + 1, 2 * num_members, dtype=torch.bool, device=is_absent.device)
    is_chosen.scatter_(1, chosen, True)
    rows = chosen.flatten()
    scores = attended.scores.index_select(2, rows)
    scores = scores.view(*scores.shape[:2], *chosen.shape, -1)  # f32[H, B, N + 1, N, 2 N]
    weights = scores.masked_fill(~is_chosen[:, None], -math.inf).softmax(-1)
    weights = weights.permute(1, 2, 3, 0, 4).flatten(3).flatten(1, 2)  # f32[B, (N + 1) N, H 2 N]
    residual = (attended.normal + attention.result.bias).index_select(1, rows)
    result = weights @ attended.results.transpose(0, 1).flatten(1, 2)
    embedded = attention.embedded(result + residual).view(len(result), *chosen.shape, -1)
    means = mean(embedded, ~is_absent[:, None])
    return means[:, :-1], means[:, -1]


def _differences(attention: Attention, attended: Attended, is_absent: Tensor) -> tuple[Tensor, Tensor]:
    """The same by what the replacement of one member changes for another, which is one term of its softmax.

    With e the exponential of a score, member q attends to the sum of e[q, k] v[k] over all members k, divided by that
    of e[q, k]. If other n takes the place of member n, each sum loses the term of member n and gains that of other n.
    To take away the largest term would leave rounding errors where it is nearly the whole sum. So it is kept apart.
    """
    num_members = is_absent.shape[1]
    is_same = torch.eye(num_members, dtype=torch.bool, device=is_absent.device)
    of_members, of_others = torch.split(attended.scores, num_members, 2)
    pairs = _changed(attention, attended, *torch.split(of_members, num_members, 3))
    present = (~is_absent).to(pairs.dtype)
    total = ((present[:, None] * ~is_same)[:, :, None] @ attention.embedded(pairs))[:, :, 0]

    back, among_others = torch.split(of_others, num_members, 3)
    weights = torch.where(is_same, among_others, back).softmax(3)
    weights = torch.cat([weights.masked_fill(is_same, 0), weights.masked_fill(~is_same, 0)], 3)
    alone = functional.pad(among_others.softmax(3), (num_members, 0))
    result = (torch.cat([weights, alone], 2) @ attended.results).sum(0).view(*pairs.shape[:1], 2, *pairs.shape[2:])
    residual = (attended.normal[:, num_members:] + attention.result.bias)[:, None]
    who_replaces, others = attention.embedded(result + residual).unbind(1)
    means = (total + who_replaces) / (present.sum(1) + 1e-7)[:, None, None]
    return means, mean(others, ~is_absent)


def _changed(attention: Attention, attended: Attended, among: Tensor, towards: Tensor) -> Tensor:
    """f32[B, n, q, E]: member q before its layer norm where n is replaced, of no use for q = n. Scores f32[H, B, q, n]
    of members among each other, and towards the others."""
    num_members = among.shape[2]
    peak, largest = among.max(3, keepdim=True)
    is_largest = torch.zeros_like(among, dtype=torch.bool).scatter_(3, largest, True)
    smaller = among.masked_fill(is_largest, FORBIDDEN)
    next_peak = smaller.detach().amax(3, keepdim=True)
    rest = (smaller - next_peak).exp().masked_fill(is_largest, 0)
    # of each pair, beside the largest of its own: no sum is 0, and no exponential infinite
    beside = torch.maximum(torch.where(is_largest, next_peak, peak), towards).detach()
    new, of_rest = (towards - beside).exp(), (next_peak - beside).exp()
    of_largest, old = ((of - beside).masked_fill(is_largest, -math.inf).exp() for of in (peak, among))
    share = 1 / (of_rest * rest.sum(3, keepdim=True) + of_largest - old + new)

    results = attended.results.view(*among.shape[:2], 2, num_members, -1)
    summed = (torch.cat([rest, is_largest.to(rest.dtype)], 2) @ results[:, :, 0]).view_as(results)
    residual = (attended.normal[:, :num_members] + attention.result.bias)[:, :, None]
    of_query = torch.cat([summed.permute(1, 3, 0, 2, 4).flatten(2, 3), residual], 2)  # f32[B, q, 2 H + 1, E]
    by_query = torch.stack([share * of_rest, share * of_largest], 4).permute(1, 2, 3, 0, 4).flatten(3)
    by_query = functional.pad(by_query, (0, 1), value=1.0)  # f32[B, q, n, 2 H + 1]
    of_replaced = results.permute(1, 3, 0, 2, 4).flatten(2, 3)  # f32[B, n, 2 H, E]
    by_replaced = torch.stack([-share * old, share * new], 4).permute(1, 3, 2, 0, 4).flatten(3)  # f32[B, n, q, 2 H]
    changed: Tensor = (by_query @ of_query).transpose(1, 2) + by_replaced @ of_replaced
    return changed
