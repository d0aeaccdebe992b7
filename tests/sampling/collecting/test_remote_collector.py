"""Workers that act: who collects what, and what is left where one fails."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
from dataclasses import fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.config.network import MemorySettings, NetworkSettings
from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.experience import join_trajectories
from rl_tui.engine.sampling.block_sizes import BlockLimits
from rl_tui.engine.sampling.collecting.counters import Counters
from rl_tui.engine.sampling.collecting.remote_collector import Shares
from rl_tui.engine.sampling.collecting.share import NO_END, Share
from rl_tui.engine.sampling.collecting.share_collector import Numbers, OwnPolicy, ShareCollector
from rl_tui.engine.sampling.collecting.shared_weights import SharedWeights, WeightsReader
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import Guard
from rl_tui.engine.sampling.finished_episodes import Episodes
from rl_tui.engine.sampling.pools.instance import Instance
from rl_tui.engine.sampling.pools.reports import Restarted, Restarting
from rl_tui.engine.sampling.pools.serial_instances import SerialInstances
from rl_tui.engine.sampling.pools.shared_memory import anonymous_file
from rl_tui.engine.specs import BehaviorSpec, CopyPolicy, Ending, State, Trajectories, Weights
from tests.sampling.collecting.rounds import Needs, Rounds, network_policies, started

NETWORK = NetworkSettings(hidden_units=8, num_layers=1)
gaussian = partial(network_policies, NETWORK)
PENDULUM = ("gymnasium:Pendulum-v1", "Pendulum")


def digest(blocks: list[tuple[str, Trajectories]]) -> list[tuple[str, bytes, bytes, bytes, int]]:
    return [
        (name, block.rewards.tobytes(), block.continuous_actions.tobytes(), block.agent_ids.tobytes(), block.num_rows)
        for name, block in blocks
    ]


class Listening:
    """Implements Listener without a process."""

    def __init__(self) -> None:
        self.blocks: list[Trajectories] = []

    def add_block(self, behavior: str, block: Trajectories) -> None:
        self.blocks.append(block)

    def add_episodes(self, behavior: str, episodes: Episodes, num_learned: int) -> None:
        """Not looked at."""

    def end_round(self, states: dict[str, State]) -> None:
        """Not looked at."""

    def await_policy(self, spec: BehaviorSpec) -> None:
        raise AssertionError(spec)


def calling(guard: Guard, doing: str, instance: int | None) -> Guard:
    guard.doing, guard.instance = doing, instance
    return guard


def collected_here(first: int, count: int, num_rounds: int, total: int) -> list[Trajectories]:
    """What a worker of these copies collects, in this process."""
    source = EnvironmentSource(*PENDULUM, {})
    instances = [Instance(environment) for environment in source.make(first, count)]
    stepped = SerialInstances(instances, partial(calling, Guard("test")))
    listening, spec = Listening(), instances[0].specs["Pendulum"]
    file = anonymous_file("test")
    number = first * total // 4
    collector = ShareCollector(stepped, Numbers(number, total), listening, Counters(file, 0))
    policy, weights = gaussian(spec)
    recipe = policy.recipe(range(first, first + count), len(instances))
    assert recipe is not None
    module, _, function = recipe.maker.partition(":")
    own = getattr(import_module(module), function)(**recipe.arguments)
    shared = SharedWeights()
    shared.write("Pendulum", weights)
    reader = WeightsReader(shared.descriptor, shared.place("Pendulum"))
    collector.give_policy("Pendulum", OwnPolicy(0, own, 20, False, reader))
    stepped.reset(5 + number)
    for _ in range(num_rounds):
        collector.go({"Pendulum": Share(100, NO_END, 64)})
        while collector.is_going:
            collector.advance()
    shared.close()
    os.close(file)
    return listening.blocks


def test_workers_collect_what_the_same_collectors_would_here() -> None:
    """Bit for bit, in the order of the workers, over several rounds of several blocks."""
    with started(*PENDULUM, num_copies=4, num_workers=2) as pool:
        rounds = Rounds(pool, Needs(200), horizon=20, policies=gaussian, longest=128)
        rounds.until(lambda: rounds.rounds == 4)
    here = [collected_here(first, 2, 3, total=2) for first in (0, 2)]
    expected = [join_trajectories(parts) for parts in zip(*here, strict=True)]
    assert len(expected) == len(rounds.blocks) >= 6
    for (_, block), other in zip(rounds.blocks, expected, strict=True):
        for field in fields(Trajectories):
            ours, theirs = getattr(block, field.name), getattr(other, field.name)
            if isinstance(ours, np.ndarray):
                np.testing.assert_array_equal(ours, theirs, err_msg=field.name)
        np.testing.assert_array_equal(block.observations[0], other.observations[0])


def test_a_run_repeats_itself_and_shares_are_even() -> None:
    found = []
    for _ in range(2):
        with started(*PENDULUM, num_copies=3, num_workers=3) as pool:
            rounds = Rounds(pool, Needs(300), horizon=50, policies=gaussian)
            rounds.until(lambda rounds=rounds: rounds.rounds == 4)  # type: ignore[misc]  # bound now
            found.append(digest(rounds.blocks))
            agents = np.concatenate([block.agent_ids.repeat(block.lengths) for _, block in rounds.blocks])
            assert np.bincount(agents).tolist() == [300, 300, 300]
    assert found[0] == found[1]


@pytest.mark.parametrize("learns_meanwhile", [False, True])
def test_weights_that_come_in_the_middle_of_a_round_act_at_once_where_they_may(learns_meanwhile: bool) -> None:
    policies: list[tuple[CopyPolicy, Weights]] = []

    def kept(spec: BehaviorSpec) -> tuple[CopyPolicy, Weights]:
        policies.append(gaussian(spec))
        return policies[-1]

    with started(*PENDULUM, num_copies=4, num_workers=2) as pool:
        needs = Needs(100_000) if learns_meanwhile else Needs(2000)  # a round that does not end, and one that does
        rounds = Rounds(pool, needs, 20, kept, longest=100, learns_meanwhile=learns_meanwhile)
        rounds.until_rows("Pendulum", 500)
        (_, weights), first = policies[0], rounds.rounds
        rounds.collector.load("Pendulum", replace(weights, version=weights.version + 1))
        rounds.until(lambda: rounds.blocks[-1][1].policy_version > weights.version)
        versions = [block.policy_version for _, block in rounds.blocks]
        assert (rounds.rounds == first) == learns_meanwhile
    assert versions == sorted(versions)
    if not learns_meanwhile:
        num_rows = sum(block.num_rows for _, block in rounds.blocks if block.policy_version == weights.version)
        assert num_rows % 2000 < 100, "whole rounds, but for the rows of the last segments"


def test_what_is_drawn_for_a_copy_does_not_depend_on_the_number_of_workers() -> None:
    """The first step of each: later ones follow from sums in another order."""
    firsts = []
    for num_workers in (1, 2, 4):
        with started(*PENDULUM, num_copies=4, num_workers=num_workers) as pool:
            rounds = Rounds(pool, Needs(40), horizon=10, policies=gaussian)
            rounds.until(lambda rounds=rounds: rounds.rounds == 2)  # type: ignore[misc]
            policy = gaussian(pool.specs["Pendulum"])[0]
            block = join_trajectories([block for _, block in rounds.blocks])
            seen = [column[::10] for column in block.observations]
            mean = policy._head(  # type: ignore[attr-defined]  # without the noise
                type("Decisions", (), {"observations": tuple(seen), "agent_ids": np.arange(4)})(), None
            )[0]
            firsts.append(np.sort((block.continuous_actions[::10] - mean).ravel()))
    np.testing.assert_allclose(firsts[0], firsts[1], atol=1e-5)
    np.testing.assert_allclose(firsts[0], firsts[2], atol=1e-5)
    assert len(np.unique(firsts[0].round(4))) == 4


@pytest.mark.parametrize("shares", ["even", "adaptive"])
def test_training_ends_with_the_last_step_that_counts(shares: Shares) -> None:
    with started(*PENDULUM, num_copies=4, num_workers=2) as pool:
        rounds = Rounds(pool, Needs(64, max_rows=150), horizon=1000, policies=gaussian, shares=shares)
        rounds.until(lambda: rounds.num_rows("Pendulum") >= 150)
        assert rounds.num_rows("Pendulum") <= 150 + 3 * 2, "each worker may take a step of all its agents"


def test_adaptive_shares_let_the_fast_worker_collect_more(tmp_path: Path) -> None:
    with started("tests.sampling.collecting.worlds:Uneven", "Walker", 2, 2, {"folder": str(tmp_path)}) as pool:
        rounds = Rounds(pool, Needs(200), horizon=5, shares="adaptive")
        rounds.until(lambda: rounds.rounds == 4)
        agents = np.concatenate([block.agent_ids.repeat(block.lengths) for _, block in rounds.blocks])
        slow, fast = sorted(np.bincount(agents % 2).tolist())
        assert fast > 3 * slow > 0


FAULTS = (
    "raises",
    "exits",
    "dies",
    "crashes",
    "hangs",
    "closes_the_pipe",
    "scribbles_on_the_pipe",
    "changes_its_shape",
)


def test_a_worker_that_fails_in_any_way_is_started_again_and_collects(tmp_path: Path) -> None:
    """Also while blocks are written and read; every one of them has a checksum here."""
    arguments = {"folder": str(tmp_path), "faults": [*FAULTS], "at": 9}
    with started("tests.sampling.mortal:Mortal", "Walker", 2, 2, arguments, timeout=2.0) as pool:
        rounds = Rounds(pool, Needs(16), horizon=4)
        rounds.until(lambda: len(rounds.of(Restarted)) == len(FAULTS))
        assert len(rounds.of(Restarting)) == len(FAULTS)
        before = rounds.num_rows("Walker")
        rounds.until_rows("Walker", before + 200)
        assert len(pool.worker_pids) == 2
    for _, block in rounds.blocks:
        assert (block.rewards == np.float32(-0.01)).mean() > 0.5


def test_what_a_killed_worker_had_not_passed_on_is_not_learned_as_an_end() -> None:
    """Its agents' last segments are truncated, or they have departed; the others go on."""
    with started("tests.sampling.skirmish:Skirmish", "Soldier", 2, 2) as pool:
        rounds = Rounds(pool, Needs(60), horizon=7, seed=0)
        for _ in range(3):
            rounds.until_rows("Soldier", rounds.num_rows("Soldier") + 300)
            os.kill(pool.worker_pids[0], signal.SIGKILL)
            count = len(rounds.of(Restarted))
            rounds.until(lambda count=count: len(rounds.of(Restarted)) > count)  # type: ignore[misc]
    open_agents: set[int] = set()
    for name, block in rounds.blocks:
        if name != "Soldier":
            continue
        agents = block.agent_ids.tolist()
        for agent, begins, ending in zip(agents, block.begins.tolist(), block.endings.tolist(), strict=True):
            was_killed = agent % 2 == 0  # of worker 0, and is back
            assert begins == (agent not in open_agents) or (begins and was_killed), "it continues one, or begins"
            (open_agents.add if ending == Ending.CUT else open_agents.discard)(agent)
        assert not set(block.departed.tolist()) & set(agents)
        open_agents -= set(block.departed.tolist())


