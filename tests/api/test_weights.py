"""Weights that go out of a learner and into one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

import rl_tui
from tests.running import runs

SAC = {"trainer_type": "sac", "hyperparameters": {"batch_size": 16, "buffer_size": 400, "buffer_init_steps": 64}}


def behavior(**changes: Any) -> dict[str, Any]:
    """As the others, with one quick export."""
    return runs.behavior(**{"export_policies": ["raw"], "network_settings__normalize": True, **changes})


def learner(folder: Path, seed: int = 1, env: str = "Pendulum-v1", **keywords: Any) -> rl_tui.Learner:
    return rl_tui.Learner(keywords.pop("settings", behavior()), env, folder, seed=seed, **keywords)


def assert_equal(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(theirs[name], array, err_msg=name)


@pytest.mark.parametrize("settings", [behavior(), behavior(**SAC)], ids=["ppo", "sac"])
def test_weights_go_into_another_learner_and_act_at_once(settings: dict[str, Any], tmp_path: Path) -> None:
    with learner(tmp_path / "a", settings=settings) as first, learner(tmp_path / "b", 2, settings=settings) as second:
        first.run(3)
        second.run(1)
        block = second.collect()
        weights, before = first.weights(), second.weights()
        assert any((before[name] != array).any() for name, array in weights.items())
        second.load_weights({name: torch.from_numpy(array).double() for name, array in weights.items()})
        assert_equal(second.weights(), weights)
        seen = block.observations[0]
        np.testing.assert_array_equal(second.policy().act(seen), first.policy().act(seen))
        after = second.collect()
        assert second._own.policy.version == second._learner.weights.version, "the policy that collects"
        if settings["trainer_type"] == "ppo":
            given = first.policy().evaluate(after.observations[0], np.clip(after.continuous_actions, -3, 3) / 3 * 2)
            inside = (abs(after.continuous_actions) < 3).all(1)
            rows = slice(len(inside) - 5, None)  # the newest, which these weights have chosen
            np.testing.assert_allclose(
                given.log_probs[rows][inside[rows]], after.log_probs[rows][inside[rows]], atol=1e-3
            )
        second.run(1)
        assert (second.weights()["head.weight"] != weights["head.weight"]).any()
        weights["head.weight"][:] = 7.0
        assert (first.weights()["head.weight"] != 7.0).all(), "a copy"


def test_loaded_weights_are_saved_and_exported(tmp_path: Path) -> None:
    with learner(tmp_path / "a") as first:
        first.run(1)
        first.save()
        first.load_weights({name: array * 0.5 for name, array in first.weights().items()})
        weights = first.weights()
        raw = first.export()["raw"]
    assert_equal(safetensors.numpy.load_file(raw), weights)
    with learner(tmp_path / "a") as again:
        assert_equal(again.weights(), weights)


def test_weights_of_another_network_are_refused_with_all_that_is_wrong(tmp_path: Path) -> None:
    with learner(tmp_path / "a") as first:
        own = first.weights()
        wrong: dict[str, Any] = dict(own)
        del wrong["log_sigma"]
        wrong |= {"head.bias": np.zeros(7), "head.weight": "zeros", "tail.weight": np.zeros(3)}
        wrong["normalizer.mean"] = np.full(3, np.nan)
        message = (
            r"^weights: must be those of this policy:\n  missing: log_sigma \[1\]\n  unknown: tail.weight\n(.|\n)*"
            r"  head.weight: must be an array of numbers, got a str\n  head.bias: must be \[1\], got \[7\]\n"
            r"  normalizer.mean: must be finite numbers$"
        )
        with pytest.raises(rl_tui.ConfigError, match=message):
            first.load_weights(wrong)
        with pytest.raises(rl_tui.ConfigError, match="weights: must be a mapping from names to arrays, got a list"):
            first.load_weights([])  # type: ignore[arg-type]
        assert_equal(first.weights(), own)


def test_hook_cannot_load_weights(tmp_path: Path) -> None:
    with learner(tmp_path / "a") as first:
        first.on_train_step(lambda _: first.load_weights(first.weights()))
        with pytest.raises(rl_tui.RlTuiError, match="a hook cannot load weights"):
            first.run()


def test_learner_begins_with_a_checkpoint_a_run_or_a_raw_policy(tmp_path: Path) -> None:
    with learner(tmp_path / "a", behavior="Walker") as first:
        first.run(3)
        checkpoint, raw, weights = first.save(), first.export()["raw"], first.weights()
        state = first._learner.trainer.state()
    for name, origin in (("checkpoint", checkpoint), ("run", tmp_path / "a"), ("raw", str(raw))):
        with learner(tmp_path / name, 2, initialize_from=origin) as second:
            assert (second.step, second.resumed_from) == (0, None)
            assert_equal(second.weights(), weights)
            own = second._learner.trainer.state()
            values = {key for key in state.tensors if "adam_mean" in key or key.endswith("values.weight")}
            is_whole = all(np.array_equal(own.tensors[key], state.tensors[key]) for key in values)
            assert is_whole == (name != "raw"), "a policy has no critic and no optimizer"
            normalizer = own.values["normalizer"]
            assert normalizer == (state.values["normalizer"] if is_whole else {"steps": first.step})
            second.run(1)
            step = second.step
        with learner(tmp_path / name, 2, initialize_from=origin) as second:
            assert second.step == step, "it continues"


def test_origin_that_does_not_fit_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    with learner(tmp_path / "a", env="CartPole-v1") as first:
        first.run(1)
        raw = first.export()["raw"]
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"nothing")
    wrong: list[tuple[Any, type[rl_tui.RlTuiError], str]] = [
        (raw, rl_tui.CheckpointError, r"CartPole-\d+-raw.safetensors: weights: must be those of this policy:\n  miss"),
        (damaged, rl_tui.ExportError, r"damaged.safetensors: .*cannot be read"),
        (tmp_path / "a", rl_tui.CheckpointError, "its checkpoint was trained with"),
        (tmp_path / "none", rl_tui.CheckpointError, "none: no such checkpoint, folder of a run, or raw policy"),
        (7, rl_tui.ConfigError, "initialize_from: must be a path, got 7"),
    ]
    for origin, kind, message in wrong:
        with pytest.raises(kind, match=message):
            learner(tmp_path / "b", initialize_from=origin)
        assert not (tmp_path / "b").exists()
