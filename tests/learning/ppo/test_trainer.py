"""The trainer as a whole: when it learns, what it reports, what it saves, what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import ConfigError, NonFiniteError
from rl_tui.engine.learning.on_policy import trainer as module
from rl_tui.engine.learning.on_policy.actor_critic import TorchActorCritic
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Ending, ObservationSpec, State, Trajectories
from tests.learning.rollouts import SPEC, acted

CPU = torch.device("cpu")
DISCRETE = BehaviorSpec("Walker", (ObservationSpec("speed", (3,)),), ActionSpec(0, (3, 2)))
CONTINUOUS = BehaviorSpec("Walker", (ObservationSpec("speed", (3,)),), ActionSpec(2))


def config(
    network: Mapping[str, object] | None = None, normalize_reward: bool = False, **hyper: object
) -> BehaviorConfig:
    """Small and quick, with these settings."""
    hyperparameters = {"batch_size": 16, "buffer_size": 64, "num_epoch": 2, "learning_rate": 1e-2} | hyper
    return BehaviorConfig.model_validate(
        {
            "hyperparameters": hyperparameters,
            "network_settings": {"hidden_units": 8, "num_layers": 1} | dict(network or {}),
            "normalize_reward": normalize_reward,
            "max_steps": 1000,
        }
    )


def trainer(settings: BehaviorConfig, spec: BehaviorSpec = SPEC, seed: int = 0) -> PPOTrainer:
    return PPOTrainer(spec, settings, seed, CPU)


def blocks(
    ppo: PPOTrainer, count: int, spec: BehaviorSpec = SPEC, masked: bool = False, ending: Ending | None = None
) -> list[Trajectories]:
    """Blocks of 64 rows that the trainer's policy acted."""
    random, policy = np.random.default_rng(5), ppo.make_policy(3)
    return [acted(policy, random, [20, 30, 14], spec, masked, ending) for _ in range(count)]


def trained(ppo: PPOTrainer, block: Trajectories, step: int = 64) -> Mapping[str, float]:
    """The numbers of one update on one block."""
    ppo.add(block)
    return ppo.update(step)


def parameters(ppo: PPOTrainer) -> dict[str, np.ndarray]:
    return {name: array for name, array in ppo.state().tensors.items() if name.startswith("network.")}


def is_same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    assert first.keys() == second.keys()
    return all(np.array_equal(array, second[name]) for name, array in first.items())


def test_an_update_that_is_stopped_early_has_learned_from_the_mini_batches_so_far() -> None:
    whole, ended = trainer(config(num_epoch=1, batch_size=32)), trainer(config(num_epoch=1000, batch_size=32))
    (block,) = blocks(whole, 1)
    answers = iter([True, False])
    trained(whole, block)
    ended.add(block)
    assert "Losses/Value Loss" in ended.update(64, lambda: next(answers))
    assert is_same(parameters(whole), parameters(ended))
    assert ended.num_updates == 1
    assert not ended.is_ready()


def test_an_update_is_due_at_exactly_buffer_size_rows() -> None:
    """ML-Agents waits for one row more."""
    ppo = trainer(config())
    random, policy = np.random.default_rng(0), ppo.make_policy(0)
    assert ppo.rows_per_update == 64
    assert not ppo.is_ready()
    ppo.add(acted(policy, random, [40, 23]))
    assert not ppo.is_ready()
    ppo.add(acted(policy, random, [1]))
    assert ppo.is_ready()
    ppo.update(64)
    assert not ppo.is_ready()
    assert ppo.num_updates == ppo.weights().version == 1