def test_a_worker_that_may_not_be_restarted_ends_the_pool(tmp_path: Path) -> None:
    arguments = {"folder": str(tmp_path), "faults": ["raises"], "at": 9}
    with started("tests.sampling.mortal:Mortal", "Walker", 1, 1, arguments, quota=None) as pool:
        rounds = Rounds(pool, Needs(1000), horizon=100)
        with pytest.raises(
            EnvironmentFailure, match="instance 0, worker 0: step raised ValueError: the wheels came off"
        ):
            rounds.until(lambda: False)


def test_a_paused_worker_takes_no_step(tmp_path: Path) -> None:
    with started(*PENDULUM, num_copies=2, num_workers=1) as pool:
        rounds = Rounds(pool, Needs(NO_END), horizon=10)
        rounds.until(lambda: rounds.collector.num_sampled["Pendulum"] > 100)
        rounds.collector.pause(True)
        counts = itertools.pairwise(iter(lambda: rounds.cycle() or rounds.collector.num_sampled["Pendulum"], -1))
        assert any(first == second for first, second in itertools.islice(counts, 1000))
        stopped_at = rounds.collector.num_sampled["Pendulum"]
        for _ in range(3):
            rounds.cycle()
        assert rounds.collector.num_sampled["Pendulum"] == stopped_at
        rounds.collector.pause(False)
        rounds.until(lambda: rounds.collector.num_sampled["Pendulum"] > stopped_at + 100)


