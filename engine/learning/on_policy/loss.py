"""The loss of a mini-batch, and its terms as metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rl_tui.engine.learning.networks.flat import on_host
from rl_tui.engine.learning.on_policy.actor_critic import Outputs

Array: TypeAlias = Any  # numpy array on the CPU, torch tensor elsewhere
POLICY, DIVERGENCE = "Losses/Policy Loss", "Policy/KL Divergence"
Terms: TypeAlias = Sequence[Array]  # f32[] each: the total, then what a trainer's `tags` name, then added terms


@dataclass(frozen=True, slots=True)
class Loss:
    """total: f32[]. terms: f32[] each, by ML-Agents' tag. gradients: of the total, for the networks' outputs."""

    total: Array
    terms: Mapping[str, Array]
    gradients: Outputs

    def read(self, tags: Sequence[str], added: Sequence[Array] = ()) -> Terms:
        """Its terms, in the order of the tags. added: further ones, which are part of the total already."""
        return (self.total, *[self.terms[tag] for tag in tags], *added)


def unsigned(terms: Terms, tags: Sequence[str]) -> Terms:
    """As in ML-Agents: signs of the policy's loss do not cancel between mini-batches."""
    changed = list(terms)
    if POLICY in tags:
        place = 1 + tags.index(POLICY)
        changed[place] = abs(changed[place])
    return changed


def means(terms: Sequence[Terms], weights: Sequence[int]) -> list[float]:
    """Over mini-batches, moved to the host together."""
    return means_and_number(terms, weights, 0.0)[0]


def means_and_number(terms: Sequence[Terms], weights: Sequence[int], number: Array) -> tuple[list[float], float]:
    """The means of terms, and one more number f32[], moved to the host together."""
    by_name, total = zip(*terms, strict=False), sum(weights)  # a custom loss may have come or gone meanwhile
    sums = [sum(term * weight for term, weight in zip(of, weights, strict=True)) for of in by_name]
    *found, last = on_host([*sums, number])
    return [each / total for each in found], last


def metrics(terms: Terms, tags: Sequence[str]) -> dict[str, Any]:
    """Without the total, by tag."""
    return dict(zip(tags, terms[1:], strict=False))
