"""Small Gymnasium environments, and some that fail on demand, named by tests as `tests.sampling.worlds:NAME`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.specs import Actions, ActionSpec, BehaviorSpec, DecisionSteps, Int64, ObservationSpec, Steps


class Counting(gymnasium.Env[Any, Any]):
    """Observes (episode, step in it); the reward is the number of the step. An episode has `length` steps."""

    def __init__(self, length: int = 3, truncates: bool = False, both: bool = False) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Discrete(2)
        self._length = length
        self._endings = (True, True) if both else (not truncates, truncates)
        self._episode = -1
        self._step = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._episode += 1
        self._step = 0
        return np.array([self._episode, 0.0]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._step += 1
        ends = self._step >= self._length
        observation = np.array([self._episode, float(self._step)])
        return observation, float(self._step), ends and self._endings[0], ends and self._endings[1], {}


class Recording(gymnasium.Env[Any, Any]):
    """Any two spaces; records its actions, and returns samples as observations."""

    def __init__(self, observation_space: Any = None, action_space: Any = None, infos: Any = None) -> None:
        self.observation_space = spaces.Box(-1, 1, (1,)) if observation_space is None else observation_space
        self.action_space = spaces.Discrete(2) if action_space is None else action_space
        self.infos = infos or {}
        self.taken: list[Any] = []
        self.shown: Any = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.shown = self.observation_space.sample()
        return self.shown, self.infos

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.taken.append(action)
        self.shown = self.observation_space.sample()
        return self.shown, 0.0, False, False, self.infos


class Camera(gymnasium.Env[Any, Any]):
    """Two images, a goal, and the number of the step. Episodes have 4 steps."""

    def __init__(self) -> None:
        self.observation_space = spaces.Dict(
            {
                "eyes": spaces.Tuple((spaces.Box(0, 255, (3, 6, 5), np.uint8), spaces.Box(0, 1, (5, 4, 2)))),
                "desired_goal": spaces.Box(-1, 1, (2,)),
                "step": spaces.Box(0, 4, (1,)),
            }
        )
        self.action_space = spaces.Box(-1, 1, (1,))
        self._step = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        return self._show(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._step += 1
        return self._show(), float(action[0]), False, self._step == 4, {}

    def _show(self) -> Any:
        eyes = self.np_random.integers(0, 256, (3, 6, 5), np.uint8), self.np_random.random((5, 4, 2), np.float32)
        goal = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return {"eyes": eyes, "desired_goal": goal, "step": np.array([self._step], np.float32)}


def vectorized(mode: str = "NEXT_STEP", num_envs: int = 2, **kwargs: Any) -> SyncVectorEnv:
    """Copies of Counting in Gymnasium's own vectorized form; copy i takes i steps more."""
    lengths = [{**kwargs, "length": kwargs.get("length", 2) + i} for i in range(num_envs)]
    makers = [lambda k=k: Counting(**k) for k in lengths]
    return SyncVectorEnv(makers, autoreset_mode=AutoresetMode[mode])


class Misbehaving(Line):
    """A Line that fails at step `at`; `fault` is the name of one of its methods."""

    def __init__(self, fault: str = "behaves", at: int = 3, num_agents: int = 2) -> None:
        super().__init__("Walker", num_agents)
        self._fault = fault
        self._at = at
        self._count = 0

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        answer = super().step(actions)
        if self._count == self._at:
            getattr(self, self._fault)(answer["Walker"])
        return answer

    def behaves(self, steps: Steps) -> None:
        pass

    def raises(self, steps: Steps) -> None:
        raise ValueError("the wheels\ncame off")

    def exits(self, steps: Steps) -> None:
        sys.exit("enough")

    def interrupts(self, steps: Steps) -> None:
        raise KeyboardInterrupt

    def dies(self, steps: Steps) -> None:
        os._exit(7)

    def crashes(self, steps: Steps) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    def hangs(self, steps: Steps) -> None:
        threading.Event().wait()

    def hangs_with_a_child(self, steps: Steps) -> None:
        subprocess.run(["sleep", "1000"], check=True)

    def shows_another_shape(self, steps: Steps) -> None:
        steps.decisions.observations = (np.zeros((2, 3), np.float32), steps.decisions.observations[1])

    def shows_too_little(self, steps: Steps) -> None:
        steps.decisions.observations = steps.decisions.observations[:1]

    def shows_nan(self, steps: Steps) -> None:
        steps.decisions.observations[1][1] = np.nan

    def rewards_infinity(self, steps: Steps) -> None:
        steps.decisions.rewards[1] = np.inf

    def repeats_an_id(self, steps: Steps) -> None:
        steps.decisions.agent_ids = np.zeros(2, np.int64)

    def forbids_everything(self, steps: Steps) -> None:
        steps.decisions.action_mask = np.zeros((2, 3), np.bool_)


