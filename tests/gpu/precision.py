"""What TF32 gains and costs: the time of an update and the error of its losses, for small and large networks.

An update of PPO on a fixed rollout, from the same parameters each time. The error is that of its losses, relative to
the CPU's, the largest of all of them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from statistics import median

import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec
from tests.benchmarks.tables import table
from tests.devices import precision
from tests.learning.rollouts import Simulation

AGENTS, STEPS, ROUNDS = 32, 64, 20
PRECISIONS = {  # by name: see tests/devices.py
    "float32": ("highest", False),
    "as torch computes by default": ("highest", True),
    "TF32": ("high", True),
}
VECTORS = ObservationSpec("speed", (64,))
NETWORKS: Mapping[str, tuple[ObservationSpec, Mapping[str, object]]] = {
    "2 layers of 64": (VECTORS, {"hidden_units": 64, "num_layers": 2}),
    "2 layers of 256": (VECTORS, {"hidden_units": 256, "num_layers": 2}),
    "3 layers of 1024": (VECTORS, {"hidden_units": 1024, "num_layers": 3}),
    "memory of 256": (VECTORS, {"hidden_units": 256, "memory": {"sequence_length": 16, "memory_size": 256}}),
    "nature_cnn, 84x84x3": (
        ObservationSpec("camera", (84, 84, 3), "uint8"),
        {"hidden_units": 512, "num_layers": 1, "vis_encode_type": "nature_cnn"},
    ),
}


def trainer(network: str, device: torch.device) -> PPOTrainer:
    """A new one, with the same parameters on every device."""
    observation, settings = NETWORKS[network]
    config = BehaviorConfig.model_validate(
        {
            "hyperparameters": {"batch_size": 256, "buffer_size": AGENTS * STEPS // 2, "num_epoch": 1},
            "network_settings": dict(settings),
            "time_horizon": STEPS,
        }
    )
    return PPOTrainer(BehaviorSpec("Walker", (observation,), ActionSpec(4)), config, 0, device)


def measure(network: str, device: torch.device, rounds: int) -> tuple[dict[str, float], float]:
    """The losses of the first update, and the median of the seconds of the later ones."""
    made = trainer(network, device)
    block = Simulation(made.make_policy(0), made._spec, AGENTS, STEPS).run(STEPS)
    first: dict[str, float] = {}
    seconds = []
    for number in range(rounds + 1):
        while not made.is_ready():
            made.add(block)
        start = time.perf_counter()
        reported = made.update(number)  # ends with what it reports, which is waited for
        seconds.append(time.perf_counter() - start)
        first = first or dict(reported)
    return first, median(seconds[1:])


def main(words: Sequence[str] | None = None) -> None:
    """Measure every network in every precision, and print one table."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.precision", description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="see that it works")
    arguments = parser.parse_args(words)
    rounds = 1 if arguments.quick else ROUNDS
    rows = []
    for network in NETWORKS:
        expected, _ = measure(network, torch.device("cpu"), 1)
        base = None
        for name, how in PRECISIONS.items():
            with precision(*how):
                found, seconds = measure(network, torch.device(arguments.device), rounds)
            base = base or seconds
            worst = max(abs(found[tag] - value) / max(abs(value), 1e-3) for tag, value in expected.items())
            rows.append((network, name, f"{seconds * 1000:.1f}", f"{base / seconds:.2f}", f"{worst:.1e}"))
    head = ("network", "precision", "ms an update", "x float32", "error of the losses")
    print(f"Precision: an update of {AGENTS * STEPS} rows, mini-batches of 256, {rounds} rounds\n\n{table(head, rows)}")


if __name__ == "__main__":
    main()
