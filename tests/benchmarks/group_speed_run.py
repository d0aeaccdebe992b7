"""One training of rl-tui for group_speed.py: steps and seed as arguments, the result as JSON on stdout."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

import rl_tui
from tests.benchmarks import spread_groups as groups
from tests.benchmarks import spread_world as world


def train(num_steps: int, seed: int) -> None:
    """In this process."""
    agents = {groups.BEHAVIOR: {"agents": "*", "group": True, "common_reward": True}}
    document = {
        "behaviors": groups.behaviors(num_steps),
        "env_settings": {
            "env": "tests.benchmarks.spread_world:make",
            "num_envs": world.COPIES,
            "behaviors": agents,
            "seed": seed,
        },
        "torch_settings": {"device": "cpu"},
    }
    with TemporaryDirectory(prefix="rl-tui-bench-") as folder:
        file = Path(folder, "spread.yaml")
        file.write_text(yaml.safe_dump(document))
        world.forget()
        rl_tui.train(file, quiet=True, results_dir=folder, run_id="bench")


if __name__ == "__main__":
    world.run(train)
