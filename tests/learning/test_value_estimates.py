"""Values of rollouts: what is remembered from row to row, segment to segment and rollout to rollout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from rl_tui.engine.config.network import MemorySettings, NetworkSettings
from rl_tui.engine.experience import join_trajectories
from rl_tui.engine.learning.agent_state import AgentState
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.on_policy.actor_critic import ActorCritic, NumpyActorCritic, TorchActorCritic
from rl_tui.engine.learning.on_policy.networks import ActorCriticModule
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.learning.value_estimates import ValueEstimates, ValueEstimator
from rl_tui.engine.specs import Ending, Float32, Trajectories, Weights
from tests.learning.rollouts import SPEC, Simulation

MEMORY = MemorySettings(sequence_length=4, memory_size=6)
NETWORK = NetworkSettings(hidden_units=8, num_layers=1, memory=MEMORY)
LAYOUT = FeatureLayout(SPEC.observations)
FORMS = ("numpy", "torch")


def networks(is_shared: bool, network: NetworkSettings = NETWORK) -> ActorCriticModule:
    """Some whose values depend on what is remembered."""
    made = ActorCriticModule(np.random.default_rng(3), LAYOUT, SPEC.actions, network, 2, is_shared)
    with torch.no_grad():
        made.values.weight *= 5
    return made


def placed(of: ActorCriticModule, form: str) -> ActorCritic:
    return NumpyActorCritic(of, "swish") if form == "numpy" else TorchActorCritic(of, torch.device("cpu"))


def simulation(of: ActorCriticModule, horizon: int = 7, seed: int = 0) -> Simulation:
    """Agents whose policy has the networks' actor."""
    policy = make_policy(SPEC, NETWORK, False, 1)
    policy.load(Weights(0, {name: array.detach().numpy().copy() for name, array in of.actor.named_parameters()}))
    return Simulation(policy, SPEC, 5, horizon, seed)


def estimated(
    network: ActorCritic,
    rollout: Trajectories,
    agents: AgentState,
    is_shared: bool = False,
    memory: MemorySettings | None = MEMORY,
    batch_size: int = 12,
) -> ValueEstimates:
    features, following = (
        tuple(map(network.place, LAYOUT.split(seen))) for seen in (rollout.observations, rollout.next_observations)
    )
    return ValueEstimator(network, memory, batch_size, is_shared)(features, following, rollout, agents)


def rollout_of(*blocks: Trajectories) -> Trajectories:
    return join_trajectories(blocks)


def row_by_row(
    of: ActorCriticModule, rollout: Trajectories, kept: dict[int, torch.Tensor], is_shared: bool
) -> tuple[Float32, Float32]:
    """Values of rows and after segments; `kept` holds the memories of unfinished episodes."""
    body = of.critic or of.actor.body
    rows, following = (
        torch.from_numpy(LAYOUT.vectors(seen)) for seen in (rollout.observations, rollout.next_observations)
    )
    values, next_values, row = [], [], 0
    for segment, length in enumerate(rollout.lengths.tolist()):
        agent = int(rollout.agent_ids[segment])
        remembered = kept.pop(agent, torch.zeros(1, MEMORY.memory_size))
        for step in range(length):
            if is_shared and step % MEMORY.sequence_length == 0:
                assert rollout.memories is not None
                remembered = torch.from_numpy(rollout.memories[row : row + 1])
            hidden, remembered = body.step((rows[row : row + 1],), remembered)
            values.append(of.values(hidden))
            row += 1
        if rollout.endings[segment] == Ending.CUT:
            kept[agent] = remembered
        hidden, _ = body.step((following[segment : segment + 1],), remembered)
        next_values.append(of.values(hidden))
    return torch.cat(values).numpy(), torch.cat(next_values).numpy()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_shared", [False, True])
