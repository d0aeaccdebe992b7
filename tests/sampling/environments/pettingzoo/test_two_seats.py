"""Presets whose two players are teams of one behavior: turns, masks, and rewards in the last step of both."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from rl_tui.engine.config.loading import load_config
from rl_tui.engine.config.presets import preset_path
from rl_tui.engine.running.environments import named_environments
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.sampling.random_policy import RandomPolicies, RandomPolicy
from rl_tui.engine.specs import Actions, Ending

COPIES = 6
NO_ACTIONS = Actions(np.zeros((0, 0), np.float32), np.zeros((0, 1), np.int64))
pytestmark = pytest.mark.parametrize(
    ("preset", "behavior"), [("ppo/TicTacToe", "TicTacToe"), ("ppo/ConnectFourSelfPlay", "ConnectFour")]
)


def made(preset: str) -> Environment:
    [named] = named_environments(load_config(preset_path(preset)))
    [environment] = named.source.make(0, COPIES)
    return environment


def test_both_players_of_a_copy_end_at_once_and_what_one_wins_the_other_loses(preset: str, behavior: str) -> None:
    environment, random, results = made(preset), RandomPolicies(1), defaultdict[float, int](int)
    teams = [f"{behavior}?team={team}" for team in (0, 1)]
    steps = environment.reset(1)
    waited = dict.fromkeys(steps[teams[0]].decisions.agent_ids.tolist(), 1)  # moves in the episode
    while sum(results.values()) < 60:
        steps = environment.step(dict.fromkeys(teams, NO_ACTIONS) | random.act(steps, environment.specs))
        over = {name: own.terminals for name, own in steps.items() if own.terminals is not None}
        for own in steps.values():
            assert not own.decisions.rewards.any(), "no reward but that of the end"
        if over:
            first, second = (over[name] for name in teams)
            np.testing.assert_array_equal(first.agent_ids + COPIES, second.agent_ids, "the other player of that copy")
            np.testing.assert_array_equal(first.rewards, -second.rewards)
            assert not first.truncated.any()
            assert not second.truncated.any()
            for agent, reward in zip(first.agent_ids.tolist(), first.rewards.tolist(), strict=True):
                ahead = waited.pop(agent) - waited.pop(agent + COPIES)
                assert ahead == (0 if reward < 0 else 1) or reward == 0, "who made the last move has won"
                results[reward] += 1
        for own in steps.values():
            for agent in own.decisions.agent_ids.tolist():
                waited[agent] = waited.get(agent, 0) + 1
    assert results[1] > results[-1] > 0
    environment.close()


def test_collector_has_every_reward_in_the_last_row_of_an_episode_and_no_forbidden_move(
    preset: str, behavior: str
) -> None:
    pool = SerialPool(behavior, lambda first, count: [made(preset)], 1)
    pool.start()
    try:
        collector = Collector(pool, {behavior: RandomPolicy(pool.specs[behavior], 1)}, {behavior: 1000})
        pool.reset(1)
        while not collector.is_due(behavior, 600):
            collector.receive(0.0)
            collector.act()
        block = collector.drain(behavior)
    finally:
        pool.close()
    assert pool.specs[behavior].teams == (0, 1)
    assert block.team_ids is not None
    np.testing.assert_array_equal(block.team_ids, block.agent_ids.repeat(block.lengths) >= COPIES)
    last = np.cumsum(block.lengths) - 1
    assert (block.endings == Ending.TERMINATED).all()
    assert not np.delete(block.rewards, last).any()
    np.testing.assert_array_equal(np.sort(block.rewards[last]), np.sort(block.episode_returns))
    assert abs(block.rewards.sum()) <= COPIES, "zero but for games of which one player has not been drained"
    assert block.action_mask is not None
    assert block.action_mask[np.arange(block.num_rows), block.discrete_actions[:, 0]].all()
    free = block.action_mask.sum(axis=1)
    assert free.min() < block.action_mask.shape[1]
