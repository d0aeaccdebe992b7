"""Hooks after train steps: what they see, and what happens when one raises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import NotSupportedError
from rl_tui.engine.learning.actor_trainer import ActorTrainer
from rl_tui.engine.learning.on_policy.rollout import RolloutMinibatch
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.learning.replay.buffer import Minibatch
from rl_tui.engine.learning.sac.trainer import SACTrainer
from rl_tui.engine.learning.train_step import TrainStep
from rl_tui.engine.learning.trainer import Trainer
from rl_tui.engine.specs import State, Trajectories
from tests.learning.rollouts import SPEC, Simulation, acted

CPU = torch.device("cpu")
MEMORY = {"memory": {"memory_size": 4, "sequence_length": 8}}
KINDS: dict[str, Callable[..., ActorTrainer]] = {"ppo": PPOTrainer, "sac": SACTrainer}


def made(name: str, network: dict[str, object] | None = None, **hyper: object) -> ActorTrainer:
    own = {"ppo": {"num_epoch": 2, "buffer_size": 64}, "sac": {"buffer_size": 200, "steps_per_update": 8}}[name]
    settings = {
        "trainer_type": name,
        "hyperparameters": {"batch_size": 16, "learning_rate": 1e-2} | own | hyper,
        "network_settings": {"hidden_units": 8, "num_layers": 1, "normalize": True} | (network or {}),
    }
    return KINDS[name](SPEC, BehaviorConfig.model_validate(settings), 0, CPU)


def block(trainer: ActorTrainer) -> Trajectories:
    return acted(trainer.make_policy(3), np.random.default_rng(5), [20, 30, 14], SPEC)


def same(first: State, second: State) -> bool:
    tensors = all(np.array_equal(array, second.tensors[name]) for name, array in first.tensors.items())
    return tensors and first.values == second.values


@pytest.mark.parametrize("network", [{}, MEMORY])
def test_ppo_shows_every_row_of_a_rollout_once_in_each_pass(network: dict[str, object]) -> None:
    ppo, seen = made("ppo", network), list[TrainStep]()
    ppo.on_train_step(seen.append)
    rollout = Simulation(ppo.make_policy(3), SPEC, num_agents=4, horizon=16).run(32)
    ppo.add(rollout)
    metrics = ppo.update(64)
    shown = Counter(row.tobytes() for step in seen for row in step.sample.observations[0])
    assert shown == Counter({row.tobytes(): 2 for row in rollout.observations[0]})
    for tag in ("Losses/Policy Loss", "Losses/Value Loss", "Policy/Entropy"):
        assert np.mean([float(step.losses[tag]) for step in seen]) == pytest.approx(metrics[tag], rel=1e-5)


@pytest.mark.parametrize("hyper", [{}, {"joint_ratio": True, "normalize_advantage": "minibatch"}])
def test_ppo_shows_rewards_advantages_returns_values_and_log_probabilities(hyper: dict[str, object]) -> None:
    ppo, seen = made("ppo", num_epoch=1, **hyper), list[TrainStep]()
    ppo.on_train_step(seen.append)
    rollout = block(ppo)
    ppo.add(rollout)
    ppo.update(64)
    advantages = list[np.ndarray]()
    for step in seen:
        sample = step.sample
        assert isinstance(sample, RolloutMinibatch)
        rows = sample.rows
        assert sample.num_rows == len(rows) == 16
        np.testing.assert_array_equal(sample.observations[0], rollout.observations[0][rows])
        np.testing.assert_array_equal(sample.rewards[:, 0], rollout.rewards[rows])
        known = rollout.log_probs[rows]
        np.testing.assert_array_equal(sample.log_probs, known.sum(1, keepdims=True) if hyper else known)
        raw = sample.returns[:, 0] - sample.values[:, 0]
        order = np.argsort(raw)
        assert (np.diff(sample.advantages[order]) >= -1e-6).all(), "returns are advantages and values"
        if hyper:
            assert abs(sample.advantages.mean()) < 1e-5
        advantages.append(sample.advantages)
    assert sorted(np.concatenate([step.sample.rows for step in seen])) == list(range(64))  # type: ignore[attr-defined]
    assert abs(np.concatenate(advantages).mean()) < 1e-5
    terminal = np.cumsum(rollout.lengths)[rollout.endings == 1] - 1
    for step in seen:
        sample = step.sample
        assert isinstance(sample, RolloutMinibatch)
        is_last = np.isin(sample.rows, terminal)
        np.testing.assert_allclose(sample.returns[is_last], sample.rewards[is_last], atol=1e-6)
    assert len(terminal)


def test_sac_shows_the_drawn_rows_with_the_errors_of_its_critics() -> None:
    sac, seen = made("sac"), list[TrainStep]()
    sac.on_train_step(seen.append)
    sac.add(block(sac))
    metrics = sac.update(64)
    assert len(seen) == 8
    assert {step.behavior for step in seen} == {SPEC.name}
    for step in seen:
        assert isinstance(step.sample, Minibatch)
        assert step.errors is not None
        assert len(step.sample.rows) == len(step.errors) == step.sample.num_rows == 16
    losses = [float(step.losses["Losses/Q1 Loss"]) for step in seen]
    assert np.mean(losses) == pytest.approx(metrics["Losses/Q1 Loss"], rel=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_a_hook_changes_nothing_of_what_is_learned(name: str) -> None:
    watched, other = made(name), made(name)
    watched.on_train_step(lambda step: None)
    rollout = block(watched)
    for trainer in (watched, other):
        trainer.add(rollout)
        trainer.update(64)
    assert same(watched.state(), other.state())


def test_an_update_of_ppo_in_which_a_hook_raises_is_undone() -> None:
    ppo = made("ppo")
    ppo.add(block(ppo))
    before, numbers = ppo.state(), iter(range(3))

    def third_raises(_: TrainStep) -> None:
        if next(numbers) == 2:
            raise KeyError("mine")

    ppo.on_train_step(third_raises)
    with pytest.raises(KeyError, match="mine"):
        ppo.update(64)
    after = ppo.state()
    assert all(np.array_equal(array, after.tensors[name]) for name, array in before.tensors.items())
    assert ppo.num_updates == 0


def test_a_user_can_prioritize_replay_as_the_built_in_one_does() -> None:
    settings = {"prioritized_replay": {"alpha": 0.6}}
    built_in, by_hook = made("sac", **settings), made("sac", **settings)
    by_hook._train_step_hooks.clear()
    replay = by_hook._replay  # type: ignore[attr-defined]

    def prioritize(step: TrainStep) -> None:
        assert isinstance(step.sample, Minibatch)
        replay.update_priorities(step.sample.rows, np.asarray(step.errors, np.float32))

    by_hook.on_train_step(prioritize)
    rollout = block(built_in)
    for trainer in (built_in, by_hook):
        trainer.add(rollout)
        trainer.update(64)
    assert same(built_in.state(), by_hook.state())


def test_a_trainer_that_calls_no_hooks_says_so() -> None:
    class Plain(Trainer):
        """As an installed one may be."""

    Plain.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
    with pytest.raises(NotSupportedError, match="Plain calls no hooks"):
        Plain().on_train_step(lambda step: None)
