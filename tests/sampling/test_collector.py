"""Pool, policies and assembly together: which policy acts for which agents, and what is counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import VectorWrapper

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.gymnasium_vector import GymnasiumVector
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.specs import (
    ActionSpec,
    BehaviorSpec,
    Choice,
    DecisionSteps,
    Ending,
    Float32,
    Policy,
    Trajectories,
    Weights,
)
from tests.fakes import EchoPolicy, EchoWorld, RandomPolicy, echo
from tests.sampling.worlds import Latecomers, Passersby, TwoKinds


@contextmanager
def started(*environments: Environment) -> Iterator[SerialPool]:
    """A serial pool of these instances, reset."""
    pool = SerialPool("test", lambda first, count: environments, len(environments))
    pool.start()
    pool.reset(1)
    try:
        yield pool
    finally:
        pool.close()


def collect(
    collector: Collector, behaviors: list[str], cycles: int, num_rows: int = 10
) -> dict[str, list[Trajectories]]:
    """Every block that fell due within so many cycles."""
    blocks: dict[str, list[Trajectories]] = {name: [] for name in behaviors}
    for _ in range(cycles):
        assert collector.receive(0.0)
        for name in behaviors:
            while collector.is_due(name, num_rows):
                blocks[name].append(collector.drain(name))
        collector.act()
    return blocks


def echoes(num_instances: int) -> list[EchoWorld]:
    """Instances of different sizes, whose episodes end at different times."""
    return [EchoWorld(i, num_agents=2 + i, length=6 + 2 * i) for i in range(num_instances)]


@pytest.mark.parametrize("has_memory", [False, True])
@pytest.mark.parametrize("num_instances", [1, 3])
def test_every_agent_of_every_instance_gets_its_own_action_and_memory(num_instances: int, has_memory: bool) -> None:
    """The worlds raise when an action is not the one for what they showed."""
    policies: dict[str, Policy] = {"Quick": EchoPolicy(has_memory), "Slow": EchoPolicy(has_memory)}
    with started(*echoes(num_instances)) as pool:
        collector = Collector(pool, policies, {"Quick": 4, "Slow": 3})
        blocks = collect(collector, ["Quick", "Slow"], 60)
    for name in policies:
        num_rows = sum(block.num_rows for block in blocks[name])
        agents = sum(2 + i for i in range(num_instances)) if name == "Quick" else num_instances
        assert collector.num_sampled[name] == agents * (60 if name == "Quick" else 30)
        assert 0.7 * collector.num_sampled[name] < num_rows <= collector.num_sampled[name]
        for block in blocks[name]:
            delay = 1 if name == "Quick" else 2
            check_echo(block, delay, num_instances)
            assert (block.memories is not None) == has_memory
            if block.memories is not None:
                place = block.observations[0]
                goes_on = place[:, 2:] % (6 + 2 * place[:, :1]) > 0
                np.testing.assert_array_equal(block.memories, np.where(goes_on, place - [0, 0, delay], 0))


def check_echo(block: Trajectories, delay: int, num_instances: int) -> None:
    """Rows of a segment are of one agent, `delay` steps apart, each with its own action and reward."""
    place = block.observations[0]
    ends = np.cumsum(block.lengths)
    for segment, (start, end) in enumerate(zip(ends - block.lengths, ends, strict=True)):
        instance, agent, first = place[start]
        assert block.agent_ids[segment] == agent * num_instances + instance
        steps = first + delay * np.arange(end - start + 1)
        seen = np.concatenate([place[start:end], block.next_observations[0][segment : segment + 1]])
        assert seen.tolist() == [[instance, agent, step] for step in steps]
        length = 6 + 2 * instance
        ended = steps[-1] % length == 0
        assert (block.endings[segment] != Ending.CUT) == ended
        if ended:
            assert block.endings[segment] == (Ending.TRUNCATED if steps[-1] // length % 2 == 0 else Ending.TERMINATED)
    expected = echo(place)
    np.testing.assert_array_equal(block.continuous_actions, expected.continuous)
    np.testing.assert_array_equal(block.discrete_actions, expected.discrete)
    np.testing.assert_array_equal(block.log_probs, place)
    np.testing.assert_array_equal(block.rewards, place[:, 2] + 1)


def test_one_policy_call_acts_for_all_waiting_agents_of_a_behavior() -> None:
    quick, slow = EchoPolicy(), EchoPolicy()
    with started(*echoes(3)) as pool:
        collect(Collector(pool, {"Quick": quick, "Slow": slow}, {"Quick": 4, "Slow": 4}), ["Quick", "Slow"], 10)
    assert quick.calls == [2 + 3 + 4] * 10
    assert slow.calls == [3] * 5


def test_behavior_that_grows_and_pauses_loses_no_agent() -> None:
    """The crowd grows by one agent in each step; leaders wait at every other one, with a mask."""
    with started(TwoKinds(), TwoKinds()) as pool:
        policies = {"Crowd": RandomPolicy(ActionSpec(1)), "Leader": RandomPolicy(ActionSpec(2, (3, 2)))}
        collector = Collector(pool, policies, {"Crowd": 5, "Leader": 2})
        blocks = collect(collector, ["Crowd", "Leader"], 40)
    assert collector.num_sampled == {"Crowd": 2 * sum(range(1, 41)), "Leader": 2 * 20}
    crowd = np.concatenate([block.agent_ids for block in blocks["Crowd"]])
    assert set(crowd.tolist()) == set(range(2 * 35))  # who came within the last five steps has no whole segment yet
    for block in blocks["Crowd"]:
        np.testing.assert_array_equal(np.repeat(block.agent_ids, block.lengths) // 2, block.observations[0][:, 0])
    assert all(block.action_mask is not None for block in blocks["Leader"])


def test_behavior_that_appears_gets_its_policy_from_the_callback_and_one_call_acts_for_all_its_teams() -> None:
    met: list[BehaviorSpec] = []
    calls: list[int] = []

    class Counted(RandomPolicy):
        def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
            calls.append(len(decisions.agent_ids))
            return super().act(decisions, memories)

    def add_behavior(spec: BehaviorSpec) -> tuple[Policy, int]:
        met.append(spec)
        return Counted(ActionSpec(1)), 2

    with started(Latecomers(at=3), Latecomers(at=7)) as pool:
        collector = Collector(pool, {"Early": RandomPolicy(ActionSpec(1))}, {"Early": 4}, add_behavior=add_behavior)
        blocks = collect(collector, ["Early"], 12)
        assert collector.is_due("Late", 1)
        assert [spec.name for spec in met] == ["Late"]
        assert calls == [2, 5, 5, 5, 7, 10, 10, 10, 10]
        assert collector.num_sampled == {"Early": 24, "Late": sum(calls)}
        agents = collector.drain("Late").agent_ids
    assert set(agents.tolist()) == {2 * agent + i for agent in (10, 11, 20, 21, 22) for i in range(2)}
    assert blocks["Early"]


def test_behavior_that_appears_without_a_policy_is_refused_by_name() -> None:
    with started(Latecomers()) as pool, pytest.raises(EnvironmentFailure, match="behavior Late has appeared"):
        collect(Collector(pool, {"Early": RandomPolicy(ActionSpec(1))}, {"Early": 4}), ["Early"], 6)


def test_agents_that_leave_without_an_end_take_no_room() -> None:
    """Two worlds of 25 agents, each of which leaves after its third step: 10 000 in all."""
    with started(Passersby(25), Passersby(25)) as pool:
        collector = Collector(pool, {"Crowd": RandomPolicy(ActionSpec(1))}, {"Crowd": 2}, patience=5)
        departed = [agent for block in collect(collector, ["Crowd"], 600)["Crowd"] for agent in block.departed]
    assert len(departed) == len(set(departed)) > 9500
    assert len(collector._assemblies["Crowd"]._slots.written) < 600


def test_masks_of_some_instances_only_are_joined() -> None:
    with started(Line("Walker", 2, masked=True), Line("Walker", 3)) as pool:
        collector = Collector(pool, {"Walker": RandomPolicy(ActionSpec(0, (3,)))}, {"Walker": 5})
        blocks = collect(collector, ["Walker"], 30)["Walker"]
    for block in blocks:
        assert block.action_mask is not None
        is_masked = np.repeat(block.agent_ids % 2 == 0, block.lengths)
        assert block.action_mask[~is_masked].all()
        assert (block.action_mask[is_masked].sum(1) == 2).all()
        assert block.action_mask[np.arange(block.num_rows), block.discrete_actions[:, 0]].all()


def test_a_block_is_due_when_it_is_long_enough_or_nothing_more_fits() -> None:
    with started(EchoWorld(0, num_agents=2, length=100)) as pool:
        collector = Collector(pool, {"Quick": EchoPolicy(), "Slow": EchoPolicy()}, {"Quick": 20, "Slow": 4})
        for _ in range(20):
            collector.receive(0.0)
            assert not collector.is_due("Quick", 1)
            collector.act()
        collector.receive(0.0)
        assert collector.is_due("Quick", 40)
        assert collector.is_due("Quick", 1_000_000), "columns hold no more than two long segments"
        assert collector.drain("Quick").num_rows == 40
        assert not collector.is_due("Quick", 1_000_000)


def test_new_weights_act_from_the_next_action_on_and_blocks_show_the_oldest() -> None:
    policy = EchoPolicy()
    with started(EchoWorld(0, num_agents=1, length=100)) as pool:
        collector = Collector(pool, {"Quick": policy, "Slow": EchoPolicy()}, {"Quick": 2, "Slow": 100})
        versions = []
        for cycle in range(9):
            collector.receive(0.0)
            while collector.is_due("Quick", 1):
                versions.append(collector.drain("Quick").policy_version)
            if cycle in (2, 5):
                collector.load("Quick", Weights(cycle, {}))
            collector.act()
    assert policy.version == 5
    assert versions == [0, 2, 2, 5]


def test_time_of_environments_and_of_inference_is_separate() -> None:
    with started(EchoWorld(0, num_agents=1, length=100)) as pool:
        collector = Collector(pool, {"Quick": EchoPolicy(), "Slow": EchoPolicy()}, {"Quick": 2, "Slow": 2})
        collect(collector, ["Quick", "Slow"], 5)
        assert collector.environment_seconds > 0
        assert collector.inference_seconds > 0


class Counting(VectorWrapper[Any, Any, Any]):
    """Counts the steps of every copy, resets included."""

    num_steps = 0

    def step(self, actions: Any) -> Any:
        self.num_steps += 1
        return super().step(actions)


def check_cart_pole(block: Trajectories) -> None:
    """Every transition, the last of an episode too, obeys the cart's own equation of motion: no reset is among them."""
    state = block.observations[0]
    following = np.empty_like(state)
    following[:-1] = state[1:]
    following[np.cumsum(block.lengths) - 1] = block.next_observations[0]
    np.testing.assert_allclose(following[:, [0, 2]], state[:, [0, 2]] + 0.02 * state[:, [1, 3]], atol=1e-5)
    assert (block.rewards == 1).all()
    np.testing.assert_array_equal(block.episode_returns, block.episode_lengths)
    final = block.next_observations[0]
    has_fallen = (np.abs(final[:, 0]) > 2.4) | (np.abs(final[:, 2]) > 0.2095)
    np.testing.assert_array_equal(has_fallen, block.endings == Ending.TERMINATED)


