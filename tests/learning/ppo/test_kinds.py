"""PPO with memory, images, sets and goals: that it learns from what was seen and remembered, and from nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import CheckpointError, NonFiniteError
from rl_tui.engine.learning.on_policy import trainer as module
from rl_tui.engine.learning.on_policy.actor_critic import TorchActorCritic
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec, State, Trajectories
from tests.learning.rollouts import SPEC, Simulation

MEMORY = {"sequence_length": 4, "memory_size": 6}
SPEED = ObservationSpec("speed", (3,))
SPECS = {
    "vectors": SPEC,
    "image": BehaviorSpec("Walker", (ObservationSpec("camera", (20, 22, 3), "uint8"),), ActionSpec(0, (3,))),
    "set": BehaviorSpec("Walker", (ObservationSpec("enemies", (4, 3)), SPEED), ActionSpec(2)),
    "goal": BehaviorSpec("Walker", (SPEED, ObservationSpec("target", (2,), is_goal=True)), ActionSpec(1, (2,))),
    "everything": BehaviorSpec(
        "Walker",
        (
            ObservationSpec("camera", (20, 20, 1), "uint8"),
            SPEED,
            ObservationSpec("enemies", (4, 3)),
            ObservationSpec("target", (2,), is_goal=True),
        ),
        ActionSpec(2, (3, 2)),
    ),
}
# Policy loss, value loss, entropy and divergence of the first update; they change only with a reason.
GOLDEN = {  # by kind and memory
    ("vectors", False): (0.134458, 5.74256, 3.21241, 0.000158091),
    ("vectors", True): (0.245708, 3.5025, 3.21404, 3.5146e-05),
    ("image", False): (0.086362, 2.61443, 1.09858, 4.29916e-05),
    ("image", True): (0.182106, 2.58846, 1.09847, 7.37771e-05),
    ("set", False): (0.167719, 2.23799, 1.41374, 0.0203793),
    ("set", True): (0.159173, 2.06982, 1.41837, 0.00110773),
    ("goal", False): (0.0939161, 1.90953, 2.11385, 0.000251313),
    ("goal", True): (0.13867, 1.55629, 2.11523, 3.87981e-05),
    ("everything", False): (0.0974949, 3.86808, 3.21086, 0.00767926),
    ("everything", True): (0.378088, 3.73038, 3.21336, 0.000817886),
}


def config(has_memory: bool, is_shared: bool = False, normalize: bool = True, batch_size: int = 32) -> BehaviorConfig:
    """Small and quick."""
    hyper = {"batch_size": batch_size, "buffer_size": 64, "num_epoch": 2, "learning_rate": 3e-3}
    hyper["shared_critic"] = is_shared
    memory = MEMORY if has_memory else None
    network = {"hidden_units": 8, "num_layers": 1, "normalize": normalize, "memory": memory}
    return BehaviorConfig.model_validate({"hyperparameters": hyper, "network_settings": network})


def trainer(settings: BehaviorConfig, kind: str = "vectors", seed: int = 0) -> PPOTrainer:
    return PPOTrainer(SPECS[kind], settings, seed, torch.device("cpu"))


def simulation(ppo: PPOTrainer, kind: str = "vectors", horizon: int = 6) -> Simulation:
    return Simulation(ppo.make_policy(3), SPECS[kind], 5, horizon)


def trained(ppo: PPOTrainer, block: Trajectories) -> Mapping[str, float]:
    ppo.add(block)
    return ppo.update(64)


def nudge(ppo: PPOTrainer, noise: float) -> None:
    """Every parameter is another number, by about so much."""
    state, random = ppo.state(), np.random.default_rng(1)
    for name, array in state.tensors.items():
        if ".parameters." in name:
            array[...] += noise * random.standard_normal(array.shape)
    ppo.load(state)


def is_same(first: State, second: State) -> bool:
    assert first.tensors.keys() == second.tensors.keys()
    return all(np.array_equal(array, second.tensors[name]) for name, array in first.tensors.items())


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("has_memory", [False, True])
@pytest.mark.parametrize("is_shared", [False, True])
def test_it_learns_with_ratios_that_begin_at_one(kind: str, has_memory: bool, is_shared: bool) -> None:
    """What the policy did step by step is what the loss finds for whole sequences.

    Not so with `normalize`: a block is normalized by what was seen up to its end.
    """
    one_batch = config(has_memory, is_shared, normalize=False, batch_size=100)  # over which advantages sum to zero
    ppo = trainer(one_batch, kind)
    before = ppo.state()
    for _ in range(2):
        block = simulation(ppo, kind).run(20)
        ppo.add(block)
        queried = ppo.loss(block)
        assert abs(queried["Policy/KL Divergence"]) < 1e-6
        assert queried["Policy/Clip Fraction"] == 0
        assert queried["Losses/Policy Loss"] < 1e-5
        assert np.isfinite(list(ppo.update(64).values())).all()
    after = ppo.state()
    moved = [not np.array_equal(array, after.tensors[n]) for n, array in before.tensors.items() if "parameters" in n]
    assert all(moved)


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("kind", ["vectors", "set"])
def test_asking_for_the_loss_moves_no_memory(kind: str, is_shared: bool) -> None:
    queried, other = (trainer(config(True, is_shared), kind) for _ in range(2))
    simulated = simulation(queried, kind)
    for _ in range(3):
        block = simulated.run(20, end=0.03)
        assert queried.loss(block) == queried.loss(block)
        for ppo in (queried, other):
            trained(ppo, block)
    assert is_same(queried.state(), other.state())


def test_the_critic_remembers_unfinished_episodes_from_update_to_update() -> None:
    """If other agents are said to have lived on, it learns otherwise; a loaded trainer has forgotten them."""
    found = []
    for change in ("nothing", "agents", "load"):
        ppo = trainer(config(True))
        simulated = simulation(ppo)
        trained(ppo, simulated.run(20, end=0.0))
        block = simulated.run(20, end=0.0)
        if change == "agents":
            block = replace(block, agent_ids=block.agent_ids + 100)
        if change == "load":
            ppo.load(ppo.state())
        found.append((trained(ppo, block), ppo.state()))
    (kept, _), (others, strangers), (loaded, forgotten) = found
    assert kept["Losses/Value Loss"] != others["Losses/Value Loss"]
    assert others == loaded
    assert is_same(strangers, forgotten)


def test_an_update_that_fails_leaves_what_the_critic_remembers() -> None:
    failed, other = trainer(config(True)), trainer(config(True))
    simulated = simulation(failed)
    first, bad, last = (simulated.run(20, end=0.0) for _ in range(3))
    for ppo in (failed, other):
        trained(ppo, first)
    state = failed.state()
    with pytest.raises(NonFiniteError):
        trained(failed, replace(bad, continuous_actions=np.full_like(bad.continuous_actions, np.nan)))
    assert is_same(failed.state().part("network"), state.part("network"))
    for ppo in (failed, other):
        ppo.add(last)
    assert failed.loss(last)["Losses/Value Loss"] == pytest.approx(other.loss(last)["Losses/Value Loss"], rel=0.2)
    assert np.array_equal(failed._agents.columns, other._agents.columns)


@pytest.mark.parametrize(("kind", "is_shared"), [("vectors", False), ("vectors", True), ("everything", False)])
def test_networks_in_torch_learn_what_those_on_the_cpu_learn(
    torch_device: torch.device, kind: str, is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the CPU torch is requested, on devices it is the only choice."""
    ours = trainer(config(True, is_shared), kind)
    monkeypatch.setattr(module, "make_actor_critic", lambda networks, *_: TorchActorCritic(networks, torch_device))
    theirs = PPOTrainer(SPECS[kind], config(True, is_shared), 0, torch_device)
    simulated = simulation(ours, kind)
    for _ in range(2):
        block = simulated.run(20)
        assert trained(theirs, block) == pytest.approx(trained(ours, block), rel=1e-2, abs=1e-4)
    expected = ours.state()
    for name, array in theirs.state().tensors.items():
        if name.startswith("network.parameters."):
            np.testing.assert_allclose(array, expected.tensors[name], rtol=1e-2, atol=2e-3, err_msg=name)
    ours.load(theirs.state())
    assert is_same(ours.state(), theirs.state())


def test_it_keeps_no_replay_buffer_and_takes_none() -> None:
    ppo = trainer(config(False))
    assert ppo.replay() is None
    assert ppo.replay_bytes == 0
    with pytest.raises(CheckpointError, match="has no replay buffer"):
        ppo.load_replay(State())


@pytest.mark.parametrize("noise", [0, 1e-6])
@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("has_memory", [False, True])
def test_losses_are_golden(kind: str, has_memory: bool, noise: float) -> None:
    """Whatever the processor: ten times the noise of its rounding changes nothing that is seen here.

    A second update would: a few steps on, some of an image's thousands of units stand on the corner of their ReLU.
    """
    ppo = trainer(config(has_memory), kind)
    nudge(ppo, noise)
    reported = trained(ppo, simulation(ppo, kind).run(20))
    names = ("Losses/Policy Loss", "Losses/Value Loss", "Policy/Entropy", "Policy/KL Divergence")
    assert [reported[name] for name in names] == pytest.approx(GOLDEN[kind, has_memory], rel=2e-3, abs=1e-6)
