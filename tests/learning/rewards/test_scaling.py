"""Scaled rewards against a loop over every step, as VecNormalize of OpenAI Baselines defines them."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.rewards.base import RewardContext
from rl_tui.engine.learning.rewards.extrinsic import ExtrinsicReward
from rl_tui.engine.learning.rewards.scaling import LIMIT, RewardScaler
from rl_tui.engine.learning.rewards.settings import ExtrinsicSettings
from rl_tui.engine.specs import Ending, Float32, State, Trajectories
from tests.learning.rollouts import SPEC, rewarded

Segments: TypeAlias = list[tuple[int, list[float], Ending]]


class SlowScaler:
    """One row at a time. Statistics are those of all returns so far, beginning with 1e-4 rows of mean 0, variance 1."""

    def __init__(self, gamma: float):
        self.gamma = gamma
        self.returns: dict[int, float] = {}
        self.seen: list[float] = []

    def scale(self, segments: Segments) -> list[float]:
        for agent, rewards, ending in segments:
            for reward in rewards:
                self.returns[agent] = self.gamma * self.returns.get(agent, 0.0) + reward
                self.seen.append(self.returns[agent])
            if ending != Ending.CUT:
                self.returns[agent] = 0.0
        weights = np.array([1e-4, *np.ones(len(self.seen))])
        values = np.array([0.0, *self.seen])
        mean = np.average(values, weights=weights)
        variance = np.average((values - mean) ** 2 + np.array([1.0, *np.zeros(len(self.seen))]), weights=weights)
        flat = np.array([reward for _, rewards, _ in segments for reward in rewards])
        return np.clip(flat / np.sqrt(variance + 1e-8), -10, 10).tolist()


def scaled(scaler: RewardScaler, block: Trajectories) -> Float32:
    """Agents' own rewards, as there are no others."""
    return scaler(block, block.rewards)


def random_segments(random: np.random.Generator, agents: list[int]) -> Segments:
    """Up to three segments for each of these agents, one after the other."""
    segments: Segments = []
    for agent in agents:
        for _ in range(int(random.integers(1, 4))):
            rewards = (random.standard_normal(int(random.integers(1, 12))) * 5 + 1).astype(np.float32).tolist()
            segments.append((agent, rewards, Ending(int(random.integers(0, 3)))))
    return segments


@settings(deadline=None, max_examples=60, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), gamma=st.sampled_from([0.0, 0.9, 0.99, 1.0]), blocks=st.integers(1, 6))
def test_scaled_rewards_are_those_of_a_loop(seed: int, gamma: float, blocks: int) -> None:
    """Segments are cut and continue in a later block; agents come in any order, and new ones later."""
    random = np.random.default_rng(seed)
    ours, slow = RewardScaler(gamma), SlowScaler(gamma)
    for block in range(blocks):
        population = np.array([50, 3, 17, 8, 1, 90, 2][: 3 + block])
        agents = random.permutation(population)[: int(random.integers(1, len(population) + 1))].tolist()
        segments = random_segments(random, agents)
        np.testing.assert_allclose(scaled(ours, rewarded(segments)), slow.scale(segments), rtol=1e-4, atol=1e-5)


def test_a_cut_segment_carries_its_return_on_and_an_ending_does_not() -> None:
    for ending in Ending:
        scaler = RewardScaler(0.5)
        scaled(scaler, rewarded([(4, [8.0, 8.0], ending)]))
        scaled(scaler, rewarded([(9, [0.0], Ending.CUT), (4, [0.0], Ending.CUT)]))
        carried = 6.0 if ending is Ending.CUT else 0.0  # half of 8 + half of 8
        expected = np.array([8.0, 12.0, 0.0, carried])
        assert scaler.state().values["mean"] == pytest.approx(expected.mean(), rel=1e-3)


def test_agents_that_ended_or_left_take_no_room() -> None:
    """In some environments every episode has a new agent. Agent 1 stays, and is followed."""
    scaler = RewardScaler(0.9)
    for block in range(20):
        agents = range(500 * block, 500 * (block + 1))
        segments: Segments = [(agent, [1.0], Ending.CUT if agent % 2 else Ending.TERMINATED) for agent in agents]
        departed = np.array([agent for agent in agents if agent % 2 and agent != 1])
        scaled(scaler, replace(rewarded(segments), departed=departed))
        assert len(scaler._carried.agent_ids) == 1
    stayed, came = copy.deepcopy(scaler), copy.deepcopy(scaler)
    scaled(stayed, rewarded([(1, [0.0], Ending.CUT)]))
    scaled(came, rewarded([(3, [0.0], Ending.CUT)]))
    assert float(stayed.state().values["mean"]) > float(came.state().values["mean"])


def test_scaled_rewards_are_clipped() -> None:
    scaler = RewardScaler(0.9)
    scaled(scaler, rewarded([(0, [0.01, -0.01] * 1000, Ending.TERMINATED)]))
    paid = scaled(scaler, rewarded([(0, [100.0, -100.0], Ending.TERMINATED)]))
    assert paid.tolist() == [LIMIT, -LIMIT]
    assert paid.dtype == np.float32


@pytest.mark.parametrize("ablated", [None, "count", "mean", "variance"])
def test_loaded_statistics_go_on_as_the_saved_ones(ablated: str | None) -> None:
    random = np.random.default_rng(0)
    first, second = RewardScaler(0.9), RewardScaler(0.9)
    finished: Segments = [(agent, [5.0, 1.0, -3.0], Ending.TERMINATED) for agent in range(5)]
    scaled(first, rewarded(finished))
    values = first.state().values
    if ablated is not None:
        values = {**values, ablated: second.state().values[ablated]}
    second.load(State({}, json.loads(json.dumps(values))))
    block = rewarded(random_segments(random, [0, 1, 7]))
    assert np.array_equal(scaled(first, block), scaled(second, block)) == (ablated is None)


def test_loading_forgets_episodes_that_were_followed_before() -> None:
    block = rewarded([(0, [1.0, 2.0], Ending.TERMINATED)])
    first, second = RewardScaler(0.9), RewardScaler(0.9)
    begun = second.state()
    scaled(second, rewarded([(0, [50.0], Ending.CUT)]))
    second.load(begun)
    np.testing.assert_array_equal(scaled(first, block), scaled(second, block))


def extrinsic(normalize: bool) -> ExtrinsicReward:
    config = BehaviorConfig.model_validate({"normalize_reward": normalize})
    return ExtrinsicReward(ExtrinsicSettings(), RewardContext(SPEC, config, 0, torch.device("cpu")))


def test_without_normalization_rewards_are_the_environments() -> None:
    block = rewarded([(0, [1e6, -3.0], Ending.TERMINATED)])
    signal = extrinsic(normalize=False)
    assert signal.evaluate(block).tolist() == [1e6, -3.0]
    signal.load(signal.state())
    assert signal.evaluate(block).tolist() == [1e6, -3.0]


@pytest.mark.parametrize("normalize", [False, True])
def test_the_reward_of_a_group_counts_as_each_members_own(normalize: bool) -> None:
    shared = replace(rewarded([(0, [1.0, 2.0, -3.0], Ending.CUT)]), group_rewards=np.array([0, 10, 0.5], np.float32))
    alone = rewarded([(0, [1.0, 12.0, -2.5], Ending.CUT)])
    both = [extrinsic(normalize).evaluate(block).tolist() for block in (shared, alone)]
    assert both[0] == both[1]
