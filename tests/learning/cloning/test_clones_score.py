"""Clones earn what their experts do, from fixed seeds, in one thread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.demonstrations.recorded import RecordedDemonstrations
from rl_tui.engine.learning.bc.trainer import BCTrainer
from tests.learning.experts import TASKS, Task
from tests.learning.test_it_learns import train

EPISODES = {"acrobot": 10, "pendulum": 50, "image": 400}  # one of the image is a single step
LEAST = {"acrobot": 0.9, "pendulum": 0.8, "image": 0.9}
MAX_STEPS = {"acrobot": 40_000, "pendulum": 100_000, "image": 20_000}


def settings(max_steps: int, **hyper: object) -> BehaviorConfig:
    return BehaviorConfig.model_validate(
        {
            "trainer_type": "bc",
            "hyperparameters": {"batch_size": 64, "learning_rate": 3e-3} | hyper,
            "network_settings": {"hidden_units": 64, "num_layers": 2, "normalize": True},
            "max_steps": max_steps,
            "time_horizon": 8,
        }
    )


def score_of_clone(
    task: Task, steps: RecordedDemonstrations, max_steps: int, seed: int, device: torch.device, **hyper: object
) -> float:
    """What the clone of these demonstrations earns by its likeliest actions: 0 is chance, 1 the expert."""
    bc = BCTrainer(task.spec, settings(max_steps, demo_path="shown", **hyper), seed, device)
    bc.use_demonstrations({"shown": steps})
    step = 0
    while step < max_steps:
        bc.update(step)
        step += bc.rows_per_update
    return task.score(bc.make_policy(seed, is_greedy=True))


@pytest.mark.learning
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TASKS)
def test_a_clone_earns_what_its_expert_does(name: str, seed: int, tmp_path: Path, torch_device: torch.device) -> None:
    task = TASKS[name]
    steps = task.record(task.expert, EPISODES[name], tmp_path / "shown.demo")
    assert score_of_clone(task, steps, MAX_STEPS[name], seed, torch_device) >= LEAST[name]


@pytest.mark.learning
@pytest.mark.parametrize(
    "name", ["image", *(pytest.param(name, marks=pytest.mark.slow) for name in ("acrobot", "pendulum"))]
)
def test_a_clone_of_permuted_actions_earns_little(name: str, tmp_path: Path, torch_device: torch.device) -> None:
    """Observations and actions are the expert's, but no longer the one's with the other."""
    task = TASKS[name]
    steps = task.record(task.expert, EPISODES[name], tmp_path / "shown.demo")
    random = np.random.default_rng(0)
    random.shuffle(steps.steps.continuous)
    random.shuffle(steps.steps.discrete)
    assert score_of_clone(task, steps, MAX_STEPS[name], 1, torch_device) < 0.3


@pytest.mark.learning
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_a_teacher_needs_fewer_labels_than_demonstrations_have(
    seed: int, tmp_path: Path, torch_device: torch.device
) -> None:
    """As many labels of each, and as many rows that are learned from: of where the student comes, of two episodes."""
    task, num_labels, num_rows = TASKS["pendulum"], 400, 100_000
    shown = task.record(task.expert, 2, tmp_path / "shown.demo")
    assert shown.num_steps == num_labels
    assert score_of_clone(task, shown, num_rows, seed, torch_device, validation=0) < 0.6
    often = {"batch_size": 20, "steps_per_update": 20, "samples_per_update": num_rows // 20}
    config = settings(num_labels, teacher="expert", **often)
    student = train(task.copies(1), config, num_labels, seed, torch_device, teacher=task.expert)
    assert task.score(student.make_policy(seed, is_greedy=True)) >= 0.9