@pytest.mark.parametrize("spec", [SPEC, DISCRETE, CONTINUOUS])
@pytest.mark.parametrize(
    "settings",
    [
        config(),
        config(shared_critic=True, value_clip=None, max_grad_norm=0.5),
        config({"normalize": True, "activation": "tanh"}, normalize_reward=True, joint_ratio=True),
        config({"num_layers": 3, "activation": "relu"}, normalize_advantage="minibatch", value_clip=0.1),
        config(normalize_advantage="none", target_kl=0.01, adam_epsilon=1e-5),
    ],
    ids=["defaults", "shared", "normalized", "minibatch", "plain"],
)
def test_every_setting_trains_and_stays_finite(spec: BehaviorSpec, settings: BehaviorConfig) -> None:
    ppo = trainer(settings, spec)
    before = parameters(ppo)
    for block in blocks(ppo, 3, spec, masked=bool(spec.actions.branches)):
        metrics = trained(ppo, block)
        assert np.isfinite(list(metrics.values())).all(), metrics
    after = parameters(ppo)
    assert all(np.isfinite(array).all() for array in after.values())
    assert not any(np.array_equal(array, after[name]) for name, array in before.items() if "parameters" in name)


def test_metrics_have_ml_agents_names() -> None:
    ppo = trainer(config())
    block = blocks(ppo, 1, ending=Ending.TERMINATED)[0]
    reported = ppo.add(block)
    starts = np.cumsum(block.lengths) - block.lengths
    assert reported == {"Policy/Extrinsic Reward": pytest.approx(np.add.reduceat(block.rewards, starts).tolist())}
    ours = {"Policy/KL Divergence", "Policy/Clip Fraction"}
    theirs = {
        "Losses/Policy Loss",
        "Losses/Value Loss",
        "Policy/Entropy",
        "Policy/Learning Rate",
        "Policy/Epsilon",
        "Policy/Beta",
        "Policy/Extrinsic Value Estimate",
    }
    assert set(ppo.update(64)) == theirs | ours


def test_a_block_in_which_no_episode_ended_shows_no_reward() -> None:
    ppo = trainer(config())
    assert ppo.add(blocks(ppo, 1, ending=Ending.CUT)[0]) == {}


def test_strength_weighs_rewards_and_what_is_reported_of_them() -> None:
    settings = config(value_clip=None, num_epoch=1, batch_size=64)
    strong = settings.model_copy(
        update={
            "reward_signals": {"extrinsic": settings.reward_signals["extrinsic"].model_copy(update={"strength": 3.0})}
        }
    )
    weak_trainer, strong_trainer = trainer(settings), trainer(strong)
    block = blocks(weak_trainer, 1, ending=Ending.TERMINATED)[0]
    reported = [ppo.add(block)["Policy/Extrinsic Reward"] for ppo in (weak_trainer, strong_trainer)]
    assert reported[1] == pytest.approx([3 * reward for reward in reported[0]])
    expected = trainer(settings)
    trained(expected, replace(block, rewards=block.rewards * np.float32(3)))
    strong_trainer.update(64)
    assert is_same(parameters(expected), parameters(strong_trainer))


def test_linear_schedules_end_where_ml_agents_end_them() -> None:
    ppo = trainer(config(beta=5e-3, epsilon=0.3))
    names = "Policy/Learning Rate", "Policy/Epsilon", "Policy/Beta"
    found = [
        [trained(ppo, block, step)[name] for name in names]
        for block, step in zip(blocks(ppo, 3), (0, 500, 1000), strict=True)
    ]
    assert found[0] == pytest.approx([1e-2, 0.3, 5e-3])
    assert found[1] == pytest.approx([5e-3, 0.2, (5e-3 + 1e-5) / 2])
    assert found[2] == pytest.approx([1e-10, 0.1, 1e-5])


def test_values_that_start_below_the_end_of_their_schedule_do_not_rise() -> None:
    """In ML-Agents they do."""
    ppo = trainer(config(beta=1e-6, epsilon=0.05))
    for block, step in zip(blocks(ppo, 2), (0, 1000), strict=True):
        metrics = trained(ppo, block, step)
        assert (metrics["Policy/Epsilon"], metrics["Policy/Beta"]) == (0.05, 1e-6)


def test_constant_schedules_stay() -> None:
    ppo = trainer(config(learning_rate_schedule="constant"))  # which the other two follow
    metrics = trained(ppo, blocks(ppo, 1)[0], 900)
    assert metrics["Policy/Learning Rate"] == 1e-2
    assert (metrics["Policy/Epsilon"], metrics["Policy/Beta"]) == (0.2, 5e-3)


