"""`python -m tests.benchmarks.python_learner`: what `Learner.run` costs beyond a loop around the bare trainer.

Three loops learn the same, to the bit, from the same seed, on workloads of settings.py, one after the other in one
process; their order changes from round to round:

    bare    the twenty lines of `train_bare`: a pool, a collector and a trainer, nothing else
    run     `Learner.run`, with summaries and their files, and no checkpoint within the measured steps
    saving  the same with a checkpoint and its exported policies every 25 000 steps

CPU seconds of all threads are compared, from the first measured step to the last update.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from rl_tui import Learner
from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.learning.trainer import Trainer, make_trainer
from rl_tui.engine.running.building import derived_seed, device_of
from rl_tui.engine.running.environments import named_environments
from rl_tui.engine.running.run import limit_threads
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.pools.serial import SerialPool
from tests.benchmarks.processes import limit_cpus
from tests.benchmarks.settings import WORKLOADS, configuration
from tests.benchmarks.tables import table, verdict
from tests.benchmarks.throughput import machine

MARK = 1.02  # of the CPU seconds of the bare loop
UPDATES = {"a": 60, "i": 600}  # measured
WARM_UP = {"a": 2, "i": 20}  # not measured: what is compiled, allocated and imported at first use
ENDLESS = 100_000_000
LOOPS = "bare", "run", "saving"


class Bare:
    """A trainer and what it needs, in the caller's hands."""

    def __init__(self, config: RunConfig):
        (environment,), (name,) = named_environments(config), config.behaviors
        source, seed = environment.source, config.env_settings.seed
        self.pool = SerialPool(source.env, source.make, config.env_settings.num_envs)
        self.pool.start()
        spec, device = self.pool.specs[name], device_of(config)
        self.trainer: Trainer = make_trainer(spec, config.behaviors[name], derived_seed(seed, 0, 0), device)
        policy = self.trainer.make_policy(derived_seed(seed, 0, 1))
        policy.load(self.trainer.weights())
        self.collector = Collector(self.pool, {name: policy}, {name: self.trainer.time_horizon})
        self.name, self.step = name, 0
        self.pool.reset(seed)

    def run(self, updates: int) -> None:
        """Make that many updates, with the experience they need."""
        trainer, collector, name = self.trainer, self.collector, self.name
        target = trainer.num_updates + updates
        while trainer.num_updates < target:
            while not collector.receive(0.1):
                pass
            if collector.is_due(name, trainer.rows_per_update):
                block = collector.drain(name)
                trainer.add(block)
                self.step += block.num_rows
                if trainer.is_ready():
                    trainer.update(self.step)
                    collector.load(name, trainer.weights())
            collector.act()


def measure(workload: str, loop: str, seed: int, updates: int) -> tuple[float, np.ndarray]:
    """CPU microseconds for each step, and the policy's parameters in the end."""
    with TemporaryDirectory(prefix="rl-tui-bench-") as folder:
        config = settings(workload, seed, Path(folder), is_saving=loop == "saving")
        if loop == "bare":
            bare = Bare(config)
            seconds, steps = clocked(bare.run, lambda: bare.step, workload, updates)
            bare.pool.close()
            return 1e6 * seconds / steps, parameters(bare.trainer)
        with Learner(config, None, Path(folder, "run")) as learner:
            seconds, steps = clocked(learner.run, lambda: learner.step, workload, updates)
            return 1e6 * seconds / steps, parameters(learner._learner._trainer)


def settings(workload: str, seed: int, folder: Path, *, is_saving: bool) -> RunConfig:
    """The workload without an end."""
    (name,) = (WORKLOADS[workload].behavior,)
    overrides: dict[str, object] = {f"behaviors.{name}.max_steps": ENDLESS}
    if not is_saving:
        overrides[f"behaviors.{name}.checkpoint_interval"] = -1
    return parse_config(configuration(WORKLOADS[workload], seed, folder).encode(), "bench", overrides)


def clocked(run: Callable[[int], object], step: Callable[[], int], workload: str, updates: int) -> tuple[float, int]:
    """CPU seconds of so many updates after the first few, and their steps."""
    run(WARM_UP[workload])
    first, began = step(), time.process_time()
    run(updates)
    return time.process_time() - began, step() - first


def parameters(trainer: Trainer) -> np.ndarray:
    """All that the trainer has learned, as one array."""
    return np.concatenate([np.ravel(values) for values in trainer.weights().arrays.values()])


def compare(workload: str, rounds: int, updates: int) -> str:
    """The rounds as text, with the median of each loop's ratio to the bare one."""
    rows, ratios, is_same = [], {loop: list[float]() for loop in LOOPS[1:]}, True
    for seed in range(1, rounds + 1):
        shift = seed % len(LOOPS)
        found = {loop: measure(workload, loop, seed, updates) for loop in (*LOOPS[shift:], *LOOPS[:shift])}
        costs = {loop: found[loop][0] for loop in LOOPS}
        is_same &= all(np.array_equal(found[loop][1], found["bare"][1]) for loop in LOOPS)
        for loop, each in ratios.items():
            each.append(costs[loop] / costs["bare"])
        cells = (f"{costs[loop]:,.1f}" for loop in LOOPS)
        rows.append((f"seed {seed}", *cells, *(f"{each[-1]:.3f}" for each in ratios.values())))
    lines = [WORKLOADS[workload].title.rpartition(";")[0] + f"; {updates} updates, rounds: {rounds}", ""]
    lines += [table(("CPU us a step", *LOOPS, *(f"{loop} / bare" for loop in ratios)), rows), ""]
    for loop, each in ratios.items():
        mark = f", at most {MARK}: {verdict(median(each) <= MARK)}" if loop == "run" else ""
        lines.append(f"{loop} / bare {median(each):.3f} (median; {min(each):.3f} to {max(each):.3f}){mark}")
    lines.append(f"weights in the end: {'the same, to the bit' if is_same else 'NOT the same'}")
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> None:
    """Measure the chosen workloads one after the other."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.python_learner",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default=",".join(UPDATES), metavar="a,i", help=f"of {', '.join(UPDATES)}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--updates", type=int, help="instead of those of each workload")
    parser.add_argument("--cpus", type=int, default=2, help="CPUs that everything shares (2), where Linux can")
    arguments = parser.parse_args(words)
    if wrong := [part for part in arguments.only.split(",") if part not in UPDATES]:
        parser.error(f"--only: must be of {', '.join(UPDATES)}, got {wrong[0]}")
    print(machine(limit_cpus(arguments.cpus)), flush=True)
    limit_threads()  # as a Learner does
    for workload in arguments.only.split(","):
        print(f"\n{compare(workload, arguments.rounds, arguments.updates or UPDATES[workload])}", flush=True)


if __name__ == "__main__":
    main()
