"""Groups of agents on the screen: what they earn beside what their agents do, how many there are, and how large."""

from __future__ import annotations

import pytest

from rl_tui.engine.session.behavior_view import RETURN, BehaviorView
from rl_tui.engine.session.group_tags import EARLY_ENDS, GROUP_RETURN, GROUP_SIZE, GROUPS
from rl_tui.engine.session.messages import BehaviorStarted, BehaviorStateChanged, MetricsReported
from rl_tui.tui.charts.metrics import metric_order
from rl_tui.tui.panes.detail import metric_pairs
from rl_tui.tui.panes.group_lines import group_line, group_pairs
from tests.tui.driver import Driven
from tests.tui.scenes import Story
from tests.tui.snapshots import check

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}
OF_GROUPS = {GROUP_RETURN: 1.25, GROUPS: 1234.0, GROUP_SIZE: 3.0, EARLY_ENDS: 0.97, "Losses/Baseline Loss": 0.02}


def reported(metrics: dict[str, float], step: int = 100_000) -> MetricsReported:
    return MetricsReported("Rescue", step, 60.0, metrics, None, None, None, True)


def rescue() -> Story:
    """A behavior with groups beside one without."""
    story = Story()
    story.begin("Rescue", algorithm="poca", environment="toy:rescue")
    story.publish(BehaviorStarted("Walker", "ppo", "gymnasium:Walker-v5", 0, 500_000, 8, 9347, True))
    story.publish(BehaviorStateChanged("Walker", "training"))
    story.train("Walker", 60, 80_000, 412.0)
    story.train("Rescue", 60, 80_000, 0.5)
    for number in range(40):
        earned = 1.2 * number / 40 + story.chance.gauss(0, 0.02)
        metrics = OF_GROUPS | {GROUP_RETURN: earned, EARLY_ENDS: 1.6 - number / 60}
        story.publish(reported(metrics, 80_000 + 500 * number), after=1)
    story.devices()
    return story


@pytest.mark.parametrize("size", SIZES)
async def test_a_behavior_with_groups_looks_as_it_was_designed(size: str) -> None:
    async with Driven(rescue().view(), SIZES[size]) as screen:
        check(f"groups-{size}", await screen.text())


async def test_what_groups_earn_can_be_seen_beside_what_agents_earn() -> None:
    async with Driven(rescue().view(), (120, 40)) as screen:
        head, rescues, walkers = (await screen.text()).splitlines()[2:5]
        assert "group" in head
        assert "1.1" in rescues[head.index("group") - 3 : head.index("group") + 6]
        assert walkers[head.index("group") + 4] == "-"
        text = await screen.publish(reported(OF_GROUPS | {GROUP_RETURN: 1.375}))
        assert "group total   1.375" in text
        assert "groups        1.23k" in text
        assert "group size    3.000  early ends    0.970" in text


def test_there_is_nothing_of_groups_without_any() -> None:
    behavior = BehaviorView("Walker")
    behavior.metrics = {"Policy/Entropy": 1.0}
    assert group_line(behavior, (), 11, 8) == []
    assert group_pairs(behavior) == []


async def test_a_trainer_with_a_long_name_has_a_column_wide_enough() -> None:
    story = Story()
    story.begin("Rescue", algorithm="mappo", environment="toy:rescue")
    async with Driven(story.view(), (80, 24)) as screen:
        head, row = (await screen.text()).splitlines()[2:4]
        assert "trainer" in head
        assert "MAPPO" in row


def test_what_is_in_these_lines_is_not_listed_again_and_is_the_first_other_curve() -> None:
    behavior = BehaviorView("Rescue")
    behavior.metrics = OF_GROUPS
    assert [name for name, _ in metric_pairs(behavior)] == ["base loss"]
    assert metric_order([*OF_GROUPS, RETURN])[:2] == [RETURN, GROUP_RETURN]
