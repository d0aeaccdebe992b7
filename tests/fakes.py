"""Small real stand-ins that tests share."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Literal

import numpy as np

from rl_tui.engine.learning.feature_layout import Features
from rl_tui.engine.learning.joint_steps import JointInputs
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.command_desk import CommandDesk
from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.messages import Command, Hint, Stop
from rl_tui.engine.session.view import RunView
from rl_tui.engine.session.watching import Scene, Unwatchable, WatchCommand, Watching
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    Choice,
    DecisionSteps,
    Float32,
    Int64,
    Json,
    ObservationSpec,
    PolicyRecipe,
    State,
    Steps,
    TerminalSteps,
    Weights,
)


class FakeSession:
    """A session without an engine: keeps every command and hint; with `answers`, each command is finished at once.

    view: what it shows at first. watching: None if its policies cannot be watched.
    """

    def __init__(self, view: RunView | None = None, *, answers: bool = True, watching: Watching | None = None) -> None:
        self.bus = self.make_bus()
        self.desk = CommandDesk(self.bus)
        self.live = LiveView(self.subscribe(), view)
        self.watching: Watching = watching or Unwatchable("a fake has no policies")
        self.commands: list[Command] = []
        self.hints: list[Hint] = []
        self.answers = answers

    def make_bus(self) -> EventBus:
        """That of a run in this process."""
        return EventBus()

    def send(self, message: Command | Hint) -> None:
        """Keep it, and answer a command."""
        if isinstance(message, Hint):
            self.hints.append(message)
            return
        self.commands.append(message)
        self.desk.open(message)
        if self.answers:
            behavior = None if isinstance(message, Stop) else message.behavior
            self.desk.finish(message.id, True, f"results/fake/{behavior or 'all'}-000123456")

    def subscribe(self) -> Subscription:
        """A mailbox on this session's bus."""
        return self.bus.subscribe()

    def wait(self, timeout: float) -> bool:
        """Always true: there is nothing to wait for."""
        return True