class TwoKinds:
    """Two behaviors in one instance; every other step the crowd grows by one agent and the rest do not wait."""

    def __init__(self) -> None:
        actions = ActionSpec(2, (3, 2))
        self.specs = {
            "Crowd": BehaviorSpec("Crowd", (ObservationSpec("id", (1,)),), ActionSpec(1)),
            "Leader": BehaviorSpec("Leader", (ObservationSpec("sum", (1,)), ObservationSpec("map", (2, 2))), actions),
        }
        self.num_agents = {"Crowd": 1, "Leader": 1}
        self._count = 0
        self._heard = 0.0

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        self._count = 0
        self._heard = 0.0
        return self._answer()

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        leader = actions["Leader"]
        self._heard = float(actions["Crowd"].continuous.sum() + leader.continuous.sum() + leader.discrete.sum())
        return self._answer()

    def close(self) -> None:
        pass

    def _answer(self) -> Mapping[str, Steps]:
        ids = np.arange(self._count + 1, dtype=np.int64)
        crowd = Steps(DecisionSteps(ids, (ids[:, None].astype(np.float32),), np.zeros(len(ids), np.float32)))
        if self._count % 2:
            return {"Crowd": crowd}
        one = np.zeros(1, np.int64)
        seen = (np.full((1, 1), self._heard, np.float32), np.ones((1, 2, 2), np.float32))
        mask = np.ones((1, 5), np.bool_)
        return {"Crowd": crowd, "Leader": Steps(DecisionSteps(one, seen, np.ones(1, np.float32), mask))}


class Passersby:
    """Agents that are replaced by others after three steps, without an end of their episodes."""

    def __init__(self, num_agents: int) -> None:
        self.specs = {"Crowd": BehaviorSpec("Crowd", (ObservationSpec("id", (1,)),), ActionSpec(1))}
        self.num_agents = {"Crowd": num_agents}
        self._count = 0

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        return self._answer()

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        return self._answer()

    def close(self) -> None:
        pass

    def _answer(self) -> Mapping[str, Steps]:
        count = self.num_agents["Crowd"]
        ids = np.arange(count, dtype=np.int64) + self._count // 3 * count
        return {"Crowd": Steps(DecisionSteps(ids, (ids[:, None].astype(np.float32),), np.ones(count, np.float32)))}


class Latecomers:
    """An early behavior of one agent, and a late one that appears at step `at` in two teams, one after the other.

    The first team's agents see 0.5 and do 10, 11; the second's see 1.5 and do 20, 21, 22, from one step later on. All
    are paid what their last action was. width: of the late one's observation. names: of its teams.
    """

    def __init__(
        self,
        at: int = 3,
        width: int = 1,
        names: Sequence[str] = ("Late?team=0", "Late?team=3"),
        ids: Sequence[Sequence[int]] = ((10, 11), (20, 21, 22)),
    ) -> None:
        self.specs: dict[str, BehaviorSpec] = {}
        self.num_agents: dict[str, int] = {}
        self._at, self._width, self._names = at, width, names
        self._ids = [np.array(each, np.int64) for each in ids]
        self._early = np.zeros(1, np.int64)
        self._count = 0
        self._appear("Early", 1)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        self._count = 0
        return self._answer({})

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        assert actions.keys() == self.specs.keys(), "every behavior and team by its own name"
        self._count += 1
        return self._answer(actions)

    def close(self) -> None:
        pass

    def _appear(self, name: str, num_agents: int) -> None:
        width = 1 if name == "Early" else self._width
        if name not in self.specs:
            self.specs[name] = BehaviorSpec(name, (ObservationSpec("who", (width,)),), ActionSpec(1))
            self.num_agents[name] = num_agents

    def _answer(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        answer = {"Early": self._steps("Early", self._early, 0.0, actions)}
        for index, (name, ids) in enumerate(zip(self._names, self._ids, strict=True)):
            if self._count >= self._at + index:
                self._appear(name, len(ids))
                answer[name] = self._steps(name, ids, index + 0.5, actions)
        return answer

    def _steps(self, name: str, ids: Int64, seen: float, actions: Mapping[str, Actions]) -> Steps:
        done = actions[name].continuous[:, 0] if name in actions else np.zeros(0, np.float32)
        rewards = done if len(done) else np.zeros(len(ids), np.float32)
        width = self.specs[name].observations[0].shape[0]
        return Steps(DecisionSteps(ids, (np.full((len(ids), width), seen, np.float32),), rewards))


class LateInTurn(Latecomers):
    """The late behavior appears at another step, and has another width, in every second instance that is made."""

    num_made = 0

    def __init__(self) -> None:
        LateInTurn.num_made += 1
        super().__init__(at=2 + LateInTurn.num_made % 2, width=1 + LateInTurn.num_made % 2)


NOT_CALLABLE = 3


ONE = gymnasium.make("CartPole-v1")


def gives_the_same() -> object:
    return ONE


def gives_the_same_wrapped() -> object:
    return gymnasium.wrappers.TimeAwareObservation(ONE)


def gives_a_number() -> int:
    return 3
