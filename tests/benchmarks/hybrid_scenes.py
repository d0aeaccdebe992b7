"""Eight small scenes with continuous and discrete actions, and the same scenes with discrete actions alone.

Written in numpy only, so that rl-tui and its peer, each in a Python of its own, train in the very same worlds.
Shapes: N agents, D dimensions, K branches of 3 choices, A continuous actions, M choices of all branches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

AGENTS = 4
HAND_CHOICES = 3  # wait, left, right
MOVES = np.linspace(-1, 1, 5, dtype=np.float32)  # of a branch in place of a continuous dimension
SPEED, REACH = 0.15, 0.2
PIXELS = 20  # rows and columns of an image
HYBRID, DISCRETE = "hybrid", "discrete"


@dataclass(frozen=True)
class Scene:
    """One of the eight. task: "goal", "balance" or "aim", see World.

    limit: steps after which an episode ends, truncated where `is_truncated`. step_reward: of every step. steps: of
    training.
    """

    task: str = "goal"
    has_masks: bool = True
    is_truncated: bool = True
    has_image: bool = False
    is_shaped: bool = True
    step_reward: float = -0.01
    size: int = 1
    limit: int = 40
    steps: int = 4500


SCENES = {
    "goal": Scene(steps=9000),
    "no truncation": Scene(is_truncated=False),
    "no masks": Scene(has_masks=False),
    "image": Scene(has_image=True, steps=3000),
    "alive pays": Scene(task="balance", step_reward=0.1, steps=6000),
    "alive costs": Scene(step_reward=-0.1, is_shaped=False),
    "two and two": Scene(size=2, steps=6000),
    "aim": Scene(task="aim", step_reward=0.0, limit=10),
}


class World:
    """AGENTS agents that move along `size` dimensions and have as many hands; each episode wants certain hands.

    goal: come near a place and choose the right hands there: 1, and the end. A choice elsewhere, or of a wrong hand,
    costs 0.1; with masks only waiting is allowed elsewhere. `is_shaped` pays half of each approach.
    balance: a push too far off the middle ends the episode; wrong hands push outward. Which are right changes.
    aim: each step shows another place; being there with the right hands pays up to 0.2.
    In the latter two, masks forbid one of the wrong choices of each branch.

    episodes: (steps of all agents when it ended, return) of every episode so far.
    """

    def __init__(self, name: str, kind: str, seed: int) -> None:
        self.scene, self._kind = SCENES[name], kind
        size = self.scene.size
        hands = (HAND_CHOICES,) * size
        self.num_continuous = size if kind == HYBRID else 0
        self.branches = hands if kind == HYBRID else (len(MOVES),) * size + hands
        self.num_steps = 0
        self.episodes: list[tuple[int, float]] = []
        self._random = np.random.default_rng(seed)
        self._place, self._speed, self._goal = (np.zeros((AGENTS, size), np.float32) for _ in range(3))
        self._hands = np.zeros((AGENTS, size), np.int64)
        self._age, self._earned = np.zeros(AGENTS, np.int64), np.zeros(AGENTS)
        self._begin(np.ones(AGENTS, bool))

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the observations, without agents."""
        return [each.shape[1:] for each in self.observations()]

    def _begin(self, agents: Array) -> None:
        shape = int(agents.sum()), self.scene.size
        width = 0.2 if self.scene.task == "balance" else 1.0
        self._place[agents] = self._random.uniform(-width, width, shape)
        self._goal[agents] = self._random.uniform(-0.9, 0.9, shape)
        self._hands[agents] = self._random.integers(1, HAND_CHOICES, shape)
        self._speed[agents], self._age[agents], self._earned[agents] = 0, 0, 0

    def observations(self) -> list[Array]:
        """A vector f32[N, 3 size + 1], and an image f32[N, PIXELS, PIXELS, 1] where the scene has one."""
        scene = self.scene
        last = self._age / scene.limit if not scene.is_truncated else self._is_near()
        shown = {"goal": self._goal * (not scene.has_image), "balance": self._speed, "aim": self._goal}
        place = self._place * (scene.task != "aim")
        vector = np.concatenate([place, shown[scene.task], 2 * self._hands - 3, last[:, None]], 1).astype(np.float32)
        return [vector, self._image()] if scene.has_image else [vector]

    def _image(self) -> Array:
        """A bar where the goal is."""
        image = np.zeros((AGENTS, PIXELS, PIXELS, 1), np.float32)
        columns = np.rint((self._goal[:, 0] + 1) / 2 * (PIXELS - 1)).astype(np.int64)
        for shift in (-1, 0, 1):
            image[np.arange(AGENTS), 8:12, np.clip(columns + shift, 0, PIXELS - 1), 0] = 1
        return image

    def _is_near(self) -> Array:
        return (np.abs(self._place - self._goal) < REACH).all(1)

    def allowed(self) -> Array | None:
        """bool[N, M], or None where the scene has no masks."""
        if not self.scene.has_masks:
            return None
        allowed = np.ones((AGENTS, sum(self.branches)), bool)
        rows = np.arange(AGENTS)
        for number, wanted in enumerate(self._hands.T):
            hand = sum(self.branches) - HAND_CHOICES * (self.scene.size - number)
            if self.scene.task == "goal":
                allowed[:, hand + 1 : hand + HAND_CHOICES] = self._is_near()[:, None]
            else:
                allowed[rows, hand + np.where(self._age % 3 == 0, HAND_CHOICES - wanted, 0)] = False
        return allowed

    def step(self, continuous: Array, discrete: Array) -> tuple[Array, Array, Array, list[Array]]:
        """Rewards f32[N], whose episode ended and whose was truncated bool[N], and what was observed at the end.

        continuous: f32[N, A]. discrete: i64[N, K], or [N, 2 K] with the branches that move first. Agents whose episode
        ended have begun another.
        """
        size = self.scene.size
        moves, hands = continuous, discrete
        if self._kind == DISCRETE:
            moves, hands = MOVES[discrete[:, :size]], discrete[:, size:]
        act = {"goal": self._approach, "balance": self._balance, "aim": self._aim}[self.scene.task]
        rewards, is_over = act(np.clip(moves, -1, 1), hands)
        rewards = (rewards + self.scene.step_reward).astype(np.float32)
        self._age += 1
        self._earned += rewards
        self.num_steps += AGENTS
        is_late = (self._age >= self.scene.limit) & ~is_over
        ended, final = is_over | is_late, self.observations()
        self.episodes += [(self.num_steps, float(earned)) for earned in self._earned[ended]]
        self._begin(ended)
        return rewards, ended, is_late & self.scene.is_truncated, final

    def _approach(self, moves: Array, hands: Array) -> tuple[Array, Array]:
        before = np.abs(self._place - self._goal).mean(1)
        reached = self._is_near() & (hands == self._hands).all(1)
        rewards = np.where(reached, 1.0, -0.1 * (hands > 0).all(1))
        self._place = np.clip(self._place + SPEED * moves, -1, 1).astype(np.float32)
        if self.scene.is_shaped:
            rewards = rewards + 0.5 * (before - np.abs(self._place - self._goal).mean(1))
        return rewards, reached

    def _balance(self, moves: Array, hands: Array) -> tuple[Array, Array]:
        is_wrong = (hands != self._hands).any(1)
        shaken = self._random.standard_normal(self._place.shape)
        pushed = 0.02 * self._place + 0.02 * shaken + 0.03 * is_wrong[:, None] * np.sign(self._place)
        self._speed = (0.9 * self._speed + 0.04 * moves + pushed).astype(np.float32)
        self._place += self._speed
        changes = self._random.random(self._hands.shape) < 0.2
        self._hands = np.where(changes, HAND_CHOICES - self._hands, self._hands)
        return np.zeros(AGENTS), (np.abs(self._place) > 1).any(1)

    def _aim(self, moves: Array, hands: Array) -> tuple[Array, Array]:
        closeness = 1 - np.abs(moves - self._goal).mean(1)
        rewards = 0.2 * closeness * (hands == self._hands).all(1)
        self._goal = self._random.uniform(-0.9, 0.9, self._goal.shape).astype(np.float32)
        self._hands = self._random.integers(1, HAND_CHOICES, self._hands.shape)
        return rewards, np.zeros(AGENTS, bool)