class FakeWatching:
    """A play without an engine: shows the scenes it is given, and keeps what was asked of it."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        self.scene: Scene | None = None
        self.asked: list[str] = []

    def why_not(self, behavior: str) -> str:
        """The reason."""
        return self.reason

    def begin(self, behavior: str, size: tuple[int, int]) -> str:
        """Keep whom and how large, unless there is a reason why not."""
        self.asked.append(f"begin {behavior} {size[0]}x{size[1]}")
        return self.reason

    def end(self) -> None:
        """Keep that."""
        self.asked.append("end")

    def pop_scene(self) -> Scene | None:
        """The scene, once."""
        scene, self.scene = self.scene, None
        return scene

    def send(self, command: WatchCommand) -> None:
        """Keep it."""
        self.asked.append(command)

    def resize(self, size: tuple[int, int]) -> None:
        """Keep it."""
        self.asked.append(f"resize {size[0]}x{size[1]}")


class EchoWorld:
    """Two behaviors whose agents demand back what they were shown: (instance, agent, step) as columns.

    Agents of "Slow" wait at every other step. An episode ends after `length` steps, in turn terminated and truncated.
    The reward for an action is the step it was chosen at plus one. Actions that are not `EchoPolicy`'s are an error.
    """

    def __init__(self, instance: int, num_agents: int, length: int) -> None:
        seen = (ObservationSpec("place", (3,)),)
        actions = ActionSpec(2, (7,))
        self.specs: Mapping[str, BehaviorSpec] = {n: BehaviorSpec(n, seen, actions) for n in ("Quick", "Slow")}
        self.num_agents: Mapping[str, int] = {"Quick": num_agents, "Slow": 1}
        self._instance = instance
        self._length = length
        self._step = 0
        self._shown: dict[str, DecisionSteps] = {}

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Step 0."""
        self._step = 0
        return self._show()

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Check the actions of those who waited, and count on."""
        for name, shown in self._shown.items():
            expected = echo(shown.observations[0])
            np.testing.assert_array_equal(actions[name].continuous, expected.continuous)
            np.testing.assert_array_equal(actions[name].discrete, expected.discrete)
        self._step += 1
        return self._show()

    def close(self) -> None:
        """Nothing is held."""

    def _show(self) -> Mapping[str, Steps]:
        steps = {"Quick": self._steps("Quick", self._step - 1)}
        if self._step % 2 == 0:
            steps["Slow"] = self._steps("Slow", self._step - 2)
        self._shown = {name: shown.decisions for name, shown in steps.items()}
        return steps

    def _steps(self, name: str, last: int) -> Steps:
        ids: Int64 = np.arange(self.num_agents[name])
        place = np.stack([np.full(len(ids), self._instance), ids, np.full(len(ids), self._step)], 1).astype(np.float32)
        rewards = np.full(len(ids), max(last + 1, 0), np.float32)
        if self._step == 0 or self._step % self._length:
            return Steps(DecisionSteps(ids, (place,), rewards))
        truncated = np.full(len(ids), self._step // self._length % 2 == 0)
        terminals = TerminalSteps(ids, (place,), rewards, truncated)
        return Steps(DecisionSteps(ids, (place,), np.zeros(len(ids), np.float32)), terminals)


def echo(place: np.ndarray) -> Actions:
    """What EchoWorld wants to hear."""
    return Actions(place[:, :2] + place[:, 2:] / 64, (place.sum(1, keepdims=True) % 7).astype(np.int64))


class EchoPolicy:
    """Answers EchoWorld with what it expects. Keeps how many agents each call was for.

    With memory it remembers of each agent what that agent was shown last.
    """

    def __init__(self, has_memory: bool = False) -> None:
        self.memory_size = 3 if has_memory else 0
        self.version = 0
        self.calls: list[int] = []

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """The echo of the first observation, which is also its log-probability."""
        place = decisions.observations[0]
        self.calls.append(len(place))
        actions = echo(place)
        assert (memories is not None) == (self.memory_size > 0)
        return Choice(actions, actions.continuous, place, place.copy() if self.memory_size else None)

    def load(self, weights: Weights) -> None:
        """Only the version matters."""
        self.version = weights.version

    def state(self) -> State:
        """Nothing is drawn."""
        return State()

    def load_state(self, state: State) -> None:
        """Nothing is drawn."""


class MateCritic:
    """Values an agent by what it and its mates see, one number each: its own, how many mates, and for each power of
    theirs the sum."""

    sees_mates: Literal[True] = True

    def __init__(self, memory_size: int = 0) -> None:
        self.num_rows: list[int] = []  # of each call
        self._memory_size = memory_size

    def place(self, array: np.ndarray) -> np.ndarray:
        """The array itself."""
        return array

    def values(
        self, features: Features, sequences: Sequences | None, joint: JointInputs
    ) -> tuple[Float32, Float32 | None]:
        """f32[B, 4]. It remembers nothing."""
        (own,), (others,) = features, joint.others
        self.num_rows.append(len(own))
        numbers, agents = np.concatenate([own, others])[:, 0], joint.agents[joint.of_rows]
        is_mate = (agents >= 0) & (agents != np.arange(len(own))[:, None])
        sums = [np.where(is_mate, numbers[agents] ** power, 0).sum(1) for power in (0, 1, 2)]
        memories = None if sequences is None else np.zeros((len(sequences.lengths), self._memory_size), np.float32)
        return np.stack([own[:, 0], *sums], 1).astype(np.float32), memories


class RandomPolicy:
    """Draws every number and every allowed choice evenly."""

    memory_size = 0

    def __init__(self, actions: ActionSpec, seed: int = 0) -> None:
        self.version = 0
        self._actions = actions
        self._random = np.random.default_rng(seed)

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """Actions with made-up log-probabilities."""
        count, spec = len(decisions.agent_ids), self._actions
        continuous = self._random.uniform(-1, 1, (count, spec.continuous)).astype(np.float32)
        scores = self._random.random((count, spec.mask_size))
        if decisions.action_mask is not None:
            scores[~decisions.action_mask] = -1.0
        firsts = np.cumsum([0, *spec.branches])
        chosen = [scores[:, i:j].argmax(axis=1) for i, j in itertools.pairwise(firsts)]
        discrete = np.stack(chosen, axis=1) if chosen else np.zeros((count, 0), np.int64)
        return Choice(Actions(continuous, discrete), continuous, np.zeros((count, spec.num_columns), np.float32))

    def load(self, weights: Weights) -> None:
        """Only the version matters."""
        self.version = weights.version

    def state(self) -> State:
        """Does nothing."""
        return State()

    def load_state(self, state: State) -> None:
        """Nothing to draw on from."""

    def recipe(self, copies: range, num_instances: int, num_restarts: int = 0) -> PolicyRecipe:
        """Another one, which draws other numbers."""
        actions = self._actions
        made: dict[str, Json] = {"continuous": actions.continuous, "branches": list(actions.branches)}
        return PolicyRecipe("tests.fakes:random_policy", {**made, "seed": copies.start + 1000 * num_restarts})


def random_policy(continuous: int, branches: list[int], seed: int) -> RandomPolicy:
    """The policy of a recipe."""
    return RandomPolicy(ActionSpec(continuous, tuple(branches)), seed)
