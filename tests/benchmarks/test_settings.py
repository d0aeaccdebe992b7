"""What is compared is the same task: each side's words for it mean what Stable-Baselines3 does by default."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config import find_unsupported, list_warnings, parse_config, without_effect
from engine.settings import PPOSettings
from tests.benchmarks.comparison import report
from tests.benchmarks.peers import PEERS, RL_TUI_THREADED, SB3, Measurement
from tests.benchmarks.settings import WORKLOADS, configuration


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("is_threaded", [False, True])
def test_every_workload_is_a_configuration_that_can_start(name: str, is_threaded: bool) -> None:
    workload = WORKLOADS[name]
    text = configuration(workload, 1, Path("results"), is_threaded=is_threaded)
    config = parse_config(text.encode(), "bench.yaml")
    assert [*find_unsupported(config), *without_effect(config), *list_warnings(config)] == []
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


def test_marks_are_judged_by_the_rounds() -> None:
    """Ratios are taken within a round, so that a machine that slows down from round to round does not count."""
    speeds = {
        (peer, seed): factor / seed for seed in (1, 2, 3) for peer, factor in zip(PEERS, (1, 1.5, 3), strict=True)
    }
    measurements = [
        Measurement(
            peer=peer,
            workload="a",
            seed=seed,
            steps=1000,
            seconds=1 / speed,
            cpu_seconds=1 / speed,
            num_updates=1,
            mean_return=100.0 if peer == SB3 else 90.0,
            split={} if peer == SB3 else {"environment": 0.1, "inference": 0.1, "update": 0.1, "other": 0.1},
        )
        for (peer, seed), speed in speeds.items()
    ]
    assert any(m.peer == RL_TUI_THREADED for m in measurements)
    said = report("a", measurements, is_quick=False)
    assert "threaded: true: 2 x the throughput reached (3.00); 0.95 x the return MISSED (0.90)" in said
