"""Soft actor-critic on the screen: what it fills, what it learns with and how that is published."""

from __future__ import annotations

from rl_tui.engine.session.behavior_view import RETURN
from rl_tui.engine.session.messages import BehaviorStateChanged, MetricsReported, ProgressReported
from rl_tui.tui.charts.metrics import grid_metrics
from rl_tui.tui.panes.detail import metric_pairs
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.screens.test_detail import read_all
from tests.tui.snapshots import check


async def test_behavior_that_fills_its_buffer_looks_as_it_was_designed() -> None:
    async with Driven(scenes.filling().view()) as screen:
        check("filling-80x24", await screen.text())
    async with Driven(scenes.filling().view(), (120, 40)) as screen:
        check("filling-120x40", await screen.text())


async def test_filling_ends_with_the_step_at_which_learning_begins() -> None:
    async with Driven(scenes.filling().view(), (120, 40)) as screen:
        text = await screen.text()
        assert "◌ filling" in text
        assert "replay      412 of 50k steps, 2.1M memory" in text
        assert "learning    starts at step 1k" in text
        assert "ETA" not in text, "it learns slower than it fills"
        text = await screen.publish(ProgressReported("Pendulum", 1000, 1000, 800.0, 1))
        assert "● training" in text
        assert "ETA" in text
        assert "learning " not in text
        assert "replay      1.00k of 50k steps" in text


async def test_paused_behavior_is_paused_and_not_filling() -> None:
    async with Driven(scenes.filling().view()) as screen:
        text = await screen.publish(BehaviorStateChanged("Pendulum", "paused"))
        assert "‖ paused" in text
        assert "filling" not in text


async def test_restored_buffer_is_reported_as_the_summary_does_and_never_overflows() -> None:
    story = scenes.soft()
    async with Driven(story.view(), (120, 40)) as screen:
        assert "50.0k of 50k steps" in await screen.press("2")
        for held, published in ((49_000.0, "50.0k"), (float("nan"), "50k")):
            metrics = {"Policy/Replay Steps": held}
            text = await screen.publish(MetricsReported("Pendulum", 81_000, 1.0, metrics, None, None, None, True))
            assert published in text


async def test_page_shows_everything() -> None:
    async with Driven(scenes.soft().view()) as screen:
        await screen.press("2", "enter")
        text = await read_all(screen)
        for words in (
            "50.0k of 50k steps, 2.1M memory", "policy loss", "value loss", "Q1 loss", "Q2 loss", "cont. coeff 0.028",
            "entropy -0.930", "value -81.50", "steps_per_update 1", "target_entropy -1", "tau 0.005",
        ):  # fmt: skip
            assert words in text, words


def test_figures_stand_in_order_without_those_of_networks_that_are_not_there() -> None:
    behavior = scenes.soft().view().behaviors["Pendulum"]
    del behavior.metrics["Losses/Value Loss"]
    behavior.metrics["Policy/Discrete Entropy Coeff"] = 0.1
    assert [name for name, _ in metric_pairs(behavior)] == [
        "entropy", "policy loss", "Q1 loss", "Q2 loss", "cont. coeff", "disc. coeff", "learn rate", "value",
    ]  # fmt: skip


def test_metrics_that_a_trainer_names_come_first() -> None:
    behavior = scenes.soft().view().behaviors["Pendulum"]
    behavior.headline_metrics = ("Policy/Gradient Norm", "Losses/Q2 Loss", "Policy/None")
    behavior.metrics["Policy/Gradient Norm"] = 0.5
    assert [name for name, _ in metric_pairs(behavior)][:3] == ["gradient norm", "Q2 loss", "entropy"]
    grid = grid_metrics([*behavior.histories, "Policy/Gradient Norm"], (), [RETURN], behavior.headline_metrics)
    assert grid[:3] == ["Policy/Gradient Norm", "Losses/Q2 Loss", "Environment/Episode Length"]


def test_charts_are_of_what_shows_most() -> None:
    histories = scenes.soft().view().behaviors["Pendulum"].histories
    assert [tag.rpartition("/")[2] for tag in grid_metrics(histories, (), [RETURN])] == [
        "Episode Length", "Entropy", "Continuous Entropy Coeff", "Value Loss", "Q1 Loss", "Learning Rate",
    ]  # fmt: skip
    assert grid_metrics([RETURN], (), [RETURN])[5] == "Policy/Learning Rate"


async def test_only_the_learning_rate_follows_a_schedule() -> None:
    story = scenes.soft()
    metrics = {"Policy/Learning Rate": 1e-4}
    story.publish(MetricsReported("Pendulum", 81_000, 1.0, metrics, None, None, None, True))
    async with Driven(story.view()) as screen:
        rows = (await screen.press("2", "u")).splitlines()
        values = {row.strip("▸ ").split()[0]: row.strip("▸ ").split()[1:3] for row in rows[3:7]}
        assert values == {
            "learning_rate": ["0.0003", "0.0001"],
            "tau": ["0.005", "-"],
            "steps_per_update": ["1", "-"],
            "target_entropy": ["-1", "-"],
        }