def test_what_each_worker_has_done_adds_up_also_over_a_restart() -> None:
    with started(*PENDULUM, num_copies=4, num_workers=2) as pool:
        began = time.monotonic()  # before they act
        rounds = Rounds(pool, Needs(400), horizon=50, policies=gaussian)
        collector = rounds.collector
        for _ in range(2):
            rounds.until_rows("Pendulum", rounds.num_rows("Pendulum") + 800)
            times, seconds = collector.totals.times, time.monotonic() - began
            for each in times:
                assert each.environment > 0 < each.inference
                assert 0 < each.waiting < sum(each) < seconds
            assert sum(collector.totals.num_sampled) == sum(collector.num_sampled.values()) > 0
            before = collector.totals.num_sampled[0], times[0]
            os.kill(pool.worker_pids[0], signal.SIGKILL)
            rounds.until(lambda: len(rounds.of(Restarting)) > len(rounds.of(Restarted)))
            rounds.until(lambda: len(rounds.of(Restarting)) == len(rounds.of(Restarted)))
            rounds.until(lambda before=before: collector.totals.num_sampled[0] > before[0])  # type: ignore[misc]
            assert all(more >= less for more, less in zip(collector.totals.times[0], before[1], strict=True))
        assert pool.num_restarts == [2, 0]


