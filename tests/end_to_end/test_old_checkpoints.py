"""Runs of an earlier version are resumed by this one, with what they had learned.

tests/storage/checkpoints_of_0_1 holds two whole run folders of rl-tui 0.1.0 and, in outputs.json, what their trainers
gave when they were restored then. Nothing in it is ever rewritten: see its README.md.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from rl_tui.engine import registry
from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.running.environments import settings_of
from rl_tui.engine.running.restoring import load_trainer
from rl_tui.engine.session.messages import BehaviorStarted, CheckpointSaved, LogEmitted, ProgressReported, RunStarted
from rl_tui.engine.storage.checkpoints import CheckpointStore
from tests.learning.rollouts import Simulation
from tests.running.runs import run_to_end

OLD = Path(__file__).parents[1] / "storage/checkpoints_of_0_1"
OUTPUTS = json.loads((OLD / "outputs.json").read_text())
BEHAVIORS = {"ppo": "CartPole", "sac": "Line"}
MORE_STEPS = 512
# What 0.1.0 computed by another formula: with discrete actions, its values contained their entropy.
OTHER_FORMULA = {"ppo": (), "sac": ("Losses/Policy Loss", "Losses/Value Loss", "Policy/Extrinsic Value")}


@pytest.fixture(params=BEHAVIORS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the run's folder."""
    return Path(shutil.copytree(OLD / request.param, tmp_path / request.param))


def resumed(run: Path) -> RunConfig:
    """The configuration that the run wrote, to resume it in its folder for some more steps."""
    document = yaml.safe_load((run / "configuration.yaml").read_text())
    document["behaviors"][BEHAVIORS[run.name]]["max_steps"] += MORE_STEPS
    document["checkpoint_settings"] |= {"resume": True, "results_dir": str(run.parent)}
    return parse_config(yaml.safe_dump(document).encode(), "configuration.yaml")


def outputs(run: Path) -> dict[str, list[float]]:
    """What the newest checkpoint gives: what its policy does for four agents in 16 steps, and the losses there."""
    name = BEHAVIORS[run.name]
    store = CheckpointStore(run / name / "checkpoints", name, 0)
    newest = store.newest_valid()
    assert newest.path is not None, newest.skipped
    state, checkpoint = store.load(newest.path)
    assert checkpoint.spec is not None
    settings = settings_of(resumed(run), name)
    made = registry.implementation("trainers", settings.trainer_type)
    trainer: Any = made(checkpoint.spec, settings, 0, torch.device("cpu"))
    load_trainer(trainer, state, checkpoint)
    block = Simulation(trainer.make_policy(3), checkpoint.spec, 4, 16, seed=5).run(16)
    arrays = {
        "num_updates": trainer.num_updates,
        "continuous": block.continuous_actions,
        "discrete": block.discrete_actions,
        "log_probs": block.log_probs,
        **trainer.loss(block),
    }
    return {key: np.ravel(array).tolist() for key, array in arrays.items()}


def test_what_was_learned_gives_the_same_actions_and_losses(run: Path) -> None:
    found, expected = outputs(run), OUTPUTS[run.name]
    assert found.keys() == expected.keys()
    for key in found.keys() - OTHER_FORMULA[run.name]:
        values = found[key]
        assert values == pytest.approx(expected[key], rel=1e-6, abs=1e-6), key


def test_run_goes_on_where_it_stopped(run: Path) -> None:
    name, (num_updates,) = BEHAVIORS[run.name], OUTPUTS[run.name]["num_updates"]
    before = checkpoints_in(run)
    second = run_to_end(resumed(run))
    assert second.launch.exit_code == 0, second.recent_events()
    assert [event.resumed for event in second.of(RunStarted)] == [True]
    assert [event.step for event in second.of(BehaviorStarted)] == [before[-1]]
    assert second.of(CheckpointSaved)[-1].step >= before[-1] + MORE_STEPS
    progress = second.of(ProgressReported)
    assert progress[0].num_updates == num_updates < progress[-1].num_updates
    logged = [(event.level, event.message) for event in second.of(LogEmitted) if event.source == name]
    assert not [message for level, message in logged if level in ("warning", "error")]
    assert any(message.startswith(f"resumed at step {before[-1]}:") for _, message in logged)
    loaded = ("info", f"loaded {run / name / 'replay_buffer.safetensors'}")
    assert (loaded in logged) == (run.name == "sac")
    assert checkpoints_in(run) == [*before, *(event.step for event in second.of(CheckpointSaved))]


def checkpoints_in(run: Path) -> list[int]:
    """The steps of the checkpoints that the run lists, oldest first."""
    listed = json.loads((run / "run_logs/training_status.json").read_text())[BEHAVIORS[run.name]]["checkpoints"]
    return [one["steps"] for one in listed]
