"""A behavior that learns from demonstrations alone: no episode of its training ever ends."""

from __future__ import annotations

import pytest

from rl_tui.engine.learning.bc.settings import HELD_OUT, LOSS, BCSettings
from rl_tui.engine.session.behavior_view import EVALUATION, RETURN
from rl_tui.engine.session.messages import EpisodesFinished, EvaluationReported, RunStateChanged
from rl_tui.tui.charts.drawn_metrics import first_metrics
from rl_tui.tui.charts.metrics import scale_metric
from rl_tui.tui.charts.run_figure import run_figure
from rl_tui.tui.charts.state import ChartState
from rl_tui.tui.drawing.glyphs import UNICODE
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.screens.test_detail import read_all
from tests.tui.snapshots import check

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}
NUM_BEFORE_TRAINING = 4  # events


def begun() -> scenes.Story:
    """Before its first summary."""
    story = scenes.cloned()
    story.published = story.published[: NUM_BEFORE_TRAINING + 1]
    return story


@pytest.mark.parametrize("size", SIZES)
async def test_its_losses_look_as_they_were_designed(size: str) -> None:
    async with Driven(scenes.cloned().view(), SIZES[size]) as screen:
        text = await screen.text()
        check(f"cloned-{size}", text)
        assert "episode" not in text
        assert "collected" not in text


def test_its_trainer_names_the_losses_that_it_reports() -> None:
    assert BCSettings.headline_metrics == (HELD_OUT, LOSS)


def test_both_losses_are_drawn_on_one_scale() -> None:
    drawn = run_figure(scenes.cloned().view(), 0, ChartState(), UNICODE)
    assert drawn is not None
    assert [(curve.name, curve.metric) for curve in drawn.curves] == [
        ("Held-Out Cloning Loss", LOSS), ("Cloning Loss", LOSS),
    ]  # fmt: skip
    assert scale_metric(HELD_OUT, [HELD_OUT]) == HELD_OUT, "alone it has a range of its own"


def test_evaluations_come_before_losses_and_returns_before_both() -> None:
    assert first_metrics([]) == [RETURN]
    assert first_metrics(list(begun().view().behaviors.values())) == [HELD_OUT, LOSS]
    story = scenes.cloned(is_evaluated=True)
    assert first_metrics(list(story.view().behaviors.values())) == [EVALUATION]
    story.publish(EpisodesFinished("Walker", 130_000, 1, 5.0, 5.0, 5.0, 9.0))
    assert first_metrics(list(story.view().behaviors.values())) == [RETURN]


def test_trainer_that_names_no_metrics_has_the_first_that_it_reports() -> None:
    behaviors = scenes.cloned().view().behaviors
    behaviors["Walker"].headline_metrics = ()
    assert first_metrics(list(behaviors.values())) == ["Policy/Learning Rate"]
    behaviors["Walker"].histories = {RETURN: behaviors["Walker"].returns}
    assert first_metrics(list(behaviors.values())) == [RETURN]


async def test_first_evaluation_takes_the_place_of_the_losses() -> None:
    async with Driven(scenes.cloned().view()) as screen:
        assert "Held-Out Cloning Loss + Cloning Loss" in await screen.text()
        text = await screen.publish(EvaluationReported("Walker", 130_000, 321.0, 3.5, 10, 200.0, 1.0))
        assert "Evaluation · Walker" in text
        assert "321.0" in text


async def test_next_metric_follows_what_is_drawn_and_none_is_the_return() -> None:
    async with Driven(scenes.cloned(is_evaluated=True).view(), (120, 40)) as screen:
        seen = []
        for _ in range(4):
            await screen.press("m")
            seen += screen.drawn
        assert seen == [HELD_OUT, LOSS, "Policy/Learning Rate", EVALUATION]


@pytest.mark.parametrize("size", SIZES)
async def test_before_the_first_summary_it_says_what_it_waits_for(size: str) -> None:
    async with Driven(begun().view(), SIZES[size]) as screen:
        text = await screen.text()
        assert "waiting for the first summary" in text
        assert "learned from 10.0k demonstrated steps at 10.0k steps/s" in text
        assert "episode" not in text.lower()
        text = await screen.publish(RunStateChanged("stopped", "", 0))
        assert "the run ended before the first summary" in text
        assert "episode" not in text.lower()


async def test_range_of_the_y_axis_is_that_of_both_losses() -> None:
    async with Driven(scenes.cloned().view(), (120, 40)) as screen:
        for key in ("B", *["backspace"] * 4, *"..1", "enter"):
            await screen.press(key)
        assert screen.app.context.state.chart.y_ranges == {HELD_OUT: (None, 1.0), LOSS: (None, 1.0)}


async def test_its_best_checkpoint_has_its_loss() -> None:
    async with Driven(scenes.cloned().view(), (120, 40)) as screen:
        text = await screen.text()
        assert "★ 80.0k loss 0.142" in text
        assert "best loss" in text
        text = await screen.press("k")
        assert "held out" in text
        assert "Held-Out Cloning Loss + Cloning Loss" in text, "the chart below"
        assert "loss 0.142" in text
        await screen.press("escape")
        text = await screen.publish(RunStateChanged("finished", "", 0))
        assert "best checkpoint loss 0.142" in text


async def test_evaluated_one_has_returns_again() -> None:
    async with Driven(scenes.cloned(is_evaluated=True).view(), (120, 40)) as screen:
        text = await screen.text()
        assert "best ckpt" in text
        assert "loss 0." not in text
        assert "300.0" in await screen.press("k")


async def test_its_page_has_no_episodes() -> None:
    async with Driven(scenes.cloned().view(), (120, 40)) as screen:
        await screen.press("enter")
        text = await read_all(screen)
        assert "best loss" in text
        assert "episodes" not in text
        assert "mean return" not in text


async def test_labels_of_a_teacher_are_shown_once() -> None:
    view = scenes.soft().view()
    behavior = view.behaviors["Pendulum"]
    del behavior.metrics["Policy/Replay Steps"]
    behavior.metrics["Policy/Labels"] = 49_000.0
    behavior.step, behavior.first_step = 80_000, 80_000
    async with Driven(view, (120, 40)) as screen:
        text = await screen.press("2")
        assert "49.0k of 50k steps" in text
        assert "labels" not in text
