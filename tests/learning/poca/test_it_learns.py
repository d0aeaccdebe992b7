"""MA-POCA and MAPPO learn ML-Agents' world of two agents within its budget, and to be lost for what others earn."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest
import yaml

from rl_tui.engine.session.messages import MetricsReported
from tests.learning.poca.group_on_a_line import BEHAVIOR, SUCCESS, GroupOnALine
from tests.running.runs import configuration, run_to_end

PRESETS = Path(__file__).parents[3] / "config"
STEPS = 3000
SETTINGS = {
    "hyperparameters": {
        "batch_size": 16,
        "buffer_size": 64,
        "learning_rate": 5e-3,
        "learning_rate_schedule": "constant",
    },
    "network_settings": {"num_layers": 1, "hidden_units": 32},
    "max_steps": STEPS,
    "summary_freq": 500,
}


@pytest.mark.parametrize("is_discrete", [True, False])
@pytest.mark.parametrize("trainer", ["poca", "mappo"])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_two_agents_learn_to_reach_their_goals(trainer: str, is_discrete: bool, seed: int, tmp_path: Path) -> None:
    """ML-Agents' mark is 0.9 over the last five; one wrong end of twenty is below it."""
    env = {
        "env": "mlagents:tests.learning.poca.group_on_a_line:GroupOnALine",
        "env_kwargs": {"is_discrete": is_discrete},
        "seed": seed,
    }
    settings = SETTINGS | {"trainer_type": trainer}
    run = run_to_end(configuration(tmp_path, {BEHAVIOR: settings}, env_settings=env))
    assert run.launch.exit_code == 0, run.recent_events()
    assert GroupOnALine.newest is not None
    assert mean(GroupOnALine.newest.final_rewards[-20:]) >= 0.9 * SUCCESS


@pytest.mark.slow
@pytest.mark.parametrize(("trainer", "is_saved"), [("poca", True), ("mappo", True), ("ppo", False)])
def test_one_stays_behind_where_that_is_credited_with_what_others_earn_later(
    trainer: str, is_saved: bool, tmp_path: Path
) -> None:
    """The best possible is 1."""
    preset = yaml.safe_load((PRESETS / "poca/Rescue.yaml").read_text())
    settings = preset["behaviors"]["Rescue"] | {"trainer_type": trainer, "max_steps": 80_000}
    env = preset["env_settings"] | {"seed": 1}
    run = run_to_end(configuration(tmp_path, {"Rescue": settings}, env_settings=env))
    earned = [event.metrics["Environment/Group Cumulative Reward"] for event in run.of(MetricsReported)]
    assert earned[-1] >= 0.9 if is_saved else earned[-1] < 0.6