def test_the_first_pass_moves_away_from_a_policy_that_is_the_acting_one() -> None:
    """One mini-batch of everything: ratios are one, so the policy loss is minus the mean of normalized advantages."""
    ppo = trainer(config(num_epoch=1, batch_size=64))
    metrics = trained(ppo, blocks(ppo, 1)[0])
    assert metrics["Losses/Policy Loss"] == pytest.approx(0, abs=1e-5)
    assert metrics["Policy/KL Divergence"] == pytest.approx(0, abs=1e-6)
    assert metrics["Policy/Clip Fraction"] == 0


def test_the_policy_loss_is_the_mean_of_what_each_mini_batch_loses_or_gains_as_in_ml_agents() -> None:
    """A row each, advantages of about plus or minus one, and a policy that hardly moves: they must not cancel."""
    ppo = trainer(config(num_epoch=1, batch_size=1, learning_rate=1e-9))
    block = acted(ppo.make_policy(3), np.random.default_rng(5), [1] * 64, ending=Ending.TERMINATED)
    rewards = np.tile(np.array([1000, -1000], np.float32), 32)
    metrics = trained(ppo, replace(block, rewards=rewards))
    assert metrics["Losses/Policy Loss"] == pytest.approx(1, abs=1e-2)


def test_a_large_divergence_ends_the_update() -> None:
    free = config(num_epoch=40, learning_rate=0.05)
    updates = {}
    for target in (None, 1e-3):
        ppo = trainer(config(num_epoch=40, learning_rate=0.05, target_kl=target))
        trained(ppo, blocks(ppo, 1)[0])
        updates[target] = ppo.state().part("network").values["adam_steps"]
    minibatches = free.hyperparameters.num_epoch * 4
    assert updates[None] == minibatches
    assert 4 <= int(str(updates[1e-3])) < minibatches / 4


def test_the_value_clip_acts() -> None:
    """In ML-Agents old values are overwritten by the returns, so its clip never does anything."""
    found = {}
    for clip in ("epsilon", 1e-6, None):
        ppo = trainer(config(value_clip=clip, learning_rate=0.05, num_epoch=10, epsilon=0.05))
        trained(ppo, blocks(ppo, 1)[0])
        found[clip] = parameters(ppo)
    assert not is_same(found["epsilon"], found[None])
    assert not is_same(found["epsilon"], found[1e-6])


def test_what_follows_a_truncation_is_bootstrapped_and_what_follows_a_termination_is_not() -> None:
    """What was seen after the end matters for one and not for the other."""
    for ending in Ending:
        found = []
        for shift in (0.0, 5.0):
            ppo = trainer(config())
            block = blocks(ppo, 1, ending=ending)[0]
            following = tuple(column + np.float32(shift) for column in block.next_observations)
            trained(ppo, replace(block, next_observations=following))
            found.append(parameters(ppo))
        assert is_same(*found) == (ending is Ending.TERMINATED), ending.name


@pytest.mark.parametrize("reward", [np.nan, np.inf, -np.inf])
def test_a_reward_that_is_not_finite_names_its_agent_and_is_not_kept(reward: float) -> None:
    ppo = trainer(config({"normalize": True}, normalize_reward=True))
    block = blocks(ppo, 1)[0]
    rewards = block.rewards.copy()
    rewards[33] = reward  # of the second of 20 + 30 + 14 rows
    before = ppo.state()
    with pytest.raises(NonFiniteError, match=rf"agent 1 .*{reward}"):
        ppo.add(replace(block, rewards=rewards))
    after = ppo.state()
    assert before.values == after.values
    assert is_same(before.tensors, after.tensors)
    assert not ppo.is_ready()


