"""Every pool meets the contract of pools with every environment."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.specs import Actions, Json, Steps
from tests.deadline import DEADLINE_SECONDS
from tests.sampling.driving import history, receive_all, send_all

WORLDS = "tests.sampling.worlds"
SOURCES: Mapping[str, tuple[str, dict[str, Json]]] = {
    "vectorized": ("gymnasium:CartPole-v1", {"max_episode_steps": 15}),
    "loop": ("gymnasium:Acrobot-v1", {"max_episode_steps": 7}),
    "numbers": ("gymnasium:Pendulum-v1", {"max_episode_steps": 5}),
    "terminating": (f"{WORLDS}:Counting", {"length": 2}),
    "same step": (f"{WORLDS}:vectorized", {"mode": "SAME_STEP"}),
    "toy": ("toy:line", {"actions": "hybrid", "masked": True}),
    "bandit": ("toy:one-step", {"actions": "continuous"}),
    "cameras": (f"{WORLDS}:Camera", {}),
    "sets": ("toy:entities", {}),
    "two behaviors": (f"{WORLDS}:TwoKinds", {}),
}
NUM_COPIES = 5
WORKERS = 2


def source(name: str) -> EnvironmentSource:
    env, kwargs = SOURCES[name]
    return EnvironmentSource(env, "B", kwargs)


def serial(name: str) -> SerialPool:
    """Everything in this process, shared out over instances just as the workers of `process` would."""

    def make(first: int, count: int) -> list[Environment]:
        shares = [count - count // 2, count // 2]
        return [environment for share in shares for environment in source(name).make(first, share)]

    return SerialPool(name, make, NUM_COPIES)


def process(name: str) -> ProcessPool:
    return ProcessPool(source(name), NUM_COPIES, WORKERS, timeout_wait=DEADLINE_SECONDS)


POOLS = {"serial": serial, "process": process}


@pytest.fixture(params=SOURCES, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=POOLS, scope="module")
def pool(request: pytest.FixtureRequest, name: str) -> Iterator[EnvironmentPool]:
    made = POOLS[request.param](name)
    made.start()
    yield made
    made.close()


def test_pool_meets_its_contract(pool: EnvironmentPool, name: str) -> None:
    """Specs, unique ids over all instances, shapes and types, and rewards only for those who acted."""
    acted: set[tuple[str, int]] = set()
    for answers in history(pool, 40):
        for behavior, spec in pool.specs.items():
            steps = [answer[behavior] for answer in answers.values() if behavior in answer]
            check_steps(steps, spec.actions.mask_size)
            for columns in steps:
                for part in filter(None, (columns.decisions, columns.terminals)):
                    seen = [(column.shape[1:], column.dtype) for column in part.observations]
                    assert seen == [(o.shape, np.dtype(o.dtype)) for o in spec.observations]
                fresh = [(behavior, int(i)) not in acted for i in columns.decisions.agent_ids]
                ended = [] if columns.terminals is None else columns.terminals.agent_ids.tolist()
                assert all((behavior, agent) in acted for agent in ended)
                begun = np.isin(columns.decisions.agent_ids, ended) | fresh
                if name != "two behaviors":  # there a newcomer has a reward, which another test covers
                    assert not columns.decisions.rewards[begun].any()
        acted = {(b, int(i)) for answer in answers.values() for b, s in answer.items() for i in s.decisions.agent_ids}


def check_steps(steps: list[Steps], mask_size: int) -> None:
    """Ids of all instances differ; every column has a row for each."""
    ids = np.concatenate([s.decisions.agent_ids for s in steps]) if steps else np.zeros(0, np.int64)
    assert len(set(ids.tolist())) == len(ids)
    for columns in steps:
        count = len(columns.decisions.agent_ids)
        assert count
        assert columns.decisions.rewards.shape == (count,)
        assert all(len(column) == count for column in columns.decisions.observations)
        if columns.decisions.action_mask is not None:
            assert columns.decisions.action_mask.shape == (count, mask_size)
        if columns.terminals is not None:
            ended = len(columns.terminals.agent_ids)
            assert ended
            assert columns.terminals.truncated.shape == columns.terminals.rewards.shape == (ended,)
            assert all(len(column) == ended for column in columns.terminals.observations)


def test_number_of_agents_is_the_sum_over_instances(pool: EnvironmentPool, name: str) -> None:
    expected = {"two behaviors": {"Crowd": 5, "Leader": 5}, "same step": {"B": 10}}
    assert pool.num_agents == expected.get(name, {"B": 5})
    answers = history(pool, 0)[0]
    for behavior, count in pool.num_agents.items():
        assert sum(len(answer[behavior].decisions.agent_ids) for answer in answers.values()) == count


def test_instances_that_were_not_asked_say_nothing(pool: EnvironmentPool) -> None:
    pool.reset(1)
    answers = receive_all(pool)
    assert pool.receive(0.0) == []
    send_all(pool, {0: answers[0]}, np.random.default_rng(0))
    assert [instance for instance, _ in pool.receive(DEADLINE_SECONDS)] == [0]
    assert pool.receive(0.05) == []


def test_reset_forgets_what_was_under_way(pool: EnvironmentPool, name: str) -> None:
    first = history(pool, 0, seed=7)[0]
    send_all(pool, first, np.random.default_rng(0))
    again = history(pool, 0, seed=7)[0]
    assert all(steps.terminals is None for answer in again.values() for steps in answer.values())
    if name not in ("terminating", "same step"):  # these show how often they were reset
        assert plain(again) == plain(first)
    assert pool.receive(0.0) == []


def test_worker_processes_change_nothing(name: str) -> None:
    """The same seed gives the same numbers, bit for bit, in this process and in others."""
    received = []
    for make in POOLS.values():
        pool = make(name)
        pool.start()
        received.append([plain(answers) for answers in history(pool, 30)])
        pool.close()
    assert received[0] == received[1]


@pytest.mark.parametrize("name", SOURCES)
def test_another_pool_in_the_same_process_changes_nothing(name: str) -> None:
    """As evaluation has one next to the pool that trains."""
    alone, first, other = serial(name), serial(name), serial(name)
    for pool in (alone, first, other):
        pool.start()
    expected = [plain(answers) for answers in history(alone, 12)]
    random, random_of_other = np.random.default_rng(0), np.random.default_rng(5)
    other.reset(9)
    first.reset(1)
    received = []
    for _ in range(13):
        answers, answers_of_other = receive_all(first), receive_all(other)
        received.append(plain(answers))
        send_all(first, answers, random)
        send_all(other, answers_of_other, random_of_other)
    assert received == expected
    for pool in (alone, first, other):
        pool.close()


def plain(answers: Mapping[int, Mapping[str, Steps]]) -> object:
    """Everything in lists, to be compared."""

    def columns(value: object) -> object:
        if isinstance(value, np.ndarray):
            return value.tolist()
        return [columns(part) for part in value] if isinstance(value, tuple) else value

    def fields(steps: object) -> object:
        if steps is None:
            return None
        return {f.name: columns(getattr(steps, f.name)) for f in dataclasses.fields(steps)}  # type: ignore[arg-type]  # decisions or terminals

    return {
        instance: {name: (fields(steps.decisions), fields(steps.terminals)) for name, steps in answer.items()}
        for instance, answer in sorted(answers.items())
    }


@pytest.mark.parametrize("where", POOLS)
def test_every_agent_gets_its_own_action_and_its_own_final_observation(where: str) -> None:
    """Pendulum's reward is a function of what was seen and done: it can be computed again for every agent."""
    pool = POOLS[where]("numbers")
    pool.start()
    random = np.random.default_rng(3)
    pool.reset(0)
    answers = receive_all(pool)
    num_ended = 0
    for _ in range(20):
        expected: dict[int, float] = {}
        for instance, answer in answers.items():
            seen = answer["B"].decisions
            torque = random.uniform(-1, 1, (len(seen.agent_ids), 1)).astype(np.float32)
            cos, sin, speed = seen.observations[0].T
            angle = np.arctan2(sin, cos)
            cost = angle**2 + 0.1 * speed**2 + 0.001 * (2 * torque[:, 0]) ** 2
            expected |= dict(zip(seen.agent_ids.tolist(), (-cost).tolist(), strict=True))
            pool.send(instance, {"B": Actions(torque, np.zeros((len(torque), 0), np.int64))})
        before, answers = answers, receive_all(pool)
        for instance, answer in answers.items():
            final, seen = answer["B"].terminals, answer["B"].decisions
            who = seen if final is None else final
            num_ended += 0 if final is None else len(final.agent_ids)
            if final is not None:
                assert final.truncated.all()
                moved = np.abs(final.observations[0] - before[instance]["B"].decisions.observations[0])
                assert (moved < 1.5).all()  # one step from where it was, not a new episode
            rewards = dict(zip(who.agent_ids.tolist(), who.rewards.tolist(), strict=True))
            assert rewards == pytest.approx({agent: expected[agent] for agent in rewards}, rel=1e-3, abs=1e-3)
    assert num_ended == 4 * 5
    pool.close()


