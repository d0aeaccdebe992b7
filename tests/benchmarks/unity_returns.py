"""What is learned in Unity players, beside the same task without them.

python -m tests.benchmarks.unity_returns [--trainers ppo,sac] [--seeds 1,2,3] [--json PATH]

Both train 3DBall with ML-Agents' own settings: in four stand-in players, and in four copies of the same world as an
environment in the training process. Every POLICY_STEPS steps the exported policy plays the same 100 new episodes. A
run's mark is the mean return of all its policies, so that slower learning counts, too. The task is

    solved   if some policy of every run reaches SOLVED
    equal    if the means over the seeds differ by at most MOST_ERRORS standard errors of that difference
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import numpy as np

from tests.benchmarks.ball_settings import BEHAVIOR, TRAINERS, configuration
from tests.benchmarks.processes import ROOT, run_python
from tests.benchmarks.tables import standard_error, table, verdict
from tests.unity_player.ball import MAX_STEPS, Balls
from tests.unity_player.executable import make_player

PLAYERS, WITHOUT = "4 players", "without players"
ENVIRONMENTS = {PLAYERS: "./player", WITHOUT: "tests.unity_player.ball:make"}
STEPS, POLICY_STEPS = 120_000, 10_000  # the files have 500,000 for PPO and 200,000 for SAC
EPISODES, SEED = 100, 10_000
SOLVED = 99  # of 100
MOST_ERRORS = 3  # with three seeds each, 4 % of equals differ by more


@dataclass(frozen=True, slots=True)
class Learned:
    """What the policies of a run earn, in the order of their steps."""

    trainer: str
    place: str
    seed: int
    returns: list[float]

    @property
    def mean(self) -> float:
        """Over all policies."""
        return mean(self.returns)


def train(trainer: str, place: str, seed: int) -> Learned:
    """Train in a folder of its own, and let the exported policies play."""
    with TemporaryDirectory(prefix="rl-tui-returns-") as temporary:
        folder = Path(temporary)
        make_player(folder)
        text = configuration(trainer, max_steps=STEPS, checkpoint_interval=POLICY_STEPS, keep_checkpoints=1000)
        (folder / "3DBall.yaml").write_text(text)
        words = [f"--env={ENVIRONMENTS[place]}", "--num-envs=4", f"--seed={seed}", "--run-id=bench", "--no-ui"]
        found = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        no_graphics = ["--no-graphics"] if place == PLAYERS else []
        run_python("-m", "rl_tui", "3DBall.yaml", *words, *no_graphics, folder=folder, variables=found)
        return Learned(trainer, place, seed, returns_of(folder / "results/bench" / BEHAVIOR))


def returns_of(exports: Path) -> list[float]:
    """Of the first policy at or after each multiple of POLICY_STEPS: experience comes in blocks that may exceed it."""
    earned = {int(path.stem.rpartition("-")[2]): mean_return(path) for path in exports.glob("*.onnx")}
    return [
        earned[min(step for step in earned if step >= multiple)]
        for multiple in range(POLICY_STEPS, STEPS + 1, POLICY_STEPS)
    ]


def mean_return(policy: Path) -> float:
    """Of EPISODES episodes with the likeliest actions, the same episodes for all policies."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(policy), providers=["CPUExecutionProvider"])
    balls = Balls(EPISODES, SEED)
    balls.reset()
    earned, is_over = np.zeros(EPISODES), np.zeros(EPISODES, bool)
    for _ in range(MAX_STEPS):
        (actions,) = session.run(["deterministic_continuous_actions"], {"obs_0": balls.observations})
        rewards, fallen, _ = balls.step(actions)
        earned += np.where(is_over, 0, rewards)
        is_over |= fallen
    return float(earned.mean())


def compare(trainer: str, learned: Sequence[Learned]) -> tuple[str, bool]:
    """A table of the marks, and whether the task is solved and both places are equal."""
    means = {place: [run.mean for run in learned if run.place == place] for place in ENVIRONMENTS}
    best = {place: [max(run.returns) for run in learned if run.place == place] for place in ENVIRONMENTS}
    rows = [
        (place, *(f"{value:.1f}" for value in [*means[place], mean(means[place]), min(best[place])])) for place in means
    ]
    seeds = [f"seed {run.seed}" for run in learned if run.place == PLAYERS]
    difference, error = mean(means[PLAYERS]) - mean(means[WITHOUT]), math.hypot(*map(standard_error, means.values()))
    is_solved = min(min(values) for values in best.values()) >= SOLVED
    is_equal = abs(difference) <= MOST_ERRORS * error
    return (
        f"{table((f'{trainer}, mean return of all policies', *seeds, 'mean', 'lowest best policy'), rows)}\n"
        f"every run reaches {SOLVED}: {verdict(is_solved)}\n"
        f"difference {difference:.1f}, standard error {error:.1f}, at most {MOST_ERRORS} of them: {verdict(is_equal)}\n"
    ), is_solved and is_equal


def main(words: Sequence[str] | None = None) -> int:
    """Train with every trainer, seed and place in turn; 1 if a mark is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.unity_returns")
    parser.add_argument("--trainers", default=",".join(TRAINERS))
    parser.add_argument("--seeds", default="1,2,3", help="two or more")
    parser.add_argument("--json", type=Path, help="write the returns of all policies there")
    chosen = parser.parse_args(words)
    learned: list[Learned] = []
    for trainer in chosen.trainers.split(","):
        for seed in chosen.seeds.split(","):
            for place in ENVIRONMENTS:
                learned.append(train(trainer, place, int(seed)))
                print(learned[-1], file=sys.stderr, flush=True)
        if chosen.json is not None:
            chosen.json.write_text(json.dumps([dataclasses.asdict(run) for run in learned], indent=1) + "\n")
    compared = [
        compare(trainer, [run for run in learned if run.trainer == trainer]) for trainer in chosen.trainers.split(",")
    ]
    print("\n".join(text for text, _ in compared))
    return 0 if all(is_reached for _, is_reached in compared) else 1


if __name__ == "__main__":
    sys.exit(main())
