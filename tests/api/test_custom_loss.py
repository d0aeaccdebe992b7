"""A custom loss is added to PPO's, with exact gradients."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rl_tui
from tests.api.test_policies import Puzzle
from tests.running import runs

MEMORY = {"memory_size": 8, "sequence_length": 8}
KINDS: Mapping[str, tuple[Any, dict[str, Any]]] = {
    "discrete": ("CartPole-v1", {}),
    "continuous": ("Pendulum-v1", {"network_settings__normalize": True}),
    "joint": ("Pendulum-v1", {"hyperparameters__joint_ratio": True, "hyperparameters__shared_critic": True}),
    "memory": ("CartPole-v1", {"network_settings__memory": MEMORY}),
    "in torch, masked": (Puzzle, {}),
}
CONSTANT = {"hyperparameters__beta_schedule": "constant"}
State = dict[str, np.ndarray[Any, Any]]


def learner(folder: Path, kind: str, **changes: Any) -> rl_tui.Learner:
    env, own = KINDS[kind]
    return rl_tui.Learner(runs.behavior(**{**own, **CONSTANT, **changes}), env, folder, seed=1)


def tensors(of: rl_tui.Learner, part: str = "network.") -> State:
    return {name: array for name, array in of._learner.trainer.state().tensors.items() if name.startswith(part)}


def trained(folder: Path, kind: str, loss: Any = None, updates: int = 1, **changes: Any) -> State:
    """The networks and Adam's moments after some updates."""
    with learner(folder, kind, **changes) as own:
        if loss is not None:
            own.on_loss(loss)
        losses = own.run(updates)
        assert ("Losses/Custom Loss" in losses) == (loss is not None)
        return tensors(own)


