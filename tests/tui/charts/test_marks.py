"""The marks below a curve."""

from __future__ import annotations

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.messages import CheckpointSaved
from rl_tui.tui.charts.run_figure import marks
from rl_tui.tui.drawing.glyphs import UNICODE


class Asked(BehaviorView):
    """Counts how often the best checkpoint is looked for among all."""

    times = 0

    @property
    def best_checkpoint(self) -> CheckpointSaved | None:
        Asked.times += 1
        return super().best_checkpoint


def saved(step: int, mean_return: float) -> tuple[float, CheckpointSaved]:
    return float(step), CheckpointSaved("Walker", step, f"walker/{step}", "interval", mean_return, False, 9, 0.1)


def test_best_of_many_checkpoints_is_looked_for_once_and_marked() -> None:
    Asked.times = 0
    behavior = Asked("Walker", checkpoints=[saved(step, 7.0 if step == 40 else 1.0) for step in range(100)])
    shown = marks(behavior, [], "steps", 0.0, UNICODE)
    assert Asked.times == 1, "a picture with a thousand checkpoints would take seconds"
    assert [(mark.x, mark.text) for mark in shown if mark.word == "best"] == [(40, "best checkpoint 7.000")]
    assert sum(mark.word == "checkpoint" for mark in shown) == 99