@pytest.mark.parametrize(
    "break_it",
    [
        lambda b: replace(b, continuous_actions=np.full_like(b.continuous_actions, np.nan)),
        lambda b: replace(b, log_probs=np.full_like(b.log_probs, -1e4)),
        lambda b: replace(b, rewards=b.rewards * np.float32(1e30)),
    ],
    ids=["action", "ratio", "reward"],
)
def test_a_loss_that_is_not_finite_leaves_everything_as_it_was(
    break_it: Callable[[Trajectories], Trajectories],
) -> None:
    ppo = trainer(config())
    good, bad = blocks(ppo, 2)
    trained(ppo, good)
    before, weights = parameters(ppo), ppo.weights()
    steps = ppo.state().part("network").values
    with pytest.raises(NonFiniteError, match="at step 128"):
        trained(ppo, break_it(bad), 128)
    assert is_same(before, parameters(ppo))
    assert ppo.state().part("network").values == steps
    assert ppo.num_updates == 1
    assert all(np.array_equal(array, weights.arrays[name]) for name, array in ppo.weights().arrays.items())


def test_hyperparameters_are_those_of_the_configuration() -> None:
    ppo = trainer(config(beta=0.01, target_kl=0.5))
    expected = {"learning_rate": 1e-2, "beta": 0.01, "epsilon": 0.2, "lambd": 0.95, "num_epoch": 2}
    assert ppo.hyperparameters() == expected | {"value_coefficient": 0.5, "target_kl": 0.5}
    assert "target_kl" not in trainer(config()).hyperparameters()


@pytest.mark.parametrize("name", sorted(trainer(config(target_kl=1e-9)).hyperparameters()))
def test_hyperparameter_that_is_set_trains_as_if_the_configuration_had_said_so(name: str) -> None:
    """From the next update on; and each of them makes a difference."""
    value = {"num_epoch": 5, "lambd": 0.5, "target_kl": 1e-9}.get(name, 0.05)
    start = {"value_clip": None, "target_kl": 1e9}
    changed, set_later, same = (trainer(config(**start | more)) for more in ({}, {name: value}, {}))
    changed.set_hyperparameter(name, value)
    assert changed.hyperparameters() == set_later.hyperparameters()
    for ppo in (changed, set_later, same):
        fed(ppo, 2, start=1)
    assert is_same(parameters(changed), parameters(set_later))
    assert not is_same(parameters(changed), parameters(same))


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("learning_rate", 0.0, "learning_rate: must be greater than 0, got 0.0"),
        ("beta", -1e-9, "beta: must be at least 0, got -1e-09"),
        ("epsilon", np.inf, "epsilon: must be a finite number, got inf"),
        ("lambd", 1.01, "lambd: must be at most 1, got 1.01"),
        ("num_epoch", 0.5, "num_epoch: must be a whole number, got 0.5"),
        ("batch_size", 64, "batch_size: cannot be changed while it trains."),
        ("joint_ratio", 1, "joint_ratio: cannot be changed while it trains."),
        ("target_kl", 0.1, "target_kl: cannot be changed while it trains."),
    ],
)
def test_hyperparameter_that_a_configuration_could_not_hold_is_refused(name: str, value: float, reason: str) -> None:
    ppo = trainer(config())
    before = ppo.hyperparameters()
    with pytest.raises(ConfigError) as caught:
        ppo.set_hyperparameter(name, value)
    assert str(caught.value).startswith(reason)
    assert ppo.hyperparameters() == before


def test_loading_drops_what_waits_for_an_update_and_keeps_what_was_set() -> None:
    ppo = trainer(config(normalize_reward=True))
    state = ppo.state()
    ppo.set_hyperparameter("beta", 0.25)
    ppo.add(blocks(ppo, 1)[0])
    assert ppo.is_ready()
    ppo.load(state)
    assert not ppo.is_ready()
    assert ppo.hyperparameters()["beta"] == 0.25
    assert ppo.state().values == state.values


def test_weights_and_state_are_copies() -> None:
    ppo = trainer(config({"normalize": True}))
    weights, state = ppo.weights(), ppo.state()
    kept = [{name: array.copy() for name, array in made.items()} for made in (weights.arrays, state.tensors)]
    trained(ppo, blocks(ppo, 1)[0])
    assert is_same(dict(weights.arrays), kept[0])
    assert is_same(state.tensors, kept[1])


