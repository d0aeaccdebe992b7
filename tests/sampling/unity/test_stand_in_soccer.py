"""The two-sided scenes of the stand-in player: both sides end together, and what one wins the other loses."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import AgentInfoListProto
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.sampling.random_policy import RandomPolicy
from rl_tui.engine.specs import Actions, Ending, Steps
from tests.sampling.driving import discrete
from tests.sampling.unity.playing import playing
from tests.unity_player import soccer
from tests.unity_player.arguments import parse
from tests.unity_player.messages import Acts, Speech
from tests.unity_player.pitches import MOST_STEPS, SIDES
from tests.unity_player.soccer import PitchEnvironment, PitchWorld
from tests.unity_player.worlds import make_world

TEAMS = ("Striker?team=0", "Striker?team=1")


def wanted(choices: int, steps: Steps) -> Actions:
    """The better choice of every agent that waits."""
    return discrete(*(steps.decisions.observations[0][:, 0] * choices).astype(int).tolist())


def wrong(choices: int, steps: Steps) -> Actions:
    """Another one."""
    better = wanted(choices, steps)
    return Actions(better.continuous, (better.discrete + 1) % choices)


@pytest.mark.parametrize("better", [0, 1])
@pytest.mark.parametrize("task", SIDES)
def test_both_sides_end_in_the_same_step_and_the_better_one_wins(task: str, better: int) -> None:
    game, sides, num_games = soccer.make(task, 6), SIDES[task], 0
    steps = game.reset(1)
    while num_games < 60:
        choose = {side.name: wanted if number == better else wrong for number, side in enumerate(sides)}
        steps = game.step({side.name: choose[side.name](side.num_choices, steps[side.name]) for side in sides})
        first, second = (steps[side.name].terminals for side in sides)
        assert (first is None) == (second is None)
        if first is None or second is None:
            continue
        pitches = first.agent_ids[::2] // 2
        np.testing.assert_array_equal(pitches, (second.agent_ids[:: sides[1].size] - 12) // sides[1].size)
        assert (first.total_rewards == (-1 if better else 1)).all()
        assert (second.total_rewards == (1 if better else -1)).all()
        assert not first.truncated.any()
        assert first.group_rewards is not None
        assert not first.rewards.any()
        assert (second.group_rewards is None) == (task == "goalie")
        num_games += len(pitches)


def test_sides_that_are_equally_good_win_equally_often_or_not_at_all() -> None:
    game = soccer.make("soccer", 100)
    steps, results = game.reset(1), Counter[float]()
    while sum(results.values()) < 600:
        steps = game.step({name: wanted(3, steps[name]) for name in TEAMS})
        first, second = (steps[name].decisions.observations[0] for name in TEAMS)
        np.testing.assert_array_equal(first[::2, 1], -second[::2, 1], "the ball, from both sides")
        np.testing.assert_array_equal(first[:, 2], second[:, 2], "the time")
        over = steps[TEAMS[0]].terminals
        if over is not None:
            results.update(over.total_rewards[::2].tolist())
            assert over.truncated.tolist() == (over.total_rewards == 0).tolist()
    assert results[0] > 50, "interrupted"
    assert results[1] == pytest.approx(results[-1], abs=80)


@pytest.mark.parametrize("task", SIDES)
@pytest.mark.parametrize("keeps_ids", [True, False])
def test_player_says_what_the_environment_returns(task: str, keeps_ids: bool) -> None:
    """Numbers of agents aside, where those change."""
    sides = SIDES[task]
    world, game = PitchWorld(sides, 3, 5, keeps_ids=keeps_ids), PitchEnvironment(task, 3)
    said, steps, random, ids = world.reset(), game.reset(5), np.random.default_rng(1), defaultdict[str, set[int]](set)
    for _ in range(200):
        acts = {side.name: random.integers(0, side.num_choices, (3 * side.size, 1)) for side in sides}
        for side in sides:
            infos = list(AgentInfoListProto.FromString(said.lists[side.name]).value)
            own = steps[side.name]
            over = [info for info in infos if info.done]
            assert [info.done for info in infos] == [True] * len(over) + [False] * 3 * side.size
            assert said.waiting[side.name] == 3 * side.size
            assert [tuple(info.observations[0].float_data.data) for info in infos[len(over) :]] == [
                tuple(row) for row in own.decisions.observations[0].tolist()
            ]
            groups = own.decisions.group_ids
            assert [info.group_id for info in infos[len(over) :]] == (
                [0] * 3 if groups is None else (groups + 1).tolist()
            )
            assert len(over) == (0 if own.terminals is None else len(own.terminals.agent_ids))
            if own.terminals is not None:
                assert [info.reward + info.group_reward for info in over] == own.terminals.total_rewards.tolist()
                assert [info.max_step_reached for info in over] == own.terminals.truncated.tolist()
                ids[side.name] |= {info.id for info in over}
        said = world.step(
            {name: Acts(np.zeros((0, 0), np.float32), chosen.astype("i4")) for name, chosen in acts.items()}
        )
        steps = game.step(
            {name: Actions(np.zeros((len(chosen), 0), np.float32), chosen) for name, chosen in acts.items()}
        )
    for side in sides:
        assert (len(ids[side.name]) <= 3 * side.size) == keeps_ids


@pytest.mark.parametrize(("task", "behaviors"), [("soccer", {"Striker"}), ("goalie", {"Striker", "Goalie"})])
def test_pool_has_both_sides_of_a_player(tmp_path: Path, task: str, behaviors: set[str]) -> None:
    with playing(tmp_path, "--task", task) as environment:
        made: list[Environment] = [environment]
        pool = SerialPool("player", lambda first, count: made, 1)
        pool.start()
        policies = {name: RandomPolicy(spec, 1) for name, spec in pool.specs.items()}
        collector = Collector(pool, policies, dict.fromkeys(policies, 1000))
        pool.reset(1)
        while not all(collector.is_due(name, 800 if name == "Striker" else 400) for name in policies):
            collector.receive(0.0)
            collector.act()
        blocks = {name: collector.drain(name) for name in policies}
    assert set(pool.specs) == behaviors
    assert {name: spec.teams for name, spec in pool.specs.items()} == (
        {"Striker": (0, 1)} if task == "soccer" else {"Striker": (0,), "Goalie": (1,)}
    )
    strikers = blocks["Striker"]
    assert strikers.group_ids is not None
    assert len(set(strikers.group_ids.tolist())) == (8 if task == "soccer" else 4)
    for name, block in blocks.items():
        ended = block.endings != Ending.CUT
        last = (np.cumsum(block.lengths) - 1)[ended]
        assert set(block.total_rewards[last].tolist()) <= {-1.0, 0.0, 1.0}
        assert not np.delete(block.total_rewards, last).any()
        assert name != "Goalie" or block.group_rewards is None or not block.group_rewards.any()
        truncated = block.endings[ended] == Ending.TRUNCATED
        np.testing.assert_array_equal(truncated, block.total_rewards[last] == 0)
    assert strikers.lengths.max() <= MOST_STEPS


def test_number_of_pitches_and_names_are_those_of_the_arguments() -> None:
    world = make_world(parse(["--task", "soccer", "--agents", "6", "--behavior", "Kicker"]), 1, 2, Speech())
    assert world.reset().waiting == {"Kicker?team=0": 12, "Kicker?team=1": 12}
