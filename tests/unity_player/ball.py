"""Balls on plates that agents tilt, after ML-Agents' 3DBall: as the world of a player, and as an environment of ours.

Shapes: N agents. An agent observes 8 numbers: the tilt of its plate about two axes, where its ball is and how fast it
rolls. It chooses how far to tilt the plate about both axes, and earns 0.1 for each step at whose end the ball is on
the plate, or -1 when it has fallen, which ends the episode. After `max_steps` steps the episode is interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import Actions, ActionSpec, BehaviorSpec, DecisionSteps, ObservationSpec, Steps, TerminalSteps
from tests.unity_player.encoding import AgentTemplate
from tests.unity_player.messages import Acts, Brain, Said, Sensor

FRAMES = 5  # of physics in a step
FRAME_SECONDS = 0.02
TURN = np.radians(2)  # per frame, by an action of 1
MAX_TILT = 2 * np.arcsin(0.25)
ROLLING = 9.81 * 5 / 7  # a ball that rolls without slipping
EDGE = 2.5
NUM_AGENTS = 12
MAX_STEPS = 1000


class Balls:
    """The physics of N balls. observations: f32[N, 8], in an array that is written again at each step."""

    def __init__(self, num: int, seed: int, max_steps: int = MAX_STEPS) -> None:
        self._rng = np.random.default_rng(seed)
        self._max_steps = max_steps
        self._tilt, self._place, self._speed = (np.zeros((num, 2)) for _ in range(3))
        self._steps = np.zeros(num, np.int64)
        self.observations = np.zeros((num, 8), np.float32)

    def reset(self, which: NDArray[np.int64] | slice = slice(None)) -> None:
        """Begin new episodes of these agents, and observe them."""
        shape = self._tilt[which].shape
        self._tilt[which] = self._rng.uniform(-np.radians(10), np.radians(10), shape)
        self._place[which] = self._rng.uniform(-1.5, 1.5, shape)
        self._speed[which] = 0
        self._steps[which] = 0
        self._observe()

    def step(self, actions: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
        """Tilt the plates; the rewards, whose ball has fallen, and whose episode is over for another reason.

        actions: f32[N, 2], from -1 to 1.
        """
        turn = TURN * np.clip(actions, -1, 1)
        for _ in range(FRAMES):
            self._tilt += turn
            np.clip(self._tilt, -MAX_TILT, MAX_TILT, out=self._tilt)
            self._speed += FRAME_SECONDS * ROLLING * np.sin(self._tilt)
            self._place += FRAME_SECONDS * self._speed
        self._steps += 1
        fallen = (np.abs(self._place) > EDGE).any(1)
        self._observe()
        return np.where(fallen, -1, 0.1).astype(np.float32), fallen, (self._steps >= self._max_steps) & ~fallen

    def _observe(self) -> None:
        seen = self.observations
        seen[:, 0:2] = np.sin(self._tilt / 2)
        seen[:, 2:4] = self._place
        seen[:, 4] = 0.5 - (self._place * np.tan(self._tilt)).sum(1)
        seen[:, 5:7] = self._speed
        seen[:, 7] = 0


class BallWorld:
    """The world of a player. keeps_ids: an agent's next episode has its id, and begins in the message that ends the
    last one; otherwise under a new id, in that message, too."""

    def __init__(
        self, behavior: str, seed: int, num: int = NUM_AGENTS, max_steps: int = MAX_STEPS, keeps_ids: bool = True
    ) -> None:
        sensor = Sensor("VectorSensor_size8", (8,), properties=(1,))
        self.brains: Mapping[str, Brain] = {behavior: Brain(behavior, (sensor,), continuous=2)}
        self._balls = Balls(num, seed, max_steps)
        self._behavior, self._keeps_ids = behavior, keeps_ids
        self._template = AgentTemplate([sensor])
        self._ids = list(range(num))
        self._next_id = num

    def reset(self) -> Said:
        """New episodes of all agents."""
        self._balls.reset()
        return self._said([], [0.0] * len(self._ids))

    def step(self, acts: Mapping[str, Acts]) -> Said:
        """Actions in the order of agents."""
        rewards, fallen, interrupted = self._balls.step(acts[self._behavior].continuous)
        ended = np.flatnonzero(fallen | interrupted)
        terminals = [
            self._template.info(
                self._ids[agent], float(rewards[agent]), self._balls.observations[agent].tobytes(), not fallen[agent]
            )
            for agent in ended
        ]
        if len(ended):
            rewards[ended] = 0
            self._balls.reset(ended)
            if not self._keeps_ids:
                for agent in ended:
                    self._ids[agent], self._next_id = self._next_id, self._next_id + 1
        return self._said(terminals, rewards.tolist())

    def _said(self, terminals: list[bytes], rewards: list[float]) -> Said:
        seen = self._balls.observations.tobytes()
        decisions = [
            self._template.info(id, reward, seen[32 * agent : 32 * agent + 32])
            for agent, (id, reward) in enumerate(zip(self._ids, rewards, strict=True))
        ]
        return Said({self._behavior: b"".join(terminals + decisions)}, {self._behavior: len(decisions)})


class BallEnvironment:
    """The same balls as an environment of this project, without a player.

    seed: in place of those that it is reset with; a player, too, keeps the one that it is started with.
    """

    def __init__(
        self, behavior: str = "3DBall", num: int = NUM_AGENTS, max_steps: int = MAX_STEPS, seed: int | None = None
    ) -> None:
        spec = BehaviorSpec(behavior, (ObservationSpec("VectorSensor_size8", (8,)),), ActionSpec(2))
        self.specs = {behavior: spec}
        self.num_agents = {behavior: num}
        self._behavior, self._num, self._max_steps = behavior, num, max_steps
        self._is_seeded = seed is not None
        self._balls = Balls(num, seed or 0, max_steps)
        self._ids = np.arange(num)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """New balls, drawn from the seed if there is one."""
        if seed is not None and not self._is_seeded:
            self._balls = Balls(self._num, seed, self._max_steps)
        self._balls.reset()
        return {self._behavior: Steps(self._decisions(np.zeros(self._num, np.float32)))}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Every agent acts at every step; where an episode ends, the next one starts in the same step."""
        rewards, fallen, interrupted = self._balls.step(actions[self._behavior].continuous)
        ended = np.flatnonzero(fallen | interrupted)
        if not len(ended):
            return {self._behavior: Steps(self._decisions(rewards))}
        last = self._balls.observations[ended].copy()
        terminals = TerminalSteps(self._ids[ended], (last,), rewards[ended], interrupted[ended])
        rewards[ended] = 0
        self._balls.reset(ended)
        return {self._behavior: Steps(self._decisions(rewards), terminals)}

    def close(self) -> None:
        """There is nothing to free."""

    def _decisions(self, rewards: NDArray[np.float32]) -> DecisionSteps:
        return DecisionSteps(self._ids, (self._balls.observations.copy(),), rewards)


def make(
    behavior: str = "3DBall", num: int = NUM_AGENTS, max_steps: int = MAX_STEPS, seed: int | None = None
) -> BallEnvironment:
    """For `env: tests.unity_player.ball:make`."""
    return BallEnvironment(behavior, num, max_steps, seed)