@pytest.mark.parametrize("where", POOLS)
def test_population_may_grow_and_behaviors_may_be_silent(where: str) -> None:
    pool = POOLS[where]("two behaviors")
    pool.start()
    rounds = history(pool, 50)
    for index, answers in enumerate(rounds):
        for answer in answers.values():
            assert len(answer["Crowd"].decisions.agent_ids) == index + 1
            assert answer["Crowd"].decisions.observations[0][:, 0].tolist() == list(range(index + 1))
            assert ("Leader" in answer) == (index % 2 == 0)
    pool.close()


def test_steps_of_an_unchanged_population_share_one_array_of_ids(pool: EnvironmentPool, name: str) -> None:
    if name in ("vectorized", "two behaviors"):
        pytest.skip("its population changes")
    pool.reset(0)
    random = np.random.default_rng(0)
    seen: dict[int, list[object]] = {}
    for _ in range(3):
        waiting = dict[int, Mapping[str, Steps]]()
        while len(waiting) < pool.num_instances:
            waiting.update(pool.receive(DEADLINE_SECONDS))
        for instance, answer in waiting.items():
            seen.setdefault(instance, []).append(answer["B"].decisions.agent_ids)
        send_all(pool, waiting, random)
    assert all(ids is arrays[0] for arrays in seen.values() for ids in arrays)