def test_episodes_come_in_the_order_of_steps() -> None:
    with started("gymnasium:CartPole-v1", "CartPole", 4, 2) as pool:
        rounds = Rounds(pool, Needs(400), horizon=50)
        ends: list[int] = []
        lengths: list[int] = []
        while len(ends) < 100:
            rounds.cycle()
            episodes = rounds.collector.drain_new_episodes("CartPole")
            ends += episodes.ends.tolist()
            lengths += episodes.lengths.tolist()
        in_blocks = np.concatenate([block.episode_lengths for _, block in rounds.blocks]).tolist()
        assert ends == sorted(ends)
        assert set(in_blocks) >= set(lengths[:50])


def test_limits_of_blocks_are_shared() -> None:
    with started(*PENDULUM, num_copies=8, num_workers=2) as pool:
        rounds = Rounds(pool, Needs(400), horizon=5, longest=100)
        rounds.until(lambda: rounds.rounds == 3)
        sizes = [block.num_rows for _, block in rounds.blocks]
        assert sizes == [120, 120, 120, 40] * 2, "whole segments, of at least 50 rows from each"
        assert rounds.counts["Pendulum"].limits == BlockLimits(100)


@pytest.mark.parametrize("has_memory", [False, True])
def test_a_worker_that_acts_with_vectors_imports_no_torch(has_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rl_tui.engine.sampling.pools.child.subprocess", subprocess)  # not one that is warm already
    network = NETWORK.model_copy(update={"memory": MemorySettings(memory_size=8)}) if has_memory else NETWORK
    env = "tests.sampling.collecting.worlds:Lean"
    with started(env, "Walker", num_copies=2, num_workers=1, quota=None) as pool:
        rounds = Rounds(pool, Needs(64), horizon=8, policies=partial(network_policies, network))
        rounds.until(lambda: rounds.rounds == 3)
