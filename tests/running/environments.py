"""Environments and trainers that fail in a run on demand, named by tests as `tests.running.environments:NAME`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.learning.trainer import Metrics, always
from rl_tui.engine.sampling.environments.toys.cues import Entities
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.sampling.environments.toys.one_step import OneStep
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    DecisionSteps,
    Float32,
    Int64,
    Observations,
    ObservationSpec,
    Steps,
    TerminalSteps,
    UnityPackage,
)

RELEASE = threading.Event()  # ends every call that hangs


class Hanging(Line):
    """A Line whose k-th step does not return until RELEASE is set."""

    def __init__(self, at: int = 40, name: str = "Walker") -> None:
        super().__init__(name, 4)
        self._at = at
        self._count = 0

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        if self._count == self._at:
            RELEASE.wait()
        return super().step(actions)


class Overwhelming(Line):
    """A Line that pays more from its k-th step on than the loss can hold."""

    def __init__(self, at: int = 40) -> None:
        super().__init__("Walker", 4)
        self._at = at
        self._count = 0

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        answer = super().step(actions)
        if self._count >= self._at:
            answer["Walker"].decisions.rewards[:] = 3e38
        return answer


class Diverging(Line):
    """A Line that pays too much from the k-th step on, or an infinite reward, until RELEASE is set."""

    def __init__(self, reward: float = 3e38, at: int = 100) -> None:
        super().__init__("Walker", 4)
        self._reward, self._at, self._count = reward, at, 0

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        answer = super().step(actions)
        if self._count >= self._at and not RELEASE.is_set():
            answer["Walker"].decisions.rewards[:] = self._reward
        return answer


class Pair:
    """Two behaviors in one environment, an agent each, whose episodes last three steps and pay one a step."""

    def __init__(self, bad: str = "", at: int = 40) -> None:
        """bad: a behavior that is paid infinitely at the k-th step."""
        self.specs = {
            name: BehaviorSpec(name, (ObservationSpec("time", (1,)),), ActionSpec(0, (2,)))
            for name in ("Left", "Right")
        }
        self.num_agents = {"Left": 1, "Right": 1}
        self._ids = np.zeros(1, np.int64)
        self._bad = bad
        self._at = at
        self._count = 0

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        return {name: Steps(self._decisions(0.0)) for name in self.specs}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        return {name: self._answer(name) for name in self.specs}

    def close(self) -> None:
        pass

    def _answer(self, name: str) -> Steps:
        reward = 3e38 if name == self._bad and self._count >= self._at else 1.0
        if self._count % 3:
            return Steps(self._decisions(reward))
        seen = (np.full((1, 1), 3, np.float32),)
        final = TerminalSteps(self._ids, seen, np.full(1, reward, np.float32), np.zeros(1, np.bool_))
        return Steps(self._decisions(0.0), final)

    def _decisions(self, reward: float) -> DecisionSteps:
        seen = (np.full((1, 1), self._count % 3, np.float32),)
        return DecisionSteps(self._ids, seen, np.full(1, reward, np.float32))


class BuggyTrainer(PPOTrainer):
    """PPO with a mistake in its third update."""

    def update(self, step: int, should_continue: Callable[[], bool] = always) -> Metrics:
        metrics = super().update(step, should_continue)
        if self.num_updates == 3:
            raise ZeroDivisionError("an internal error")
        return metrics


class Breaking(Line):
    """A Line whose first step raises."""

    def __init__(self) -> None:
        super().__init__("Line", 4)

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        raise RuntimeError("the leg broke off")


class Wanted(OneStep):
    """A task whose only goal is a set of entities."""

    def __init__(self) -> None:
        cue = Entities()
        entities, position = cue.observations
        cue.observations = (replace(entities, name="wanted", is_goal=True), position)
        super().__init__("Walker", 4, cue)


class _Snow:
    """Images of noise, as a player's camera would show them uncompressed."""

    observations = (ObservationSpec("Raw", (20, 20, 3)),)

    def draw(self, random: np.random.Generator, num_agents: int) -> tuple[Observations, Float32]:
        return (random.random((num_agents, 20, 20, 3), np.float32),), np.ones(num_agents, np.float32)


