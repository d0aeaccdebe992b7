"""What SAC earns with hybrid actions, beside mlagents 1.1.0: eight scenes, and each with discrete actions alone.

python -m tests.benchmarks.hybrid_actions --peer FOLDER --results FILE [--seeds 1,2,3,4,5] [--scenes goal,aim,...]

FOLDER is a virtual environment with mlagents 1.1.0. Both train in the same worlds with the same settings; besides, two
other ways of counting entropy in rl-tui. Each training adds a line to FILE, and what is in it is not trained again, so
that the program may be stopped and started at any time. The mark is the mean return of the episodes, sampled actions
included, that end in the last third of a training: at most one standard error of the difference below mlagents.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any
from unittest.mock import patch

import numpy as np
import threadpoolctl
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.sac import gradients_numpy, losses
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    DecisionSteps,
    Float32,
    ObservationSpec,
    Steps,
    TerminalSteps,
)
from tests.benchmarks.hybrid_scenes import AGENTS, DISCRETE, HYBRID, SCENES, World
from tests.benchmarks.peer_python import fault_of
from tests.benchmarks.tables import standard_error, table, verdict
from tests.learning.test_it_learns import train

BEHAVIOR = "Agent"
RL_TUI, MLAGENTS, BONUS, REVERSED = "rl-tui", "mlagents", "entropy in values", "its sign reversed"
SIDES = {HYBRID: (RL_TUI, MLAGENTS, BONUS, REVERSED), DISCRETE: (RL_TUI, MLAGENTS, BONUS)}
MOMENTS = 3  # parts of a training whose means are kept

temperatures_follow_masks = losses.log_alpha_gradient


@dataclass(frozen=True, slots=True)
class Earned:
    """The mean returns in each of MOMENTS equal parts of a training."""

    side: str
    scene: str
    kind: str
    seed: int
    returns: list[float]

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What is trained once."""
        return self.side, self.scene, self.kind, self.seed


class WorldAsEnvironment:
    """A world as rl-tui plays it."""

    def __init__(self, world: World) -> None:
        seen = tuple(ObservationSpec(f"seen {number}", shape) for number, shape in enumerate(world.shapes))
        actions = ActionSpec(world.num_continuous, world.branches)
        self.specs: Mapping[str, BehaviorSpec] = {BEHAVIOR: BehaviorSpec(BEHAVIOR, seen, actions)}
        self.num_agents: Mapping[str, int] = {BEHAVIOR: AGENTS}
        self._world, self._ids = world, np.arange(AGENTS)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        return {BEHAVIOR: Steps(self._decisions(np.zeros(AGENTS, np.float32)))}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        rewards, ended, truncated, final = self._world.step(actions[BEHAVIOR].continuous, actions[BEHAVIOR].discrete)
        decisions = self._decisions(np.where(ended, np.float32(0), rewards))
        if not ended.any():
            return {BEHAVIOR: Steps(decisions)}
        last = tuple(seen[ended] for seen in final)
        return {BEHAVIOR: Steps(decisions, TerminalSteps(self._ids[ended], last, rewards[ended], truncated[ended]))}

    def close(self) -> None:
        pass

    def _decisions(self, rewards: Float32) -> DecisionSteps:
        return DecisionSteps(self._ids, tuple(self._world.observations()), rewards, self._world.allowed())


def behavior(scene: str) -> dict[str, Any]:
    """A behavior in the words of both."""
    return {
        "trainer_type": "sac",
        "hyperparameters": {
            "learning_rate": 1e-3,
            "batch_size": 128,
            "init_entcoef": 0.2,
            "tau": 0.01,
            "steps_per_update": 3.0,
        },
        "network_settings": {"hidden_units": 64, "num_layers": 2},
        "max_steps": SCENES[scene].steps,
        "summary_freq": 1_000_000,
    }


def train_rl_tui(scene: str, kind: str, seed: int) -> list[tuple[int, float]]:
    """The episodes of a training."""
    world, config = World(scene, kind, seed), BehaviorConfig.model_validate(behavior(scene))
    train([WorldAsEnvironment(world)], config, SCENES[scene].steps, seed, torch.device("cpu"))
    return world.episodes


def values_with_entropy(sign: float, of_policy: Any, policy: Any, alpha: Any) -> Any:
    """In place of `soft_values`: the entropy of all actions counts, that of hybrid continuous ones with a sign."""
    smaller = losses.array_namespace(alpha).amin(policy.expected(of_policy), 0)
    bonus = -sign * alpha[0] * policy.log_prob
    for index, negative_entropy in enumerate(policy.negative_entropies):
        bonus = bonus - alpha[1 + index] * negative_entropy / len(policy.probabilities)
    return smaller + bonus[:, None]


