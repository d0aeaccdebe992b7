"""What MA-POCA takes: `python -m tests.benchmarks.group_speed [--peer FOLDER]`, one thread each.

a) Updates of MA-POCA and MAPPO beside those of PPO with the same rows, networks and settings; in turns, and of each the
   fastest of its rounds counts. Groups have 3 or 20 agents.
b) simple_spread, the three agents of a copy in a group, beside mlagents 1.1.0 with the same settings: steps of agents
   per second without the time within the environment; in turns, and the median of the ratios of all rounds counts.
   FOLDER, or $MLAGENTS_RUN_PEER, is a virtual environment with mlagents 1.1.0, torch and mpe2.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.trainer import Trainer, make_trainer
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Ending, ObservationSpec, Trajectories
from tests.benchmarks.peer_python import fault_of
from tests.benchmarks.simple_spread import measured
from tests.benchmarks.tables import table, verdict
from tests.learning.rollouts import acted

MARK, PEER_MARK = 2.5, 4.0  # times as long as PPO, for 20 agents; times as fast as mlagents
STEPS, ROUNDS = 24_576, 3
EPISODE = 32  # steps
SIZES = 3, 20  # agents of a group


@dataclass(frozen=True)
class Shape:
    """What agents see, and the networks. rows: about so many of an update."""

    name: str
    seen: tuple[int, ...]
    hidden_units: int
    rows: int

    @property
    def spec(self) -> BehaviorSpec:
        return BehaviorSpec("Team", (ObservationSpec("seen", self.seen),), ActionSpec(0, (5,)))


SHAPES = (
    Shape("30 numbers, 64 units", (30,), 64, 8192),
    Shape("30 numbers, 128 units", (30,), 128, 8192),
    Shape("grid 20x20x6, 256 units", (6, 20, 20), 256, 2048),  # as PushBlockCollab
    Shape("image 40x40x3, 128 units", (3, 40, 40), 128, 2048),
    Shape("image 84x84x3, 256 units", (3, 84, 84), 256, 1024),
)


def trainer_of(trainer: str, shape: Shape) -> Trainer:
    """With three passes over mini-batches of 512 rows."""
    settings = {
        "trainer_type": trainer,
        "hyperparameters": {"batch_size": 512, "buffer_size": shape.rows, "num_epoch": 3},
        "network_settings": {"hidden_units": shape.hidden_units, "num_layers": 2},
    }
    return make_trainer(shape.spec, BehaviorConfig.model_validate(settings), 1, torch.device("cpu"))


def experience(trainer: Trainer, shape: Shape, size: int) -> Trajectories:
    """Whole episodes of whole groups that act in every step."""
    random = np.random.default_rng(0)
    groups = max(1, shape.rows // (size * EPISODE))
    agents, mates = groups * size, groups * size * (size - 1)
    block = acted(trainer.make_policy(1), random, [EPISODE] * agents, shape.spec, ending=Ending.TERMINATED)
    return replace(
        block,
        group_ids=np.arange(agents).repeat(EPISODE) // size,
        step_numbers=np.tile(np.arange(EPISODE), agents),
        group_ended=np.ones(agents, np.bool_),
        group_rewards=random.standard_normal(agents * EPISODE).astype(np.float32),
        next_step_numbers=np.full(agents, EPISODE),
        next_mate_counts=np.full(agents, size - 1),
        next_mate_observations=(random.standard_normal((mates, *shape.seen)).astype(np.float32),),
    )


def updates(shape: Shape, size: int, rounds: int) -> dict[str, float]:
    """Milliseconds of an update for 1,000 rows, by trainer."""
    trainers = {name: trainer_of(name, shape) for name in ("ppo", "mappo", "poca")}
    blocks = {name: experience(trainer, shape, size) for name, trainer in trainers.items()}
    spent: dict[str, list[float]] = {name: [] for name in trainers}
    for _ in range(rounds):
        for name, trainer in trainers.items():
            trainer.add(blocks[name])
            start = time.perf_counter()
            trainer.update(0)
            spent[name].append(1e6 * (time.perf_counter() - start) / blocks[name].num_rows)
    return {name: min(each) for name, each in spent.items()}


def beside_ppo(rounds: int) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Rows of part a, and whether the mark is reached."""
    for shape in SHAPES:
        for size in SIZES:
            found = updates(shape, size, rounds)
            poca, mappo = (found[name] / found["ppo"] for name in ("poca", "mappo"))
            is_reached = size < max(SIZES) or poca <= MARK
            word = "" if size < max(SIZES) else f"{MARK}: {verdict(is_reached)}"
            cells = f"{found['ppo']:,.0f}", f"{mappo:.2f}", f"{poca:.2f}", word
            yield (f"groups of {size}, {shape.name}", *cells), is_reached


def beside_mlagents(python: Path, num_steps: int, rounds: int) -> bool:
    """Prints part b; whether its mark is reached."""
    own, peer = (
        [path, "-m", f"tests.benchmarks.group_speed_{name}"]
        for path, name in ((sys.executable, "run"), (python, "peer"))
    )
    pairs = [(measured(peer, num_steps, seed), measured(own, num_steps, seed)) for seed in range(rounds)]
    ratio = statistics.median(mine["outside"] / other["outside"] for other, mine in pairs)
    rows = [
        (name, *(f"{statistics.median(one[key] for one in each):,.0f}" for key in ("steps_per_second", "outside")))
        for name, each in zip(("mlagents 1.1.0", "rl-tui"), zip(*pairs, strict=True), strict=True)
    ]
    print(table(("simple_spread, MA-POCA", "steps per second", "outside the environment"), rows))
    is_reached = ratio >= PEER_MARK
    print(f"ratio outside the environment: {ratio:.2f}, mark {PEER_MARK}: {verdict(is_reached)}")
    return is_reached


def main() -> int:
    """1 if a mark is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, default=os.environ.get("MLAGENTS_RUN_PEER"), metavar="FOLDER")
    parser.add_argument("--steps", type=int, default=STEPS, help="of part b")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args()
    python = Path(chosen.peer, "bin/python") if chosen.peer else None
    if python and (fault := fault_of(python, "mlagents, mpe2")):
        parser.error(f"--peer: {fault}")
    torch.set_num_threads(1)
    rows, reached = zip(*beside_ppo(chosen.rounds), strict=True)
    print(table(("an update", "PPO, ms for 1,000 rows", "MAPPO", "MA-POCA", "mark"), rows))
    is_faster = python is None or beside_mlagents(python, chosen.steps, chosen.rounds)
    return 0 if all(reached) and is_faster else 1


if __name__ == "__main__":
    sys.exit(main())
