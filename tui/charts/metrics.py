"""Metrics by their tags: in which order they are offered, and what they are called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rl_tui.engine.session.behavior_view import EVALUATION, LESSON_NUMBER, RETURN
from rl_tui.engine.session.group_tags import GROUP_RETURN
from rl_tui.engine.session.league_view import RATING
from rl_tui.engine.session.text import safe_text

REWARD = "Environment/Cumulative Reward"  # the returns again, as means over summaries
USUAL = (  # offered before the first summary
    "Environment/Episode Length",
    "Policy/Entropy",
    "Policy/KL Divergence",
    "Policy/Clip Fraction",
    "Losses/Value Loss",
    "Policy/Learning Rate",
)
INTERESTING = (  # of any trainer, the earliest signs of trouble first
    RATING,
    GROUP_RETURN,
    "Environment/Episode Length",
    "Policy/Entropy",
    "Policy/Continuous Entropy Coeff",
    "Policy/Discrete Entropy Coeff",
    "Policy/KL Divergence",
    "Policy/Clip Fraction",
    "Losses/Value Loss",
    "Losses/Q1 Loss",
    "Policy/Learning Rate",
    "Losses/Policy Loss",
    "Losses/Q2 Loss",
    "Policy/Extrinsic Value Estimate",
    "Policy/Extrinsic Value",
)


def metric_order(tags: Iterable[str], headline: Iterable[str] = ()) -> list[str]:
    """The return first and what was measured apart, then the most informative on learning, then the rest by name.

    headline: what the trainer itself names as most informative. Each stands once: where there is the return of
    episodes, the summaries' means of it are left out.
    """
    there = set(tags)
    there -= {REWARD} if RETURN in there else set()
    first = [tag for tag in dict.fromkeys((RETURN, EVALUATION, *headline, *INTERESTING)) if tag in there]
    return first + sorted(there - set(first))


def grid_metrics(
    tags: Iterable[str], pinned: Sequence[str], drawn: Sequence[str], headline: Iterable[str] = (), most: int = 0
) -> list[str]:
    """The metrics in the grid of a behavior that has `tags`: those pinned, else the usual ones.

    drawn: the metrics of the large chart, which the usual ones do not repeat. most: so many usual ones where
    there is room for more than six. What the behavior does not have is left out once its first summary has come.
    """
    there = set(tags)
    if there <= {RETURN, EVALUATION}:
        usual = USUAL if RETURN in there else headline
        return list(pinned) or [tag for tag in usual if tag not in drawn]
    beside = {EVALUATION} if RETURN in there else set()
    order = [tag for tag in metric_order(there - beside, headline) if tag not in drawn]
    return [tag for tag in pinned if tag in there] or order[: max(len(USUAL), most)]


def scale_metric(tag: str, drawn: Sequence[str]) -> str:
    """The metric on whose scale it is drawn: what is held out on that of what is learned from, where both are drawn."""
    learned = tag.replace("/Held-Out ", "/")
    return learned if learned in drawn else tag


def full_name(tag: str) -> str:
    """The tag, and where it is ours the name that other programs know it by."""
    return f"{RETURN} ({REWARD})" if tag == RETURN else tag


def metric_title(tag: str) -> str:
    """The tag without its group, fit to be drawn. What was measured apart has other metrics' names, and keeps it."""
    if tag == EVALUATION:
        return "Evaluation"
    if tag.startswith(LESSON_NUMBER):
        return safe_text(f"Lesson Number of {tag.removeprefix(LESSON_NUMBER)}")
    name = safe_text(tag.rpartition("/")[2] or tag)
    return f"Evaluation {name}" if tag.startswith("Evaluation/") else name