class Filmed(OneStep):
    """A task with images, as of a player that was built with this package."""

    package: UnityPackage | None = None

    def __init__(self) -> None:
        super().__init__("Walker", 4, _Snow())
        self.specs = {name: replace(spec, unity_package=self.package) for name, spec in self.specs.items()}


class Unbuilt(Line):
    """A Line whose constructor raises."""

    def __init__(self) -> None:
        super().__init__("Walker", 4)
        raise KeyError("entrance")


def made_forever() -> Line:
    """A factory that does not return until RELEASE is set."""
    RELEASE.wait()
    return Line("Walker", 1)


def never_made() -> Line:
    raise RuntimeError("no screen here")


class Watched(Line):
    """A Line of four agents. Of two that are made in a row, the second, on which a policy is evaluated, has a fault
    from the tenth step after a reset on: it raises, hangs until RELEASE is set, or its episodes never end."""

    num_made = 0
    evaluating = threading.Event()  # the second one has come to that step

    def __init__(self, fault: str = "") -> None:
        super().__init__("Walker", 4)
        Watched.num_made += 1
        self._fault = fault if Watched.num_made % 2 == 0 else ""
        self._count = 0

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        self._count = 0
        return super().reset(seed)

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        if self._fault and self._count == 10:
            Watched.evaluating.set()
        if self._fault and self._count >= 10:
            if self._fault == "raises":
                raise ValueError("the wheels came off")
            if self._fault == "hangs":
                RELEASE.wait()
            self._positions[:] = 0
            self._num_steps[:] = 0
        return super().step(actions)


class Uneven:
    """Agents that see the step of their episode and earn one a step; the i-th agent's episodes have lengths[i] steps.

    is_reborn: every episode has another agent, with an id of its own. group_reward: what the agents, who are a group,
    earn together in each step; 0 without groups.
    """

    def __init__(self, lengths: tuple[int, ...], is_reborn: bool = False, group_reward: float = 0.0) -> None:
        self.specs = {"Walker": BehaviorSpec("Walker", (ObservationSpec("step", (1,)),), ActionSpec(0, (2,)))}
        self.num_agents = {"Walker": len(lengths)}
        self._lengths = np.array(lengths)
        self._ids = np.arange(len(lengths))
        self._steps = np.zeros(len(lengths), np.int64)
        self._is_reborn = is_reborn
        self._group_reward = group_reward

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        self._steps[:] = 0
        return {"Walker": Steps(self._decisions(np.zeros(len(self._ids), np.bool_)))}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._steps += 1
        ended = self._steps >= self._lengths
        rewards = np.ones(int(ended.sum()), np.float32)
        seen = (self._steps[ended, None].astype(np.float32),)
        groups, shared = self._group(rewards)
        final = TerminalSteps(self._ids[ended], seen, rewards, np.zeros(len(rewards), np.bool_), groups, shared)
        self._steps[ended] = 0
        if self._is_reborn:
            self._ids = np.where(ended, self._ids + len(self._ids), self._ids)
        return {"Walker": Steps(self._decisions(~ended), final)}

    def close(self) -> None:
        pass

    def _decisions(self, earned: np.ndarray[Any, np.dtype[np.bool_]]) -> DecisionSteps:
        rewards = earned.astype(np.float32)
        groups, shared = self._group(rewards)
        seen = (self._steps[:, None].astype(np.float32),)
        return DecisionSteps(self._ids, seen, rewards, group_ids=groups, group_rewards=shared)

    def _group(self, rewards: Float32) -> tuple[Int64 | None, Float32 | None]:
        """Group ids and rewards of those who earned these rewards themselves."""
        if not self._group_reward:
            return None, None
        return np.full(len(rewards), 5), rewards * np.float32(self._group_reward)


class MortalUneven(Uneven):
    """An Uneven whose process ends at its fourth step, unless the folder has a file `died`; then the ids are others."""

    def __init__(self, folder: str, lengths: list[int]) -> None:
        super().__init__(tuple(lengths))
        self._mark = Path(folder) / "died"
        self._is_last_life = self._mark.exists()
        if self._is_last_life:
            self._ids = self._ids + 10
        self._count = 0

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        if self._count == 4 and not self._is_last_life:
            self._mark.touch()
            os._exit(7)
        return super().step(actions)