@pytest.mark.parametrize("num_instances", [1, 2])
def test_reset_steps_of_the_vectorized_cart_pole_are_neither_trained_on_nor_counted(num_instances: int) -> None:
    vectors = [Counting(gymnasium.make_vec("CartPole-v1", 4, "vector_entry_point")) for _ in range(num_instances)]
    with started(*(GymnasiumVector("CartPole", vector) for vector in vectors)) as pool:
        collector = Collector(pool, {"CartPole": RandomPolicy(ActionSpec(0, (2,)))}, {"CartPole": 16})
        blocks = collect(collector, ["CartPole"], 400, num_rows=64)["CartPole"]
        collector.receive(0.0)
        num_copies = 4 * num_instances
        num_ended = len(collector.drain_new_episodes("CartPole")[0])
    for block in blocks:
        check_cart_pole(block)
    num_resets = 4 * sum(vector.num_steps for vector in vectors) - collector.num_sampled["CartPole"]
    assert num_ended > 5 * num_copies
    assert num_ended - num_copies <= num_resets <= num_ended, "each ended episode is followed by one reset step"
    num_rows = sum(block.num_rows for block in blocks)
    assert collector.num_sampled["CartPole"] - num_rows < 64 + 16 * num_copies


def test_a_pool_without_news_gives_nothing() -> None:
    with started(EchoWorld(0, num_agents=1, length=100)) as pool:
        collector = Collector(pool, {"Quick": EchoPolicy(), "Slow": EchoPolicy()}, {"Quick": 2, "Slow": 2})
        assert collector.receive(0.0)
        assert not collector.receive(0.0)
        collector.act()
        assert collector.receive(0.0)


def test_a_reset_truncates_open_episodes_and_begins_new_ones() -> None:
    pool = SerialPool("test", lambda first, count: [Line("B", 2, "discrete")], 2)
    pool.start()
    pool.reset(1)
    stay = StayPolicy()
    collector = Collector(pool, {"B": stay}, {"B": 64})
    for _ in range(4):
        assert collector.receive(1.0)
        collector.act()
    collector.receive(1.0)
    collector.reset(7)
    assert collector.receive(1.0)
    block = collector.drain("B")
    assert block.endings.tolist() == [Ending.TRUNCATED] * 2
    assert block.lengths.tolist() == [3, 3]  # what followed the last actions is dropped
    assert len(block.episode_returns) == 0
    collector.act()
    pool.close()


class StayPolicy(RandomPolicy):
    """Never moves, so that no episode of Line ends early."""

    def __init__(self) -> None:
        super().__init__(ActionSpec(0, (3,)))

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """The choice in the middle."""
        choice = super().act(decisions, memories)
        choice.actions.discrete[:] = 1
        return choice
