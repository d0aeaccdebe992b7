"""Several streams side by side: each pays and reports its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.rewards.base import RewardSignal
from rl_tui.engine.learning.rewards.settings import CuriositySettings
from rl_tui.engine.learning.rewards.streams import RewardStreams
from rl_tui.engine.specs import Ending, Float32, State, Trajectories
from tests.learning.rollouts import SPEC, rewarded


class OnePerStep(RewardSignal):
    """A stream of its own, whose episodes pay as much as they are long."""

    def evaluate(self, block: Trajectories) -> Float32:
        return np.ones(block.num_rows, np.float32)


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> RewardStreams:
    """Extrinsic rewards, doubled, and one half for every step."""
    monkeypatch.setattr(CuriositySettings, "implementation", f"{__name__}:OnePerStep")
    monkeypatch.setattr(CuriositySettings, "learns", False)
    monkeypatch.setattr(CuriositySettings, "changeable", ())
    monkeypatch.setattr(CuriositySettings, "is_reevaluated", False)
    signals = {"extrinsic": {"strength": 2.0}, "curiosity": {"strength": 0.5}}
    return RewardStreams(SPEC, BehaviorConfig.model_validate({"reward_signals": signals}), 0, torch.device("cpu"))


def test_each_stream_reports_its_own_rewards_of_every_episode(streams: RewardStreams) -> None:
    blocks = [
        rewarded([(4, [1.0, 2.0], Ending.CUT), (7, [5.0], Ending.TERMINATED), (7, [6.0], Ending.TRUNCATED)]),
        rewarded([(7, [7.0], Ending.CUT)]),
        rewarded([(4, [3.0], Ending.CUT), (4, [4.0], Ending.TERMINATED), (4, [8.0], Ending.TERMINATED)]),
    ]
    found = [streams.episodes(block, streams.evaluate(block)) for block in blocks]
    assert found == [
        {"Policy/Extrinsic Reward": [10.0, 12.0], "Policy/Curiosity Reward": [0.5, 0.5]},
        {},
        {"Policy/Extrinsic Reward": [20.0, 16.0], "Policy/Curiosity Reward": [2.0, 0.5]},
    ]


def test_rewards_of_an_episode_that_an_agent_left_count_for_no_other(streams: RewardStreams) -> None:
    for ends in ("departed", "loaded"):
        block = rewarded([(4, [100.0], Ending.CUT)])
        block = replace(block, departed=np.array([4])) if ends == "departed" else block
        assert streams.episodes(block, streams.evaluate(block)) == {}
        if ends == "loaded":
            streams.load(State.merge(streams.state()))
        block = rewarded([(4, [1.0], Ending.TERMINATED)])
        assert streams.episodes(block, streams.evaluate(block))["Policy/Extrinsic Reward"] == [2.0]
