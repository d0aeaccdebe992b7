"""Environments of PettingZoo, of MPE2 and of PettingZoo's own tests: every reward is in the row of its action."""

from __future__ import annotations

from collections import defaultdict
from importlib import import_module
from typing import Any

import numpy as np
import pettingzoo
import pytest

from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.environments.pettingzoo.kind import loop_of
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.specs import BehaviorSpec, Policy, Trajectories
from tests.fakes import RandomPolicy
from tests.sampling.environments.pettingzoo.bookkeeping import Book, recorded

EXAMPLES = "pettingzoo.test.example_envs.generated_agents"
ONE_EPISODE = {"max_cycles": 100_000}  # the next one has agents with other spaces
HORIZON = 7

# The module or the id, what it offers, arguments, and copies.
OF_ITS_TESTS: list[tuple[str, str, dict[str, Any], int]] = [
    (f"{EXAMPLES}_env_v0", "raw_env", ONE_EPISODE, 1),
    (f"{EXAMPLES}_env_cust_agentid_v0", "raw_env", ONE_EPISODE, 1),
    (f"{EXAMPLES}_env_action_mask_info_v0", "raw_env", ONE_EPISODE, 1),
    (f"{EXAMPLES}_env_action_mask_obs_v0", "raw_env", ONE_EPISODE, 1),
    (f"{EXAMPLES}_parallel_v0", "parallel_env", ONE_EPISODE, 1),
    (f"{EXAMPLES}_parallel_v0", "env", ONE_EPISODE, 1),
    (f"{EXAMPLES}_parallel_cust_agentid_v0", "parallel_env", ONE_EPISODE, 1),
]
FAST: list[tuple[str, str, dict[str, Any], int]] = [
    ("mpe2.simple_spread_v3", "parallel_env", {}, 2),
    ("mpe2.simple_world_comm_v3", "env", {}, 1),
    ("classic/connect_four_v3", "aec", {}, 2),
    ("classic/tictactoe_v3", "aec", {}, 3),
    ("classic/rps_v2", "parallel", {}, 2),
    ("classic/rps_v2", "aec", {}, 2),
]
SLOW: list[tuple[str, str, dict[str, Any], int]] = [
    ("mpe2.simple_adversary_v3", "parallel_env", {}, 2),
    ("mpe2.simple_crypto_v3", "env", {}, 2),
    ("mpe2.simple_push_v3", "parallel_env", {"continuous_actions": True}, 2),
    ("mpe2.simple_reference_v3", "parallel_env", {}, 2),
    ("mpe2.simple_speaker_listener_v4", "env", {"continuous_actions": True}, 2),
    ("mpe2.simple_tag_v3", "parallel_env", {}, 2),
    ("classic/go_v5", "aec", {"board_size": 5}, 1),
    ("butterfly/knights_archers_zombies_v11", "parallel", {"max_cycles": 300}, 1),
    ("butterfly/knights_archers_zombies_v11", "aec", {"max_cycles": 300}, 1),
    ("butterfly/cooperative_pong_v6", "parallel", {"max_cycles": 100}, 1),
    ("sisl/pursuit_v5", "parallel", {"max_cycles": 100}, 1),
    ("sisl/multiwalker_v9", "parallel", {}, 1),
]

pytestmark = pytest.mark.filterwarnings("ignore")  # of these environments


@pytest.mark.parametrize(("name", "form", "kwargs", "copies"), [*OF_ITS_TESTS, *FAST])
def test_every_reward_is_in_the_row_of_its_action(name: str, form: str, kwargs: dict[str, Any], copies: int) -> None:
    play(name, form, kwargs, copies, num_steps=400)


@pytest.mark.faults
@pytest.mark.parametrize(("name", "form", "kwargs", "copies"), [*OF_ITS_TESTS, *FAST, *SLOW])
def test_every_reward_of_5000_steps_is_in_the_row_of_its_action(
    name: str, form: str, kwargs: dict[str, Any], copies: int
) -> None:
    play(name, form, kwargs, copies, num_steps=5000)


def play(name: str, form: str, kwargs: dict[str, Any], num_copies: int, num_steps: int) -> None:
    """Collect that many steps, and compare them with what the environment itself has paid out."""
    book = Book()
    copies = [recorded(make(name, form, kwargs), copy, book) for copy in range(num_copies)]
    rows = collect([loop_of(name, "B", copies, Adaptation())], num_steps)
    paid = list(book.rows.values())  # agents are numbered in the order in which they first act
    assert sum(map(len, rows.values())) >= num_steps
    assert set(rows) <= set(range(len(paid)))
    for agent, found in rows.items():
        expected = np.array(paid[agent][: len(found)])
        np.testing.assert_allclose(np.array(found), expected, rtol=1e-5, atol=1e-5)
    missing = sum(map(len, paid)) - sum(map(len, rows.values()))
    assert missing <= HORIZON * len(paid)  # of segments that go on
    assert any(reward for earned in paid for reward, _ in earned)


def make(name: str, form: str, kwargs: dict[str, Any]) -> Any:
    if "/" in name:
        return pettingzoo.make(form, name, **kwargs)
    return getattr(import_module(name), form)(**kwargs)


def collect(environments: list[Any], num_steps: int) -> dict[int, list[tuple[float, int]]]:
    """Rows of every agent in the order of time: the reward, and how the episode ended there."""
    pool, rows = (
        SerialPool("test", lambda first, count: environments, 1),
        defaultdict[int, list[tuple[float, int]]](list),
    )

    def add_behavior(spec: BehaviorSpec) -> tuple[Policy, int]:
        return RandomPolicy(spec.actions), HORIZON

    pool.start()
    try:
        policies = {name: RandomPolicy(spec.actions) for name, spec in pool.specs.items()}
        collector = Collector(pool, policies, dict.fromkeys(pool.specs, HORIZON), add_behavior=add_behavior)
        pool.reset(1)
        while sum(map(len, rows.values())) < num_steps:
            collector.receive(0.0)
            for name in pool.specs:
                if collector.is_due(name, 1):
                    add(rows, collector.drain(name))
            collector.act()
    finally:
        pool.close()
    return rows


def add(rows: dict[int, list[tuple[float, int]]], block: Trajectories) -> None:
    begins = np.cumsum(block.lengths) - block.lengths
    for agent, begin, length, ending in zip(block.agent_ids, begins, block.lengths, block.endings, strict=True):
        rewards = block.rewards[begin : begin + length].tolist()
        rows[int(agent)] += [*((reward, 0) for reward in rewards[:-1]), (rewards[-1], int(ending))]
