"""How good a checkpoint is, in the words of tables."""

from __future__ import annotations

from collections.abc import Iterable

from rl_tui.engine.session.messages import CheckpointSaved
from rl_tui.tui.drawing.text import num_cells, number


def has_return(saved: CheckpointSaved) -> bool:
    """Whether it is ranked by a return, not by a loss."""
    return saved.mean_return is not None or saved.held_out_loss is None


def score(saved: CheckpointSaved | None) -> str:
    """Its return, or without one its held-out loss; "-" for neither."""
    if saved is None or has_return(saved):
        return number(None if saved is None else saved.mean_return)
    return f"loss {number(saved.held_out_loss)}"


def score_width(checkpoints: Iterable[tuple[float, CheckpointSaved]], least: int = 8) -> int:
    """Cells in which the score of each has room."""
    return max([least, *(num_cells(score(saved)) for _, saved in checkpoints)])