@torch.no_grad()
def test_every_agent_is_followed_through_its_episodes_and_from_rollout_to_rollout(form: str, is_shared: bool) -> None:
    plain = networks(is_shared)
    network, simulated = placed(networks(is_shared), form), simulation(plain)
    agents, kept = AgentState.empty(MEMORY.memory_size, np.float32), dict[int, torch.Tensor]()
    for _ in range(3):
        rollout = rollout_of(simulated.run(15, end=0.04), simulated.run(11, end=0.04))
        found = estimated(network, rollout, agents, is_shared)
        values, next_values = row_by_row(plain, rollout, kept, is_shared)
        np.testing.assert_allclose(found.values, values, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.next_values, next_values, rtol=1e-4, atol=1e-5)
        agents = found.agents
        if is_shared:
            assert not len(agents.agent_ids)
        else:
            assert agents.agent_ids.tolist() == sorted(kept)
            np.testing.assert_allclose(agents.columns, torch.cat([kept[i] for i in sorted(kept)]), atol=1e-5)
    assert np.ptp(values) > 0.5, "the comparison would also pass on constants"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_shared", [False, True])
def test_mini_batches_read_with_the_memories_the_values_were_estimated_with(form: str, is_shared: bool) -> None:
    network, simulated = placed(networks(is_shared), form), simulation(networks(is_shared))
    first = estimated(
        network, rollout_of(simulated.run(9)), AgentState.empty(MEMORY.memory_size, np.float32), is_shared
    )
    rollout = rollout_of(simulated.run(20))
    found = estimated(network, rollout, first.agents, is_shared)
    features = tuple(map(network.place, LAYOUT.split(rollout.observations)))
    assert found.sequences is not None
    values = network.forward(features, found.sequences).values
    np.testing.assert_allclose(np.asarray(values), found.values, rtol=1e-4, atol=1e-5)
    starts = np.cumsum(found.sequences.lengths) - found.sequences.lengths
    assert rollout.memories is not None
    own = np.asarray(found.sequences.memories)[:, : MEMORY.memory_size]
    np.testing.assert_array_equal(own, rollout.memories[starts])
    assert found.sequences.memories.shape[1] == MEMORY.memory_size * (1 if is_shared else 2)


def test_an_agent_that_is_absent_from_a_rollout_is_still_remembered() -> None:
    network, simulated = placed(networks(False), "numpy"), simulation(networks(False))
    rollout = rollout_of(simulated.run(21, end=0.0))
    agents = estimated(network, rollout, AgentState.empty(MEMORY.memory_size, np.float32)).agents
    assert agents.agent_ids.tolist() == [0, 1, 2, 3, 4]
    is_second = rollout.agent_ids == 1
    rows = np.repeat(is_second, rollout.lengths)
    assert rollout.memories is not None
    alone = replace(
        rollout,
        observations=tuple(seen[rows] for seen in rollout.observations),
        next_observations=tuple(seen[is_second] for seen in rollout.next_observations),
        memories=rollout.memories[rows],
        lengths=rollout.lengths[is_second],
        begins=np.zeros(int(is_second.sum()), np.bool_),
        endings=rollout.endings[is_second],
        agent_ids=rollout.agent_ids[is_second],
    )
    later = estimated(network, alone, agents).agents
    assert later.agent_ids.tolist() == [0, 1, 2, 3, 4]
    is_same = (later.columns == agents.columns).all(1)
    assert is_same.tolist() == [True, False, True, True, True]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch_size", [1, 9, 1000])
def test_how_many_rows_are_requested_at_once_changes_nothing(form: str, batch_size: int) -> None:
    for memory in (MEMORY, None):
        settings = NETWORK.model_copy(update={"memory": memory})
        network = placed(networks(False, settings), form)
        rollout = rollout_of(simulation(networks(False)).run(20))
        no_agents = AgentState.empty(MEMORY.memory_size, np.float32)
        expected = estimated(network, rollout, no_agents, memory=memory)
        found = estimated(network, rollout, no_agents, memory=memory, batch_size=batch_size)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.next_values, expected.next_values, rtol=1e-5, atol=1e-6)
