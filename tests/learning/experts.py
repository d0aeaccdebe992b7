"""Tasks with experts that are written and not learned, and demonstrations of them.

Shapes: N agents.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.demonstrations.episode_recorder import EpisodeRecorder
from rl_tui.engine.demonstrations.opening import KEEP_BYTES, open_files
from rl_tui.engine.demonstrations.recorded import RecordedDemonstrations
from rl_tui.engine.running.evaluation.episodes import UNRECORDED, Recorder, Scores, play
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.factory import make_environments
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.sampling.random_policy import RandomPolicy
from rl_tui.engine.specs import Actions, BehaviorSpec, DecisionSteps, Float32, Int64, Policy
from tests.learning.written import Written

Array = NDArray[Any]


class Expert(Written):
    """chooses: of observations [N, ...], choices i64[N] or continuous actions f32[N] in [-1, 1]."""

    def __init__(self, chooses: Callable[[Array], Array]) -> None:
        def choose(decisions: DecisionSteps) -> Actions:
            chosen = chooses(decisions.observations[0])[:, None]
            none = np.empty((len(chosen), 0))
            continuous, discrete = (none, chosen) if chosen.dtype == np.int64 else (chosen, none)
            return Actions(continuous.astype(np.float32), discrete.astype(np.int64))

        super().__init__(choose)


def pump_the_arm(seen: Float32) -> Int64:
    """Acrobot: torque with the swing of the second link relative to the first, which adds energy. Returns -80."""
    return np.where(seen[:, 5] > seen[:, 4], 2, 0)


def hold_the_pendulum(seen: Float32) -> Float32:
    """Pendulum: near the top as a spring with a damper, elsewhere with or against the swing until its energy is that of
    standing upright. Returns -160."""
    cosine, sine, speed = seen.T
    missing = 15 * (1 - cosine) - speed**2 / 2
    return np.where(cosine > 0.8, -10 * sine - 2 * speed, missing * np.where(speed < 0, -1, 1)).clip(-2, 2) / 2


def go_to_the_square(seen: Array) -> Int64:
    """Pixels: to the half with the brighter columns. Returns 1, the most there is."""
    columns = seen.astype(np.int64).sum((1, 3))
    half = columns.shape[1] // 2
    return np.where(columns[:, half:].sum(1) > columns[:, :half].sum(1), 2, 0)


class Task(NamedTuple):
    """An environment and its expert."""

    env: str
    expert: Policy

    def copies(self, count: int) -> list[Environment]:
        """The environment for so many agents."""
        return make_environments(self.env, "Task", range(count), {})

    @property
    def spec(self) -> BehaviorSpec:
        """What is observed and done."""
        return self.copies(1)[0].specs["Task"]

    def by_chance(self) -> Policy:
        """Every action with equal probability."""
        return RandomPolicy(self.spec, 1)

    def play(self, policy: Policy, num_episodes: int, seed: int, recorder: Recorder = UNRECORDED) -> Scores:
        """So many episodes, of ten agents."""
        environments = self.copies(10)
        pool = SerialPool("test", lambda first, count: environments, len(environments))
        pool.start()
        try:
            scores = play(pool, lambda spec: policy, "Task", num_episodes, seed, lambda: True, recorder=recorder)
            assert scores is not None
            return scores
        finally:
            pool.close()

    def record(self, policy: Policy, num_episodes: int, file: Path) -> RecordedDemonstrations:
        """So many episodes, written to a file and read again."""
        with EpisodeRecorder(file, lambda: self.spec) as recorder:
            self.play(policy, num_episodes, 1, recorder)
        return open_files(file, self.spec, KEEP_BYTES, None)

    def score(self, policy: Policy) -> float:
        """The mean return of 100 other episodes, on a scale on which chance has 0 and the expert 1."""
        own, best, chance = (self.play(of, 100, 2).returns.mean() for of in (policy, self.expert, self.by_chance()))
        return float((own - chance) / (best - chance))


TASKS: dict[str, Task] = {
    "acrobot": Task("gymnasium:Acrobot-v1", Expert(pump_the_arm)),
    "pendulum": Task("gymnasium:Pendulum-v1", Expert(hold_the_pendulum)),
    "image": Task("toy:pixels", Expert(go_to_the_square)),
}
