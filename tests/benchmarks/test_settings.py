"""What is compared is the same task: each side's words for it mean what Stable-Baselines3 does by default."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.config.support import find_unsupported, find_unused, list_warnings
from rl_tui.engine.learning.ppo.settings import PPOSettings
from rl_tui.engine.learning.sac.settings import SACSettings
from tests.benchmarks.ball_settings import BEHAVIOR, TRAINERS
from tests.benchmarks.ball_settings import settings as ball_settings
from tests.benchmarks.comparison import report
from tests.benchmarks.peers import RL_TUI, RL_TUI_BFLOAT16, RL_TUI_MEMORY, RL_TUI_THREADED, SB3, Measurement
from tests.benchmarks.settings import WORKLOADS, configuration


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("is_threaded", [False, True])
def test_every_workload_is_a_configuration_that_can_start(name: str, is_threaded: bool) -> None:
    workload = WORKLOADS[name]
    text = configuration(workload, 1, Path("results"), is_threaded=is_threaded)
    config = parse_config(text.encode(), "bench.yaml")
    assert [*find_unsupported(config), *find_unused(config), *list_warnings(config)] == []
    behavior = config.behaviors[workload.behavior]
    assert behavior.threaded is is_threaded
    assert behavior.max_steps % workload.rollout_steps == 0


def test_the_settings_are_the_defaults_of_stable_baselines3() -> None:
    """Only what a workload names may differ from what `PPO("MlpPolicy", env)` would do."""
    import inspect

    ppo = pytest.importorskip("stable_baselines3").PPO
    defaults = {name: parameter.default for name, parameter in inspect.signature(ppo.__init__).parameters.items()}
    config = parse_config(configuration(WORKLOADS["a"], 1, Path("results")).encode(), "bench.yaml")
    behavior = config.behaviors["CartPole"]
    ours = behavior.hyperparameters
    assert isinstance(ours, PPOSettings)
    assert {ours.learning_rate_schedule, ours.beta_schedule, ours.epsilon_schedule} == {"constant"}
    assert (ours.learning_rate, ours.lambd, ours.epsilon, ours.value_clip, ours.beta) == (
        defaults["learning_rate"],
        defaults["gae_lambda"],
        defaults["clip_range"],
        defaults["clip_range_vf"],
        defaults["ent_coef"],
    )
    assert (ours.value_coefficient, ours.max_grad_norm) == (defaults["vf_coef"], defaults["max_grad_norm"])
    assert behavior.reward_signals["extrinsic"].gamma == defaults["gamma"]


def test_the_settings_of_sac_are_the_defaults_of_stable_baselines3() -> None:
    """With its automatic temperature, which starts at 1 there, too, and a target entropy of minus one per action."""
    import inspect

    sac = pytest.importorskip("stable_baselines3").SAC
    defaults = {name: parameter.default for name, parameter in inspect.signature(sac.__init__).parameters.items()}
    config = parse_config(configuration(WORKLOADS["i"], 1, Path("results")).encode(), "bench.yaml")
    ours = config.behaviors["Pendulum"].hyperparameters
    assert isinstance(ours, SACSettings)
    assert (ours.learning_rate, ours.batch_size, ours.tau, ours.buffer_init_steps, ours.steps_per_update) == (
        defaults["learning_rate"],
        defaults["batch_size"],
        defaults["tau"],
        defaults["learning_starts"],
        defaults["train_freq"],
    )
    assert (ours.learning_rate_schedule, ours.target_q, ours.init_entcoef, ours.target_entropy) == (
        "constant",
        True,
        1.0,
        None,
    )
    assert (defaults["ent_coef"], defaults["target_entropy"], defaults["gradient_steps"]) == ("auto", "auto", 1)


def measured(name: str, factors: Mapping[str, float]) -> list[Measurement]:
    """Three rounds in which a peer is so many times as fast as Stable-Baselines3, on a machine that slows down."""
    return [
        Measurement(
            peer=peer,
            workload=name,
            seed=seed,
            steps=1000,
            seconds=seed / factor,
            cpu_seconds=seed / factor,
            num_updates=1,
            mean_return=100.0 if peer == SB3 else 90.0,
            split={} if peer == SB3 else {"environment": 0.1, "inference": 0.1, "update": 0.1, "other": 0.1},
        )
        for seed in (1, 2, 3)
        for peer, factor in factors.items()
    ]


def test_marks_are_judged_by_the_rounds() -> None:
    """Ratios are taken within a round, so that a machine that slows down from round to round does not count."""
    said = report("a", measured("a", {SB3: 1, RL_TUI: 1.5, RL_TUI_THREADED: 3}), is_quick=False)
    assert "threaded: true: 2 x the throughput reached (3.00); 0.95 x the return MISSED (0.90)" in said


def test_a_memory_is_held_to_its_twin_without_one() -> None:
    text = configuration(WORKLOADS["k"], 1, Path("results"), has_memory=True)
    network = parse_config(text.encode(), "bench.yaml").behaviors["CartPole"].network_settings
    assert network.memory is not None
    assert network.memory.memory_size == 128
    said = report("k", measured("k", {RL_TUI: 1.0, RL_TUI_MEMORY: 0.4}), is_quick=False)
    assert "0.5 x the throughput of its twin MISSED (0.40)" in said


def test_other_arithmetic_is_judged_apart() -> None:
    said = report("j", measured("j", {SB3: 1, RL_TUI: 1.01, RL_TUI_BFLOAT16: 2.5}), is_quick=False)
    assert "threaded: false: 1.05 x the throughput MISSED (1.01)" in said
    assert "bfloat16: 2 x the throughput reached (2.50)" in said


@pytest.mark.parametrize("trainer", TRAINERS)
def test_the_settings_of_balls_are_those_of_the_file_of_mlagents(trainer: str, mlagents_data: Path) -> None:
    file = yaml.safe_load((mlagents_data / "config" / trainer / "3DBall.yaml").read_text())
    assert {BEHAVIOR: ball_settings(trainer)} == file["behaviors"]
