"""What worker processes that act bring, beside one process and beside workers that are sent every step.

python -m tests.benchmarks.acting_workers [--only cheetah,busy,asleep,pixels,small] [--rounds 3] [--steps 61440]

cheetah: PPO on HalfCheetah-v5 as in part c of `make bench`, with Stable-Baselines3's DummyVecEnv. busy, asleep: 16
copies of an environment whose steps compute, or sleep, for a millisecond, with one epoch of one mini-batch, so that
collecting is what takes time. pixels: images of 84 x 84 x 3 through the convolutions of Mnih et al., steps of two
milliseconds, and one epoch. small: CartPole, where workers cost more than they bring. All ways in turns, a seed for
each round; ratios are of the same round.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import numpy as np
import yaml
from gymnasium import spaces

from rl_tui.engine.sampling.environments.toys.frames import Frames
from rl_tui.engine.session.messages import Envelope, EpisodesFinished
from tests.benchmarks.comparison import WITH_THESE_TESTS
from tests.benchmarks.peers import SB3
from tests.benchmarks.processes import run_python
from tests.benchmarks.runs import read_events, throughput
from tests.benchmarks.settings import WORKLOADS, Workload, configuration
from tests.benchmarks.tables import table

STEP_SECONDS, FRAME_SECONDS = 0.001, 0.002
BUSY, BUSY_FRAMES = "tests.benchmarks.acting_workers:Busy", "tests.benchmarks.acting_workers:BusyFrames"


def compute(seconds: float) -> None:
    """Use so much of this thread's time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        continue


class Busy(gymnasium.Env[Any, Any]):
    """Observes one number; each step computes for a millisecond of this process's time, or sleeps."""

    def __init__(self, sleeps: bool = False) -> None:
        self.observation_space, self.action_space = spaces.Box(-1, 1, (1,)), spaces.Box(-1, 1, (1,))
        self._sleeps = sleeps
        self._count = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._count += 1
        if self._sleeps:
            time.sleep(STEP_SECONDS)
        else:
            compute(STEP_SECONDS)
        return np.zeros(1, np.float32), 0.0, self._count % 200 == 0, False, {}


class BusyFrames(Frames):
    """Images whose steps compute for two milliseconds."""

    def step(self, action: np.int64) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        compute(FRAME_SECONDS)
        return super().step(action)


@dataclass(frozen=True)
class Way:
    """How it is run: in this process without workers."""

    name: str
    num_workers: int
    is_threaded: bool = False
    act_in: str = "auto"
    num_ranks: int = 1


HERE, HERE_THREADED = Way("one process", 0), Way("one process, threaded", 0, True)
SENT = Way("2 workers, act_in: main", 2, act_in="main")
TWO, TWO_THREADED = Way("2 workers", 2), Way("2 workers, threaded", 2, True)
ONE, EIGHT = Way("1 worker", 1), Way("8 workers", 8)
PARTS: Mapping[str, tuple[str, Mapping[str, object], Sequence[Way]]] = {
    "cheetah": ("c", {}, (HERE, HERE_THREADED, SENT, TWO, TWO_THREADED)),
    "busy": ("c", {"env": BUSY, "num_envs": 16}, (ONE, TWO)),
    "asleep": (
        "c",
        {"env": BUSY, "env_kwargs": {"sleeps": True}, "num_envs": 16},
        (ONE, TWO, EIGHT),
    ),
    "pixels": ("j", {"env": BUSY_FRAMES}, (HERE, SENT, TWO, TWO_THREADED)),
    "small": ("a", {}, (HERE, TWO)),
}


@dataclass(frozen=True)
class Measured:
    """Of one run. last_return: the mean of the episodes that ended in the last quarter of the steps; NaN where it is
    not known."""

    steps_per_second: float
    last_return: float = math.nan


def measure(workload: Workload, environment: Mapping[str, object], way: Way, seed: int) -> Measured:
    """One run of the program."""
    with TemporaryDirectory(prefix="rl-tui-bench-") as name:
        folder = Path(name)
        document = yaml.safe_load(configuration(workload, seed, folder / "results", is_threaded=way.is_threaded))
        document["env_settings"] |= {"num_workers": way.num_workers, "act_in": way.act_in, **environment}
        (folder / "bench.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        words = ("-m", "rl_tui", str(folder / "bench.yaml"), "--no-ui", "--ranks", str(way.num_ranks))
        run_python(*words, folder=folder, variables=WITH_THESE_TESTS)
        events = read_events(folder)
    return Measured(throughput(events), _last_return(events, workload.total_steps))


def _last_return(events: Sequence[Envelope], total_steps: int) -> float:
    ended = [one.event for one in events if isinstance(one.event, EpisodesFinished)]
    last = [event for event in ended if event.step > 0.75 * total_steps]
    count = sum(event.count for event in last)
    return sum(event.mean_return * event.count for event in last) / count if count else math.nan


def beside(workload: Workload, seed: int) -> Measured:
    """Stable-Baselines3."""
    rollouts = workload.total_steps // workload.rollout_steps
    words = ["-m", "tests.benchmarks.peers", SB3, workload.name, "--seed", str(seed), "--rollouts", str(rollouts)]
    with TemporaryDirectory(prefix="rl-tui-bench-") as name:
        said = json.loads(run_python(*words, folder=Path(name), variables=WITH_THESE_TESTS).splitlines()[-1])
    return Measured(said["steps"] / said["seconds"])


def main(words: Sequence[str] | None = None) -> None:
    """Measure the chosen parts, and print a table of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.acting_workers", description=__doc__)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=61_440)
    chosen = parser.parse_args(words)
    for part in chosen.only:
        name, environment, ways = PARTS[part]
        workload = WORKLOADS[name]
        assert isinstance(workload, Workload)
        workload = replace(workload, total_steps=chosen.steps // workload.rollout_steps * workload.rollout_steps)
        if environment:
            workload = replace(workload, num_epochs=1, batch_size=workload.rollout_steps)
        names = ([SB3] if part == "cheetah" else []) + [way.name for way in ways]
        found: dict[str, list[Measured]] = {each: [] for each in names}
        for seed in range(1, chosen.rounds + 1):
            if part == "cheetah":
                found[SB3].append(beside(workload, seed))
            for way in ways:
                found[way.name].append(measure(workload, environment, way, seed))
        rows = [row_of(each, own, found[names[0]]) for each, own in found.items()]
        print(f"\n{part}: {workload.total_steps:,} steps, rounds: {chosen.rounds}", flush=True)
        print(table(("", "steps/s", f"x {names[0]}", "min .. max", "last returns"), rows), flush=True)


def row_of(name: str, own: Sequence[Measured], first: Sequence[Measured]) -> tuple[str, ...]:
    """Its name, the median speed, and that of its ratios to the first way; their bounds; the return of each round."""
    ratios = [one.steps_per_second / base.steps_per_second for one, base in zip(own, first, strict=True)]
    returns = " ".join("-" if math.isnan(one.last_return) else f"{one.last_return:.0f}" for one in own)
    speed = median(one.steps_per_second for one in own)
    return name, f"{speed:,.0f}", f"{median(ratios):.2f}", f"{min(ratios):.2f} .. {max(ratios):.2f}", returns


if __name__ == "__main__":
    main()
