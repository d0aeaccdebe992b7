"""Runs that learn from demonstrations beside experience: where the files are, what must fit, and what is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.demonstrations.file_writer import DemonstrationWriter, Episode
from rl_tui.engine.errors import DemonstrationError
from rl_tui.engine.running.preflight import refusals, require_startable
from rl_tui.engine.session.messages import CheckpointSaved, LogEmitted, MetricsReported, RunStateChanged
from rl_tui.engine.specs import TERMINATED, ActionSpec, BehaviorSpec, ObservationSpec
from tests.running.runs import behavior, configuration, ending, equal, run_to_end, tensors_of

SEEN = (ObservationSpec("side", (1,)), ObservationSpec("position", (1,)))  # of toy:line


def write(path: Path, num_choices: int = 3) -> str:
    """Three episodes of four steps to the side that is shown."""
    random = np.random.default_rng(1)
    with DemonstrationWriter(path, BehaviorSpec("Toy", SEEN, ActionSpec(0, (num_choices,))), "sides") as writer:
        for side in (-1.0, 1.0, 1.0):
            sides, places = np.full((5, 1), side, np.float32), random.random((5, 1), np.float32)
            chosen = np.full((4, 1), 0 if side < 0 else num_choices - 1)
            columns: dict[str, Any] = {"observations": (sides, places), "discrete": chosen}
            columns |= {"continuous": np.zeros((4, 0), np.float32), "rewards": np.ones(4, np.float32)}
            writer.write(Episode(**columns, ending=TERMINATED))
    return str(path)


def imitating(folder: Path, shown: str, changes: Any = None, **settings: Any) -> RunConfig:
    """Curiosity, RND and GAIL beside the environment's reward, and cloning."""
    signals: dict[str, Any] = {"extrinsic": {}, "curiosity": {}, "rnd": {}}
    signals["gail"] = {"demo_path": shown, "use_actions": True}
    for signal in ("curiosity", "rnd", "gail"):
        signals[signal]["network_settings"] = {"hidden_units": 8, "num_layers": 1}
    cloning = {"demo_path": shown, "strength": 0.5}
    one = behavior(reward_signals=signals, behavioral_cloning=cloning, **settings)
    return configuration(folder, {"Toy": one}, **(changes or {}))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("trainer", ["ppo", "sac"])
def test_a_run_learns_from_all_of_them_at_once(trainer: str, workers: int, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"trainer_type": trainer}
    if trainer == "sac":
        settings["hyperparameters"] = {"batch_size": 32, "buffer_size": 500, "steps_per_update": 32}
    changes = {"env_settings": {"num_workers": workers}}
    run = run_to_end(imitating(tmp_path, write(tmp_path / "a.demo"), changes, **settings))
    assert run.launch.exit_code == 0, ending(run)
    (line,) = (line.message for line in run.of(LogEmitted) if line.message.startswith("demonstrations: "))
    assert line == f"demonstrations: 12 steps in 3 episodes of {tmp_path / 'a.demo'}"
    tags = set().union(*(event.metrics for event in run.of(MetricsReported)))
    streams = {"Extrinsic", "Curiosity", "Rnd", "Gail"}
    assert tags >= {f"Policy/{stream} Reward" for stream in streams}
    assert tags >= {f"Policy/{stream} Value{' Estimate' if trainer == 'ppo' else ''}" for stream in streams}
    assert tags >= {"Losses/Curiosity Forward Loss", "Losses/Curiosity Inverse Loss", "Losses/RND Loss"}
    assert tags >= {"Losses/GAIL Loss", "Policy/GAIL Expert Estimate", "Losses/Pretraining Loss"}


def test_runs_that_go_on_from_the_same_one_end_the_same(tmp_path: Path) -> None:
    """Nothing of a signal or of cloning depends on anything else than the seed, and all of it is saved."""
    shown, ends = write(tmp_path / "a.demo"), []
    (first,) = run_to_end(imitating(tmp_path, shown)).of(CheckpointSaved)[-1:]
    for _ in range(2):
        flags = {"checkpoint_settings": {"initialize_from": "run", "run_id": "b", "force": True}}
        ends.append(tensors_of(Path(run_to_end(imitating(tmp_path, shown, flags)).of(CheckpointSaved)[-1].path)))
    assert equal(*ends)
    before = tensors_of(Path(first.path))
    moved = {name.split(".")[1] for name, array in ends[0].items() if not np.array_equal(array, before[name])}
    assert moved >= {"reward_curiosity", "reward_rnd", "reward_gail", "behavioral_cloning"}


def test_demonstrations_that_are_missing_are_named_before_anything_starts(tmp_path: Path) -> None:
    config = imitating(tmp_path, str(tmp_path / "no.demo"))
    with pytest.raises(DemonstrationError, match=r"behaviors.Toy.reward_signals.gail.demo_path: .*no.demo: must be a"):
        require_startable(config)
    (line,) = refusals(config)
    assert "no.demo" in line
    run = run_to_end(config)
    assert run.launch.exit_code == 2
    assert run.of(RunStateChanged)[-1].reason == line


def test_demonstrations_of_another_behavior_are_refused(tmp_path: Path) -> None:
    run = run_to_end(imitating(tmp_path, write(tmp_path / "other.demo", num_choices=4)))
    assert run.launch.exit_code == 2
    reason = run.of(RunStateChanged)[-1].reason
    assert reason.startswith("behaviors.Toy.reward_signals.gail.demo_path: ")
    assert "must have branches of [3] choices, got [4]" in reason
