"""simple_spread with the agents of each copy as a group that earns the mean of what they earn: the settings of
ML-Agents' keys that every trainer has. It needs nothing of rl-tui."""

from __future__ import annotations

from tests.benchmarks import spread_world as world

BEHAVIOR = "Spread"
UPDATE_ROWS = world.COPIES * world.AGENTS * world.ROLLOUT


def hyperparameters() -> dict[str, object]:
    """Of PPO and of MA-POCA."""
    return {
        "batch_size": world.BATCH_SIZE,
        "buffer_size": UPDATE_ROWS,
        "num_epoch": world.EPOCHS,
        "learning_rate": world.LEARNING_RATE,
        "learning_rate_schedule": "constant",
        "beta": world.ENTROPY,
        "epsilon": world.CLIP_RANGE,
        "lambd": world.LAMBDA,
    }


def behaviors(num_steps: int) -> dict[str, object]:
    """The section of this name, for a training of so many steps of agents."""
    return {
        BEHAVIOR: {
            "trainer_type": "poca",
            "hyperparameters": hyperparameters(),
            "network_settings": {"hidden_units": world.HIDDEN_UNITS, "num_layers": 2},
            "reward_signals": {"extrinsic": {"gamma": world.GAMMA}},
            "time_horizon": world.EPISODE,
            "max_steps": num_steps,
            "summary_freq": UPDATE_ROWS,
        }
    }
