"""The metrics of the large chart: those chosen, and where none is, or that is a return that never comes, what shows
progress."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.engine.session.behavior_view import EVALUATION, RETURN, BehaviorView
from rl_tui.engine.session.league_view import RATING
from rl_tui.engine.session.view import RunView
from rl_tui.tui.charts.metrics import metric_order
from rl_tui.tui.charts.state import ChartState

MOST_LOSSES = 2  # one that is learned from, and the same of what is held out


def drawn_metrics(view: RunView, selected: int, state: ChartState) -> list[str]:
    """What is drawn of the selected behavior or of all, as the user chose."""
    return chosen_or_first(state.metrics, drawn_behaviors(view, selected, state))


def drawn_behaviors(view: RunView, selected: int, state: ChartState) -> list[BehaviorView]:
    """The selected behavior, or all."""
    everyone = list(view.behaviors.values())
    return everyone if state.has_all_behaviors else everyone[selected : selected + 1]


def chosen_or_first(chosen: Sequence[str], behaviors: Sequence[BehaviorView]) -> list[str]:
    """Those chosen; where none is, or that is a return that these behaviors never have, what shows their progress."""
    never_comes = list(chosen) == [RETURN] and not any(behavior.has_returns for behavior in behaviors)
    return first_metrics(behaviors) if not chosen or never_comes else list(chosen)


def first_metrics(behaviors: Sequence[BehaviorView]) -> list[str]:
    """What their chart shows until the user chooses: the return, or the rating of those that all play themselves; of
    those that never have a return the evaluations, and before these what their trainers name first."""
    if behaviors and all(behavior.plays_itself for behavior in behaviors):
        return [RATING]
    if any(behavior.has_returns for behavior in behaviors) or not behaviors:
        return [RETURN]
    tags = [tag for behavior in behaviors for tag in behavior.tags]
    if EVALUATION in tags:
        return [EVALUATION]
    headline = list(dict.fromkeys(tag for behavior in behaviors for tag in behavior.headline_metrics))
    reported = [tag for tag in headline if tag in tags] or metric_order(tags)[:1]
    return (reported or headline)[:MOST_LOSSES] or [RETURN]