def assert_close(ours: State, theirs: State, factor: float = 1.0) -> None:
    """Gradients as Adam has averaged them, and the parameters."""
    assert ours.keys() == theirs.keys()
    moments = {name: array for name, array in ours.items() if ".adam_mean." in name}
    largest = max(abs(array).max() for array in moments.values())
    assert largest > 1e-4
    for name, array in moments.items():
        np.testing.assert_allclose(theirs[name], factor * array, atol=1e-4 * largest, rtol=1e-3, err_msg=name)
    for name in (name for name in ours if name.startswith("network.parameters.")):
        np.testing.assert_allclose(theirs[name], ours[name], atol=1e-3, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_custom_loss_of_zero_changes_nothing(kind: str, tmp_path: Path) -> None:
    def zero(inputs: rl_tui.LossInputs) -> torch.Tensor:
        return 0 * (inputs.log_probs.sum() + inputs.entropy + inputs.values.sum())

    without = trained(tmp_path / "a", kind, updates=3)
    for name, array in trained(tmp_path / "b", kind, zero, updates=3).items():
        np.testing.assert_allclose(array, without[name], rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_entropy_bonus_equals_a_higher_beta(kind: str, tmp_path: Path) -> None:
    raised = trained(tmp_path / "a", kind, hyperparameters__beta=0.3)
    added = trained(tmp_path / "b", kind, lambda inputs: -0.2 * inputs.entropy, hyperparameters__beta=0.1)
    assert_close(raised, added)
    plain = trained(tmp_path / "c", kind, hyperparameters__beta=0.1)
    changed = [name for name in plain if "adam_mean.actor" in name and not np.allclose(plain[name], raised[name])]
    assert changed, "beta makes a difference"


@pytest.mark.parametrize("kind", KINDS)
def test_value_loss_equals_a_higher_coefficient(kind: str, tmp_path: Path) -> None:
    def values(inputs: rl_tui.LossInputs) -> torch.Tensor:
        return 0.5 * torch.square(inputs.values - inputs.sample.returns).mean()

    raised = trained(tmp_path / "a", kind, hyperparameters__value_coefficient=1.0)
    assert_close(raised, trained(tmp_path / "b", kind, values, hyperparameters__value_coefficient=0.5))


@pytest.mark.parametrize("kind", KINDS)
def test_surrogate_as_custom_loss_doubles_the_gradient(kind: str, tmp_path: Path) -> None:
    def surrogate(inputs: rl_tui.LossInputs) -> torch.Tensor:
        assert inputs.features[0].shape[0] == inputs.sample.num_rows
        ratio = torch.exp(inputs.log_probs - inputs.sample.log_probs)
        advantages = inputs.sample.advantages[:, None]
        return -torch.minimum(ratio * advantages, ratio.clip(0.8, 1.2) * advantages).mean()

    policy_only = {
        "hyperparameters__beta": 0.0, "hyperparameters__value_coefficient": 0.0,
        "hyperparameters__epsilon_schedule": "constant",
    }  # fmt: skip
    if kind == "in torch, masked":  # a second step would begin where rounding has made a unit positive or not
        policy_only["hyperparameters__batch_size"] = 64
    without = trained(tmp_path / "a", kind, **policy_only)
    assert_close(without, trained(tmp_path / "b", kind, surrogate, **policy_only), factor=2)


def test_parameters_that_a_loss_uses_directly_have_their_gradients(tmp_path: Path) -> None:
    one_step = {"hyperparameters__batch_size": 64, "hyperparameters__learning_rate": 1e-5}
    without = trained(tmp_path / "a", "continuous", **one_step)
    with learner(tmp_path / "b", "continuous", **one_step) as own:
        before, actor = tensors(own), own.modules["actor"]
        own.on_loss(lambda _: 0.5 * sum(torch.square(parameter).sum() for parameter in actor.parameters()))
        own.run()
        decayed = tensors(own)
    begin = "network.adam_mean."
    for name in (name for name in without if name.startswith(begin)):
        own_parameter = before[name.replace(begin, "network.parameters.")]
        expected = without[name] + (0.1 * own_parameter if ".actor." in name else 0)
        np.testing.assert_allclose(decayed[name], expected, atol=1e-5, rtol=1e-4, err_msg=name)


def test_loss_that_raises_is_undone_and_comes_out_of_run(tmp_path: Path) -> None:
    with learner(tmp_path / "a", "discrete", hyperparameters__num_epoch=2) as own:
        own.run()
        before, calls = tensors(own, ""), iter(range(9))

        def fail(inputs: rl_tui.LossInputs) -> torch.Tensor:
            if next(calls) == 2:
                raise LookupError("mine")
            return inputs.entropy

        own.on_loss(fail)
        with pytest.raises(LookupError, match="mine"):
            own.run()
        after = tensors(own, "")
        networks = [name for name in before if name.startswith("network.")]
        assert all(np.array_equal(before[name], after[name]) for name in networks)
        assert own.num_updates == 1
        own.remove_hook(fail)
        assert "Losses/Custom Loss" not in own.run()
        with pytest.raises(rl_tui.ConfigError, match="hook: must be one that was added"):
            own.remove_hook(fail)


@pytest.mark.parametrize(
    ("returned", "got"),
    [
        (None, "None"),
        (0.5, "0.5"),
        (torch.zeros(3), r"a Tensor of shape \[3\]"),
        (torch.tensor(1), r"a Tensor of shape \[\]"),
    ],
)
def test_loss_must_be_a_scalar(returned: Any, got: str, tmp_path: Path) -> None:
    with learner(tmp_path / "a", "discrete") as own:
        own.on_loss(lambda _: returned)
        with pytest.raises(TypeError, match=f"a custom loss must return a torch scalar of floats, got {got}"):
            own.run()


def test_loss_that_is_not_finite_ends_training(tmp_path: Path) -> None:
    with learner(tmp_path / "a", "discrete") as own:
        own.on_loss(lambda inputs: inputs.entropy * torch.inf)
        with pytest.raises(rl_tui.NonFiniteError, match="the loss is not finite"):
            own.run()


def test_hooks_see_the_custom_loss_and_the_log_names_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    seen = list[rl_tui.TrainStep]()

    def seven(_: rl_tui.LossInputs) -> torch.Tensor:
        return torch.tensor(7.0)

    with caplog.at_level(logging.INFO, "rl_tui"), learner(tmp_path / "a", "discrete") as own:
        own.on_loss(seven)
        own.on_train_step(seen.append)
        assert own.run(2)["Losses/Custom Loss"] == 7
        assert "Losses/Custom Loss" not in own.loss(own.collect())
    assert {float(step.losses["Losses/Custom Loss"]) for step in seen} == {7}
    assert isinstance(seen[0].sample, rl_tui.RolloutMinibatch)
    assert isinstance(seen[0].sample.advantages, np.ndarray)
    lines = [record.message for record in caplog.records if "is added to the loss" in record.message]
    assert len(lines) == 1
    assert "seven is added to the loss of every mini-batch: updates take longer" in lines[0]


def test_trainer_that_takes_no_custom_loss_says_so(tmp_path: Path) -> None:
    with rl_tui.Learner(runs.behavior(trainer_type="sac", hyperparameters={}), "CartPole-v1", tmp_path / "a") as own:
        with pytest.raises(rl_tui.NotSupportedError, match="on_loss: SACTrainer takes no custom loss, PPO does"):
            own.on_loss(lambda inputs: inputs.entropy)
        wrong: Any = 7
        with pytest.raises(rl_tui.ConfigError, match="on_loss: a hook must be a function, got 7"):
            own.on_loss(wrong)
