"""Agents of PettingZoo's environments: behaviors, rewards, masks, ends, and agents that are not trained."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from mpe2 import simple_spread_v3

from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.errors import ConfigError, EnvironmentFailure
from rl_tui.engine.sampling.environments.pettingzoo.kind import is_of_pettingzoo, loop_of
from rl_tui.engine.sampling.environments.pettingzoo.loop import PettingZooLoop
from rl_tui.engine.sampling.environments.pettingzoo.roles import Roles
from rl_tui.engine.sampling.parameters import Parameters
from rl_tui.engine.specs import Actions, Steps
from tests.sampling.driving import discrete
from tests.sampling.environments.pettingzoo.worlds import Nim, Relay
from tests.sampling.worlds import Counting

Answer = Mapping[str, Steps]


def loop(*copies: Any, **adaptation: Any) -> PettingZooLoop:
    return loop_of("test", "B", copies, Adaptation(**adaptation))


def step(environment: PettingZooLoop, answer: Answer, choice: int = 0) -> Answer:
    """What followed when every agent that waits takes the same choice, copied."""
    counts = {name: len(answer[name].decisions.agent_ids) if name in answer else 0 for name in environment.specs}
    actions = {name: discrete(*[choice] * count) if count else NO_ACTIONS for name, count in counts.items()}
    return copy.deepcopy(environment.step(actions))


NO_ACTIONS = Actions(np.zeros((0, 0), np.float32), np.zeros((0, 1), np.int64))


def test_agents_of_equal_spaces_share_the_behavior_of_the_file() -> None:
    environment = loop(Relay(), Relay())
    assert {name: spec.observations[0].shape for name, spec in environment.specs.items()} == {"B": (1,)}
    assert environment.num_agents == {"B": 4}


def test_agents_of_different_spaces_have_behaviors_named_by_their_beginning() -> None:
    environment = loop(Relay((1, 2, 3), late="joker_7", wide=True))
    assert list(environment.specs) == ["runner", "runner_1"]  # joker_7 sees what runner_1 and runner_2 see
    assert environment.num_agents == {"runner": 1, "runner_1": 3}


def test_patterns_give_each_agent_its_behavior_team_and_group() -> None:
    patterns = {"Odd?team=1": ["runner_[13]"], "Odd?team=0": ["runner_2"], "Rest": ["*"]}
    environment = loop(Relay((2, 2, 2, 2)), Relay((2, 2, 2, 2)), behaviors=patterns, groups={"Odd?team=1": False})
    answer = environment.reset(0)
    assert {name: steps.decisions.agent_ids.tolist() for name, steps in answer.items()} == {
        "Rest": [0, 4],
        "Odd?team=1": [1, 3, 5, 7],
        "Odd?team=0": [2, 6],
    }
    groups = answer["Odd?team=1"].decisions.group_ids
    assert groups is not None
    assert groups.tolist() == [0, 0, 1, 1]
    assert answer["Rest"].decisions.group_ids is None


def test_a_common_reward_is_the_mean_of_what_agents_earn() -> None:
    """Those that go on and those that end in the same step, each copy apart."""
    environment = loop(Relay((1, 2, 2)), Relay((2, 2, 2)), behaviors={"All": ["*"]}, groups={"All": True})
    environment.reset(0)
    choices = np.array([[0], [1], [2], [2], [2], [2]])
    steps = environment.step({"All": Actions(np.zeros((6, 0), np.float32), choices)})["All"]
    decisions, ended = steps.decisions, steps.terminals
    assert ended is not None
    assert (decisions.agent_ids.tolist(), ended.agent_ids.tolist()) == ([1, 2, 3, 4, 5], [0])
    assert not decisions.rewards.any()
    assert not ended.rewards.any()
    assert decisions.group_rewards is not None
    assert ended.group_rewards is not None
    assert decisions.group_rewards.tolist() == [
        11,
        11,
        12,
        12,
        12,
    ]  # a runner earns 10 times its number, and its choice
    assert ended.group_rewards.tolist() == [11]


def test_agent_that_matches_no_pattern_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"must match agent 'runner_1' of test, got runner_0.*random_agents"):
        loop(Relay(), behaviors={"A": ["runner_0"]})


def test_agents_of_one_behavior_must_have_equal_spaces() -> None:
    with pytest.raises(EnvironmentFailure, match=r"A: agent 'runner_1' must observe .*like the others of its behavior"):
        loop(Relay(wide=True), behaviors={"A": ["*"]})


def test_episode_of_an_agent_ends_while_others_go_on() -> None:
    environment = loop(Relay((2, 3)))
    first = environment.reset(0)
    assert first["B"].decisions.rewards.tolist() == [0, 0]
    second = step(environment, first, 1)
    assert second["B"].terminals is None
    assert second["B"].decisions.rewards.tolist() == [1, 11]
    third = step(environment, second, 2)["B"]
    assert third.terminals is not None
    assert (third.terminals.agent_ids.tolist(), third.terminals.truncated.tolist()) == ([0], [False])
    assert third.terminals.rewards.tolist() == [2]
    assert third.terminals.observations[0].tolist() == [[2]]
    assert (third.decisions.agent_ids.tolist(), third.decisions.rewards.tolist()) == ([1], [22])
    fourth = step(environment, {"B": third})["B"]
    assert fourth.terminals is not None
    assert (fourth.terminals.agent_ids.tolist(), fourth.terminals.truncated.tolist()) == ([1], [True])
    assert fourth.decisions.agent_ids.tolist() == [0, 1]  # the next episode has begun
    assert fourth.decisions.rewards.tolist() == [0, 0]
    assert fourth.decisions.observations[0].tolist() == [[0], [0]]


def test_what_a_newcomer_earns_before_its_first_action_counts_with_that() -> None:
    environment = loop(Relay((3, 3), late="runner_9"))
    second = step(environment, environment.reset(0))
    assert second["B"].decisions.agent_ids.tolist() == [0, 1, 2]
    assert second["B"].decisions.rewards.tolist() == [0, 10, 0]
    third = step(environment, second)
    assert third["B"].decisions.rewards.tolist() == [0, 20, 140]


def test_agent_that_is_gone_without_a_word_is_truncated() -> None:
    environment = loop(Relay((1, 3), vanishing="runner_0"))
    second = step(environment, environment.reset(0))["B"]
    assert second.terminals is not None
    assert (second.terminals.agent_ids.tolist(), second.terminals.truncated.tolist()) == ([0], [True])
    assert second.terminals.observations[0].tolist() == [[0]]  # what it observed last


@pytest.mark.parametrize("mask", ["observed", "in infos"])
def test_players_in_turns_get_the_rewards_since_their_last_move(mask: str) -> None:
    environment = loop(Nim(3, mask))
    first = copy.deepcopy(environment.reset(0))["B"].decisions
    assert environment.specs["B"].observations[0].shape == (1,)  # without the mask
    assert (first.agent_ids.tolist(), first.observations[0].tolist()) == ([0], [[3]])
    second = step(environment, {"B": Steps(first)})
    assert second["B"].decisions.agent_ids.tolist() == [1]
    assert second["B"].decisions.rewards.tolist() == [0]  # -0.25, before it has moved
    assert second["B"].decisions.action_mask is not None
    assert second["B"].decisions.action_mask.tolist() == [[True, True, False]]
    third = step(environment, second)
    assert (third["B"].decisions.agent_ids.tolist(), third["B"].decisions.rewards.tolist()) == ([0], [-0.25])
    fourth = step(environment, third)["B"]
    assert fourth.terminals is not None
    assert fourth.terminals.agent_ids.tolist() == [1, 0]  # the loser has its last turn first
    assert fourth.terminals.rewards.tolist() == [-1.25, 1]
    assert (fourth.decisions.agent_ids.tolist(), fourth.decisions.observations[0].tolist()) == ([0], [[3]])


@pytest.mark.parametrize("mask", ["observed", "in infos"])
def test_agents_that_are_not_trained_take_allowed_actions_at_random(mask: str) -> None:
    nim = Nim(9, mask)
    environment = loop(nim, random_agents=["player_0"])
    answer: Answer = environment.reset(0)
    for _ in range(200):
        assert answer["B"].decisions.agent_ids.tolist() == [0]  # player_1, also where player_0 has ended the game
        answer = step(environment, answer)
    taken = [number for player, number in nim.taken if player == "player_0"]
    assert set(taken) == {1, 2, 3}
    assert {number for player, number in nim.taken if player == "player_1"} == {1}


def test_agents_at_once_that_are_not_trained_act_too_and_end_alone() -> None:
    environment = loop(Relay((1, 4)), random_agents=["runner_1"])
    answer = environment.reset(0)
    for _ in range(5):
        answer = step(environment, answer)
        assert answer["B"].terminals is not None
        assert answer["B"].decisions.agent_ids.tolist() == answer["B"].terminals.agent_ids.tolist() == [0]


def test_seed_gives_the_same_random_actions_and_each_copy_its_own() -> None:
    games = []
    for seed in (3, 3, 4):
        copies = Relay(), Relay()
        nim = Nim(9)
        environment = loop(nim, random_agents=["player_1"])
        answer: Answer = environment.reset(seed)
        for _ in range(20):
            answer = step(environment, answer)
        loop(*copies).reset(seed)
        games.append((nim.taken, [relay.seeds for relay in copies]))
    assert games[0] == games[1] != games[2]
    assert games[0][1][0] != games[0][1][1]


def test_parameters_are_options_of_every_reset_or_attributes() -> None:
    relay = Relay((1, 1))
    environment = loop(relay, parameters={"bonus": "bonus"})
    environment.set_parameters(Parameters({"bonus": 2.0, "wind": 3.0}))
    answer = step(environment, environment.reset(0))
    step(environment, answer)
    assert relay.bonus == 2.0
    assert relay.options == [{"wind": 3.0}] * 3


def test_parameter_sets_an_attribute_behind_every_wrapper() -> None:
    env = simple_spread_v3.parallel_env()
    environment = loop(env, parameters={"share": "local_ratio"})
    environment.set_parameters(Parameters({"share": 0.25}))
    environment.reset(0)
    assert env.unwrapped.local_ratio == 0.25


def test_agents_whose_spaces_never_stay_the_same_are_refused() -> None:
    roles = Roles({}, (), "B")
    observed = [spaces.Box(0, 1, (size,)) for size in range(1, 102)]
    for space in observed[:100]:
        roles.of("agent_0", (space, spaces.Discrete(2)))
    with pytest.raises(EnvironmentFailure, match=r"must keep their spaces from episode to episode, got .* 101 "):
        roles.of("agent_0", (observed[100], spaces.Discrete(2)))


def test_infos_of_agents_are_measured_except_those_of_a_reset() -> None:
    environment = loop(Relay((2, 2)))
    environment.measure(["time"])
    answer = environment.reset(0)
    assert answer["B"].measured is None
    measured = [(answer := step(environment, answer))["B"].measured for _ in range(2)]
    assert measured == [{"time": (2, 2)}, {"time": (4, 2)}]


@pytest.mark.parametrize(("mode", "kind"), [("rgb_array", np.ndarray), ("ansi", str), (None, type(None))])
def test_first_copy_is_drawn(mode: str | None, kind: type) -> None:
    environment = loop(Relay(render_mode=mode), Relay())
    environment.reset(0)
    assert isinstance(environment.render(), kind)
    assert environment.render_hz == 7


def test_both_interfaces_are_recognized() -> None:
    assert is_of_pettingzoo(Relay())
    assert is_of_pettingzoo(Nim())
    assert not is_of_pettingzoo(Counting())