def temperatures_without_masks(policy: Any, actions: ActionSpec, target_entropy: float, allowed: Any) -> Any:
    """In place of `log_alpha_gradient`: a branch's target follows all its choices."""
    return temperatures_follow_masks(policy, actions, target_entropy, None)


@contextmanager
def counting_entropy(sign: float) -> Iterator[None]:
    """Entropy counts in values, as in ML-Agents but for the sign."""
    with ExitStack() as leaving:
        for module in (losses, gradients_numpy):
            leaving.enter_context(patch.object(module, "soft_values", partial(values_with_entropy, sign)))
            leaving.enter_context(patch.object(module, "log_alpha_gradient", temperatures_without_masks))
        yield


class Peer:
    """mlagents in its own Python, one training after another."""

    def __init__(self, python: Path) -> None:
        self._python = python
        self._process: subprocess.Popen[str] | None = None

    def train(self, scene: str, kind: str, seed: int) -> list[tuple[int, float]]:
        """The episodes of a training. Raises RuntimeError if it fails."""
        if self._process is None:
            script = Path(__file__).with_name("hybrid_actions_peer.py")
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self._process = subprocess.Popen([self._python, script], text=True, **pipes)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"scene": scene, "kind": kind, "seed": seed, "behaviors": {BEHAVIOR: behavior(scene)}}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"mlagents ended with {self._process.wait()} in {scene}")
        episodes: list[tuple[int, float]] = json.loads(answer)
        return episodes

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.communicate()


def run(side: str, scene: str, kind: str, seed: int, peer: Peer) -> Earned:
    """One training."""
    if side == MLAGENTS:
        episodes = peer.train(scene, kind, seed)
    elif side == RL_TUI:
        episodes = train_rl_tui(scene, kind, seed)
    else:
        with counting_entropy(1.0 if side == BONUS else -1.0):
            episodes = train_rl_tui(scene, kind, seed)
    part = SCENES[scene].steps / MOMENTS
    returns = [
        mean(earned for step, earned in episodes if part * index < step <= part * (index + 1))
        for index in range(MOMENTS)
    ]
    return Earned(side, scene, kind, seed, returns)


def report(found: Sequence[Earned]) -> tuple[str, bool]:
    """A table for each kind of actions, and whether rl-tui reaches the mark wherever there are two seeds of both."""
    texts, is_reached = [], True
    for kind, sides in SIDES.items():
        rows = []
        for scene in SCENES:
            late = {
                side: [one.returns[-1] for one in found if (one.side, one.scene, one.kind) == (side, scene, kind)]
                for side in sides
            }
            is_equal = is_no_worse(late[RL_TUI], late[MLAGENTS])
            is_reached &= is_equal is not False
            rows.append((scene, *map(cell, late.values()), "-" if is_equal is None else verdict(is_equal)))
        texts.append(table((kind, *sides, "mark"), rows))
    return "\n\n".join(texts), is_reached


def is_no_worse(ours: Sequence[float], others: Sequence[float]) -> bool | None:
    """Whether our mean is at most one standard error of the difference below; None with less than two seeds."""
    if min(len(ours), len(others)) < 2:
        return None
    error = math.hypot(standard_error(ours), standard_error(others))
    return mean(ours) >= mean(others) - error


def cell(returns: Sequence[float]) -> str:
    """Mean, standard error and number of trainings."""
    if len(returns) < 2:
        return f"{returns[0]:.2f} (1)" if returns else "-"
    return f"{mean(returns):.2f} +- {standard_error(returns):.2f} ({len(returns)})"


def read(path: Path) -> list[Earned]:
    """What was trained before."""
    return [Earned(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> int:
    """1 if a mark is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--peer", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--results", type=Path, required=True, metavar="FILE")
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--scenes", default=",".join(SCENES))
    parser.add_argument("--kinds", default=",".join(SIDES))
    parser.add_argument("--sides", default=",".join(SIDES[HYBRID]))
    chosen = parser.parse_args()
    python = chosen.peer / "bin/python"
    if fault := fault_of(python, "mlagents_envs"):
        parser.error(f"--peer: {fault}")
    torch.set_num_threads(1)
    found = read(chosen.results)
    peer = Peer(python)
    done = {one.key for one in found}
    keys = [
        (side, scene, kind, int(seed))
        for seed in chosen.seeds.split(",")
        for kind in chosen.kinds.split(",")
        for scene in chosen.scenes.split(",")
        for side in SIDES[kind]
        if side in chosen.sides.split(",")
    ]
    with threadpoolctl.threadpool_limits(1, user_api="blas"), chosen.results.open("a") as lines:
        for key in keys:
            if key not in done:
                found.append(run(*key, peer))
                print(json.dumps(asdict(found[-1])), file=lines, flush=True)
                print(found[-1], file=sys.stderr, flush=True)
    peer.close()
    text, is_reached = report(found)
    print(text)
    return 0 if is_reached else 1


if __name__ == "__main__":
    sys.exit(main())