def test_a_policy_acts_with_the_normalizer_of_the_trainer() -> None:
    ppo = trainer(config({"normalize": True}))
    trained(ppo, blocks(ppo, 1)[0])
    arrays = ppo.weights().arrays
    assert {"normalizer.mean", "normalizer.scale"} <= set(arrays)
    assert (arrays["normalizer.mean"] != 0).all()


def fed(ppo: PPOTrainer, count: int, start: int) -> None:
    """Updates on blocks that depend only on the update's number and on the policy."""
    for index in range(start, start + count):
        policy = ppo.make_policy(index)
        block = acted(policy, np.random.default_rng(index), [20, 30, 14], SPEC, True, Ending.TRUNCATED)
        ppo.add(block)
        ppo.update(64 * index)


RICH = {"settings": config({"normalize": True}, normalize_reward=True, max_grad_norm=0.5)}


@pytest.mark.parametrize("ablated", [None, "network", "shuffling", "normalizer", "reward_extrinsic", "trainer"])
def test_a_loaded_trainer_continues_bit_for_bit(ablated: str | None) -> None:
    """Through tensors and JSON. Each part of the state matters: left as it begins, the next updates differ."""
    ppo, loaded = trainer(RICH["settings"], seed=0), trainer(RICH["settings"], seed=9)
    fed(ppo, 3, start=0)
    state, fresh = ppo.state(), loaded.state()
    tensors = {n: (fresh if ablated and n.startswith(f"{ablated}.") else state).tensors[n] for n in state.tensors}
    values = {part: (fresh if part == ablated else state).values[part] for part in state.values}
    loaded.load(State(tensors, json.loads(json.dumps(values))))
    for each in (ppo, loaded):
        fed(each, 3, start=3)
    first, second = ppo.state(), loaded.state()
    is_equal = first.values == second.values and is_same(first.tensors, second.tensors)
    assert is_equal == (ablated is None)
    if ablated not in (None, "trainer"):
        assert not is_same(parameters(ppo), parameters(loaded))


def test_a_seed_repeats_a_training_and_another_does_not() -> None:
    found = []
    for seed in (1, 1, 2):
        ppo = trainer(config(), seed=seed)
        fed(ppo, 2, start=0)
        found.append(parameters(ppo))
    assert is_same(found[0], found[1])
    assert not is_same(found[0], found[2])


@pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA"))]
)
@pytest.mark.parametrize(
    "settings",
    [
        config({"normalize": True}, max_grad_norm=0.5, joint_ratio=True, target_kl=10.0),
        config(shared_critic=True, normalize_advantage="minibatch", value_clip=0.1, learning_rate=1e-3),
    ],
    ids=["separate", "shared"],
)
def test_networks_in_torch_learn_what_those_in_numpy_learn(
    device: str, settings: BehaviorConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the same numbers, on the same blocks. On the CPU torch is requested, on devices it is the only choice."""
    ours = trainer(settings)
    monkeypatch.setattr(
        module,
        "make_actor_critic",
        lambda networks, layout, activation, where: TorchActorCritic(networks, where),
    )
    theirs = PPOTrainer(SPEC, settings, 0, torch.device(device))
    for index, block in enumerate(blocks(ours, 2, masked=True)):
        found, expected = trained(theirs, block, index * 64), trained(ours, block, index * 64)
        assert found == pytest.approx(expected, rel=1e-2, abs=1e-4)
    for name, array in parameters(ours).items():
        if name.startswith("network.parameters."):
            np.testing.assert_allclose(parameters(theirs)[name], array, rtol=1e-2, atol=2e-3, err_msg=name)
    first = theirs.state()
    fresh = PPOTrainer(SPEC, settings, 1, torch.device(device))
    fresh.load(first)
    assert is_same(fresh.state().tensors, first.tensors)
    before = parameters(theirs)
    bad = replace(block, continuous_actions=np.full_like(block.continuous_actions, np.nan))
    with pytest.raises(NonFiniteError):
        trained(theirs, bad)
    assert is_same(before, parameters(theirs))
