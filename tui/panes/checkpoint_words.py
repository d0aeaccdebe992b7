"""How good a checkpoint is, in the words of tables."""

from __future__ import annotations

from collections.abc import Iterable

from rl_tui.engine.session.messages import CheckpointSaved
from rl_tui.engine.session.returns import ranking_loss
from rl_tui.tui.drawing.text import num_cells, score


def has_return(saved: CheckpointSaved) -> bool:
    """Whether it is ranked by a return, not by a loss."""
    return ranking_loss(saved) is None


def score_of(saved: CheckpointSaved | None) -> str:
    """Its return, or without one its held-out loss; "-" for neither."""
    return "-" if saved is None else score(saved.mean_return, saved.held_out_loss)


def score_width(checkpoints: Iterable[tuple[float, CheckpointSaved]], least: int = 8) -> int:
    """Cells in which the score of each has room."""
    return max([least, *(num_cells(score_of(saved)) for _, saved in checkpoints)])
