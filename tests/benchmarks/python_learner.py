"""`python -m tests.benchmarks.python_learner`: what `Learner.run` costs beyond a loop around the bare trainer.

Three loops learn the same, to the bit, from the same seed, on workloads of settings.py:

    bare    the twenty lines of `Bare.run`: a pool, a collector and a trainer, nothing else
    run     `Learner.run`, with summaries and their files, and no checkpoint within the measured steps
    saving  the same with a checkpoint and its exported policies every 25 000 steps, for (a)

They take turns in one process, a few updates each, so that a machine that slows down for a while favors none. CPU
seconds of all threads are compared, after the first few updates.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from rl_tui import Learner
from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.learning.trainer import Trainer, make_trainer
from rl_tui.engine.running.environments import named_environments
from rl_tui.engine.running.run_setup import derived_seed, device_of
from rl_tui.engine.running.runtime import limit_threads
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.pools.serial import SerialPool
from tests.benchmarks.processes import limit_cpus
from tests.benchmarks.settings import WORKLOADS, configuration
from tests.benchmarks.tables import table, verdict
from tests.benchmarks.throughput import machine

MARK = 1.02  # of the CPU seconds of the bare loop
TURNS = {"a": 12, "i": 12}
TURN = {"a": 10, "i": 2}  # updates; SAC's have as many mini-batches as steps have come
WARM_UP = 10  # updates, not measured: what is compiled, allocated and imported at first use
LOOPS = {"a": ("bare", "run", "saving"), "i": ("bare", "run")}
ENDLESS = 100_000_000


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
        self.name, self.step, self.lacking = name, 0, self.trainer.rows_per_update  # rows until the next update
        self.pool.reset(seed)

    def run(self, updates: int) -> None:
        """Make that many updates, with the experience they need."""
        trainer, collector, name = self.trainer, self.collector, self.name
        target = trainer.num_updates + updates
        while trainer.num_updates < target:
            while not collector.receive(0.1):
                pass
            if collector.is_due(name, self.lacking):
                block = collector.drain(name)
                trainer.add(block)
                self.step, self.lacking = self.step + block.num_rows, self.lacking - block.num_rows
                if trainer.is_ready():
                    trainer.update(self.step)
                    collector.load(name, trainer.weights())
                if self.lacking <= 0:
                    self.lacking = trainer.rows_per_update
            collector.act()


class Clocked:
    """A loop with its CPU seconds and steps so far."""

    def __init__(self, run: Callable[[int], object], step: Callable[[], int], trainer: Trainer):
        self.seconds, self.trainer = 0.0, trainer
        self._run, self._step = run, step
        run(WARM_UP)
        self._first = step()

    def turn(self, updates: int) -> None:
        """Make that many updates."""
        began = time.process_time()
        self._run(updates)
        self.seconds += time.process_time() - began

    @property
    def cost(self) -> float:
        """CPU microseconds for each step."""
        return 1e6 * self.seconds / (self._step() - self._first)


def measure(workload: str, seed: int, turns: int) -> dict[str, Clocked]:
    """Every loop after so many turns."""
    with TemporaryDirectory(prefix="rl-tui-bench-") as folder, ExitStack() as leaving:
        loops: dict[str, Clocked] = {}
        for loop in rotated(LOOPS[workload], seed):  # what is made first has a small advantage
            config = settings(workload, seed, Path(folder), is_saving=loop == "saving")
            if loop == "bare":
                bare = Bare(config)
                leaving.callback(bare.pool.close)
                loops[loop] = Clocked(bare.run, lambda held=bare: held.step, bare.trainer)
            else:
                learner = leaving.enter_context(Learner(config, None, Path(folder, loop)))
                loops[loop] = Clocked(learner.run, lambda held=learner: held.step, learner._learner.trainer)
        for number in range(turns):
            for each in rotated(LOOPS[workload], number):
                loops[each].turn(TURN[workload])
        return loops


def rotated(names: tuple[str, ...], by: int) -> tuple[str, ...]:
    """The same in another order, so that each comes first once."""
    return names[by % len(names) :] + names[: by % len(names)]


def settings(workload: str, seed: int, folder: Path, *, is_saving: bool) -> RunConfig:
    """The workload without an end."""
    name = WORKLOADS[workload].behavior
    overrides: dict[str, object] = {f"behaviors.{name}.max_steps": ENDLESS}
    if not is_saving:
        overrides[f"behaviors.{name}.checkpoint_interval"] = -1
    return parse_config(configuration(WORKLOADS[workload], seed, folder).encode(), "bench", overrides)


def parameters(trainer: Trainer) -> np.ndarray:
    """All that the trainer has learned, as one array."""
    return np.concatenate([np.ravel(values) for values in trainer.weights().arrays.values()])


def compare(workload: str, rounds: int, turns: int) -> str:
    """The rounds as text, with the median of each loop's ratio to the bare one."""
    names, rows, is_same = LOOPS[workload], [], True
    ratios = {loop: list[float]() for loop in names[1:]}
    for seed in range(1, rounds + 1):
        loops = measure(workload, seed, turns)
        for loop, each in ratios.items():
            each.append(loops[loop].cost / loops["bare"].cost)
            is_same &= np.array_equal(parameters(loops[loop].trainer), parameters(loops["bare"].trainer))
        cells = (f"{loops[loop].cost:,.1f}" for loop in names)
        rows.append((f"seed {seed}", *cells, *(f"{each[-1]:.3f}" for each in ratios.values())))
    lines = [f"{WORKLOADS[workload].title.rpartition(';')[0]}; {turns * TURN[workload]} updates", ""]
    lines += [table(("CPU us a step", *names, *(f"{loop} / bare" for loop in ratios)), rows), ""]
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
    parser.add_argument("--only", default=",".join(LOOPS), metavar="a,i", help=f"of {', '.join(LOOPS)}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--turns", type=int, help="instead of those of each workload")
    parser.add_argument("--cpus", type=int, default=2, help="CPUs that everything shares (2), where Linux can")
    arguments = parser.parse_args(words)
    if wrong := [part for part in arguments.only.split(",") if part not in LOOPS]:
        parser.error(f"--only: must be of {', '.join(LOOPS)}, got {wrong[0]}")
    print(machine(limit_cpus(arguments.cpus)), flush=True)
    logging.disable()  # what each Learner warns of
    limit_threads()  # as a Learner does
    for workload in arguments.only.split(","):
        print(f"\n{compare(workload, arguments.rounds, arguments.turns or TURNS[workload])}", flush=True)


if __name__ == "__main__":
    main()
