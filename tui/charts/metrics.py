"""Metrics by their tags: in which order they are offered, and what they are called."""

from __future__ import annotations

from collections.abc import Iterable

from engine.session.text import safe_text
from engine.session.view import RETURN

INTERESTING = (
    "Environment/Episode Length",
    "Policy/Entropy",
    "Policy/KL Divergence",
    "Losses/Value Loss",
    "Losses/Policy Loss",
    "Policy/Learning Rate",
    "Self-play/ELO",
    "Environment/Cumulative Reward",
    "Policy/Clip Fraction",
    "Policy/Extrinsic Value Estimate",
)


def metric_order(tags: Iterable[str]) -> list[str]:
    """The return first, then what tells most about learning, then the rest by name."""
    there = set(tags)
    first = [tag for tag in (RETURN, *INTERESTING) if tag in there]
    return first + sorted(there - set(first))


def nth_metric(tags: Iterable[str], n: int) -> str:
    """The nth metric besides the return, from 0; the usual one there while the behavior has not so many."""
    order = [tag for tag in metric_order(tags) if tag != RETURN]
    return order[n] if n < len(order) else INTERESTING[n % len(INTERESTING)]


def metric_title(tag: str) -> str:
    """The tag without its group, fit to be drawn."""
    return safe_text(tag.rpartition("/")[2] or tag)
