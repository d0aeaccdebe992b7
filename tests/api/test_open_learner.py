"""The networks and optimizers of a learner, which a program may read and write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rl_tui
from tests.api.test_policies import Puzzle
from tests.running import runs
from tests.running.runs import equal

MEMORY = {"memory_size": 8, "sequence_length": 8}
SAC = {"trainer_type": "sac", "hyperparameters": {"batch_size": 16, "buffer_size": 400, "buffer_init_steps": 32}}
KINDS: Mapping[str, tuple[Any, dict[str, Any]]] = {
    "ppo in numpy": ("Pendulum-v1", {}),
    "ppo with memory": ("CartPole-v1", {"network_settings__memory": MEMORY}),
    "ppo in torch": (Puzzle, {}),
    "sac in numpy": ("Pendulum-v1", SAC),
    "sac in torch": (Puzzle, SAC),
}


def learner(kind: str, folder: Path, seed: int = 1, **changes: Any) -> rl_tui.Learner:
    env, own = KINDS[kind]
    settings = runs.behavior(**{"export_policies": ["raw"], **own, **changes})
    return rl_tui.Learner(settings, env, folder, seed=seed)


def state(of: rl_tui.Learner) -> dict[str, np.ndarray[Any, Any]]:
    return of._learner.trainer.state().tensors


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_into_modules_and_optimizers_is_what_trains(kind: str, tmp_path: Path) -> None:
    with learner(kind, tmp_path / "a") as written, learner(kind, tmp_path / "b", 2) as other:
        other.run(2)
        block = other.collect()
        for name, module in other.modules.items():
            written.modules[name].load_state_dict(module.state_dict())
        with torch.no_grad():
            for name, optimizer in other.optimizers.items():
                own = written.optimizers[name]
                for parameter, moment in optimizer.exp_avg.items():
                    own.parameters[parameter].copy_(optimizer.parameters[parameter])
                    own.exp_avg[parameter].copy_(moment)
                    own.exp_avg_sq[parameter].copy_(optimizer.exp_avg_sq[parameter])
                assert optimizer.step > own.step == 0
        ours, theirs = state(written), state(other)
        trained = [name for name in ours if name.split(".")[0] in ("network", "actor", "q", "value", "target")]
        assert len(trained) > 5
        for name in trained:
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
        if "memory" not in kind:  # what the critic remembers of each agent is its own
            assert written.loss(block) == pytest.approx(other.loss(block), rel=1e-4, abs=1e-5)
        before = {name: parameter.clone() for name, parameter in written.modules["actor"].named_parameters()}
        written.run(1)
        assert any((before[name] != p).any() for name, p in written.modules["actor"].named_parameters())


def test_parameters_written_by_a_hook_are_trained_on_and_undone_with_their_update(tmp_path: Path) -> None:
    with learner("ppo in numpy", tmp_path / "a", hyperparameters__num_epoch=2) as own:
        before, calls = state(own), iter(range(5))

        def clip(_: rl_tui.TrainStep) -> None:
            for parameter in own.modules["actor"].parameters():
                parameter.data.clamp_(-0.01, 0.01)
            if next(calls) == 2:
                raise StopIteration

        own.on_train_step(clip)
        with pytest.raises(StopIteration):
            own.run()
        assert equal(state(own), before)
        own.remove_hook(clip)
        calls = iter(range(3, 100))
        own.on_train_step(clip)
        own.run()
        assert all(abs(array).max() <= np.float32(0.01) for array in own.weights().values())


def test_optimizer_begins_again(tmp_path: Path) -> None:
    with learner("ppo in numpy", tmp_path / "a") as own:
        own.run(2)
        adam = own.optimizers["network"]
        assert adam.step > 0
        assert any(moment.any() for moment in adam.exp_avg.values())
        adam.reset()
        assert adam.step == 0
        found = state(own)
        assert not any(array.any() for name, array in found.items() if ".adam_" in name)
        assert own._learner.trainer.state().values["network"] == {"adam_steps": 0}
        own.run(1)
        assert adam.step > 0


def test_modules_have_names_and_belong_to_an_open_learner(tmp_path: Path) -> None:
    with learner("ppo in numpy", tmp_path / "a", hyperparameters__shared_critic=True) as own:
        assert list(own.modules) == ["actor", "values"]
    with pytest.raises(rl_tui.RlTuiError, match="closed"):
        _ = own.modules
    with learner("sac in numpy", tmp_path / "b") as other:
        assert list(other.modules) == ["actor", "q", "value", "target"]
        assert list(other.optimizers) == ["actor", "q", "value", "temperature"]
