"""What PPO and SAC earn without a file of settings: rl-tui's profiles beside Stable-Baselines3's defaults.

python -m tests.benchmarks.profiles [--only CartPole,Taxi] [--seeds 1,2,3] [--peers rl-tui,sb3] [--json PATH]

Each training has a process of its own. A result is two means over 100 episodes: those that training ended with, and
those that the greedy policy plays afterwards, with seeds that neither trained with. The first counts for the mark.
--json keeps the results, and a later call with the same file adds those that are missing.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from tests.benchmarks.processes import run_python
from tests.benchmarks.tables import table, verdict

RL_TUI, SB3 = "rl-tui", "sb3"
PEERS = (RL_TUI, SB3)
EPISODES, FIRST_SEED = 100, 10_000


@dataclass(frozen=True, slots=True)
class Task:
    """Steps after which a trainer must have reached the mark, on the mean of the seeds."""

    environment: str
    trainer: str
    steps: int
    mark: float

    @property
    def name(self) -> str:
        """The environment without its version, and the trainer."""
        return f"{self.behavior} {self.trainer.upper()}"

    @property
    def behavior(self) -> str:
        """Its behavior in rl-tui."""
        return self.environment.partition("-")[0]


TASKS = (
    Task("CartPole-v1", "ppo", 100_000, 475.0),
    Task("Acrobot-v1", "ppo", 100_000, -90.0),
    Task("Pendulum-v1", "ppo", 200_000, -250.0),
    Task("Pendulum-v1", "sac", 30_000, -250.0),
    Task("LunarLander-v3", "ppo", 500_000, 100.0),
    Task("Taxi-v4", "ppo", 500_000, 6.0),
)


@dataclass(frozen=True, slots=True)
class Reached:
    """The result of one training: the mean returns of its last episodes, and of the greedy policy's."""

    task: str
    peer: str
    seed: int
    training: float
    greedy: float


def train_rl_tui(task: Task, seed: int, folder: Path) -> tuple[float, float]:
    """What the profile reaches, as `rl-tui TRAINER/gymnasium --env gymnasium:ID` trains."""
    import rl_tui

    run = rl_tui.train(
        f"{task.trainer}/gymnasium",
        quiet=True,
        env=f"gymnasium:{task.environment}",
        results_dir=folder,
        seed=seed,
        torch_device="cpu",
        set={f"behaviors.{task.behavior}.max_steps": task.steps},
    )
    training = run.returns[task.behavior]
    assert training is not None
    return training, play(task, rl_tui.load_policy(run.path).act)


def train_sb3(task: Task, seed: int) -> tuple[float, float]:
    """What Stable-Baselines3 reaches with its defaults for MlpPolicy."""
    import stable_baselines3
    import torch

    torch.set_num_threads(1)
    model = getattr(stable_baselines3, task.trainer.upper())("MlpPolicy", task.environment, seed=seed, device="cpu")
    model.learn(task.steps)
    training = mean(episode["r"] for episode in model.ep_info_buffer)  # of the last hundred

    def act(observation: Any, action_mask: Any) -> Any:  # Any: elements of spaces; its policies know no masks
        action = model.predict(observation, deterministic=True)[0]
        return action if action.ndim else action.item()

    return training, play(task, act)


def play(task: Task, act: Callable[[Any, Any], Any]) -> float:
    """The mean return of the episodes, the same ones for all. act: from an observation and the mask of actions."""
    import gymnasium

    env = gymnasium.make(task.environment)
    earned = []
    for episode in range(EPISODES):
        observation, info = env.reset(seed=FIRST_SEED + episode)
        total, is_over = 0.0, False
        while not is_over:
            action = act(observation, info.get("action_mask"))
            observation, reward, terminated, truncated, info = env.step(action)
            total += float(reward)
            is_over = terminated or truncated
        earned.append(total)
    return mean(earned)


def train(task: Task, peer: str, seed: int) -> Reached:
    """Train here, and play."""
    warnings.simplefilter("ignore")
    with TemporaryDirectory(prefix="rl-tui-profiles-") as folder:
        training, greedy = train_rl_tui(task, seed, Path(folder)) if peer == RL_TUI else train_sb3(task, seed)
    return Reached(task.name, peer, seed, training, greedy)


def missing(
    tasks: Sequence[Task], peers: Sequence[str], seeds: Sequence[int], known: Sequence[Reached]
) -> Iterator[tuple[Task, str, int]]:
    """The trainings that have no result yet, as (task, peer, seed)."""
    done = {(result.task, result.peer, result.seed) for result in known}
    yield from (
        (task, peer, seed) for task in tasks for peer in peers for seed in seeds if (task.name, peer, seed) not in done
    )


def report(tasks: Sequence[Task], results: Sequence[Reached]) -> str:
    """A row for each task and peer: seeds, their mean, and what the greedy policies earn."""
    seeds = sorted({result.seed for result in results})
    rows = []
    for task in tasks:
        for peer in PEERS:
            own = {result.seed: result for result in results if (result.task, result.peer) == (task.name, peer)}
            if not own:
                continue
            training, greedy = (mean(getattr(each, kind) for each in own.values()) for kind in ("training", "greedy"))
            cells = [f"{own[seed].training:.1f}" if seed in own else "" for seed in seeds]
            mark = f"{task.mark:g} {verdict(training >= task.mark)}" if peer == RL_TUI else ""
            rows.append((f"{task.name}, {peer}", f"{task.steps:,}", *cells, f"{training:.1f}", f"{greedy:.1f}", mark))
    return table(("", "steps", *(f"seed {seed}" for seed in seeds), "mean", "greedy", "mark"), rows)


def main(words: Sequence[str] | None = None) -> None:
    """Train every task with every peer and seed that is missing, each in a process of its own, or one of them here."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.profiles", description=__doc__)
    parser.add_argument("--only", default="", help="what the tasks' names begin with, separated by commas")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--json", type=Path, help="keep the results there")
    parser.add_argument("--one", action="store_true", help="train the one task, peer and seed here")
    arguments = parser.parse_args(words)
    beginnings = tuple(arguments.only.split(","))
    tasks = [task for task in TASKS if task.name.startswith(beginnings)]
    peers, seeds = arguments.peers.split(","), [int(seed) for seed in arguments.seeds.split(",")]
    if arguments.one:
        print(json.dumps(dataclasses.asdict(train(tasks[0], peers[0], seeds[0]))))
        return
    results = []
    if arguments.json is not None and arguments.json.exists():
        results = [Reached(**fields) for fields in json.loads(arguments.json.read_text())]
    for task, peer, seed in missing(tasks, peers, seeds, results):
        words = ["--one", "--only", task.name, "--peers", peer, "--seeds", str(seed)]
        said = run_python("-m", "tests.benchmarks.profiles", *words, folder=Path.cwd())
        results.append(Reached(**json.loads(said.splitlines()[-1])))
        print(results[-1], file=sys.stderr, flush=True)
        if arguments.json is not None:
            arguments.json.write_text(json.dumps([dataclasses.asdict(each) for each in results], indent=1) + "\n")
    print(report(tasks, results))


if __name__ == "__main__":
    main()
