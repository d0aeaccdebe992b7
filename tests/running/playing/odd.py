"""Environments that a person cannot play, or not for long, named by tests as `tests.running.playing.odd:NAME`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    DecisionSteps,
    ObservationSpec,
    Steps,
    TerminalSteps,
)


class Several(gymnasium.Env[Any, Any]):
    """With the actions that it is given."""

    observation_space = gymnasium.spaces.Discrete(2)

    def __init__(self, sizes: list[int]) -> None:
        self.action_space = gymnasium.spaces.MultiDiscrete(sizes)


class Pair(Line):
    """Two agents."""

    def __init__(self) -> None:
        super().__init__("A", 2)


class Two(Line):
    """Two behaviors."""

    def __init__(self) -> None:
        super().__init__("A", 1)
        other = BehaviorSpec("B", (ObservationSpec("x", (1,)),), ActionSpec(0, (2,)))
        self.specs = {**self.specs, "B": other}
        self.num_agents = {**self.num_agents, "B": 1}


class Breaking(Line):
    """Fails at its k-th step, and prints what would spoil a screen."""

    def __init__(self, at: int = 5) -> None:
        super().__init__("A", 1)
        self._left = at

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        print("printed")
        self._left -= 1
        if not self._left:
            raise ValueError("broken")
        return super().step(actions)


class Undrawn(gymnasium.Env[Any, Any]):
    """Cannot be made with a render mode."""

    metadata = {"render_modes": ["rgb_array"]}
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode: str | None = None) -> None:
        if render_mode is not None:
            raise ValueError("no display")

    def reset(self, **_: Any) -> Any:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.ones(2, np.float32), 1.0, True, False, {}


class Passing(Line):
    """Its agent comes after two steps, and leaves after three more without an end, when another comes; then both."""

    def __init__(self, *, doubles: bool = False) -> None:
        super().__init__("A", 1)
        self._time, self._doubles = 0, doubles

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        return self._now(super().reset(seed))

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._time += 1
        if len(actions["A"].discrete) == 0:
            return self._now(super().reset(1))
        return self._now(super().step({"A": Actions(actions["A"].continuous[:1], actions["A"].discrete[:1])}))

    def _now(self, steps: Mapping[str, Steps]) -> Mapping[str, Steps]:
        decisions = steps["A"].decisions
        agents = [] if self._time < 2 else [7] if self._time < 5 else [8, 9] if self._doubles else [8]
        rows = [0] * len(agents)
        observations = tuple(column[rows] for column in decisions.observations)
        decisions = DecisionSteps(np.array(agents, np.int64), observations, decisions.rewards[rows])
        return {"A": Steps(decisions)}


class Duel:
    """Two agents of one behavior act at once, three times. The larger choice of the last time wins 1, the smaller one
    loses it. Each observes the time and its own last choice. fails_at: the step that raises, 0 for none.

    steers: the second one has a behavior of its own, Steering, with a number to choose.
    """

    def __init__(self, fails_at: int = 0, *, steers: bool = False) -> None:
        seen = (ObservationSpec("time", (1,)), ObservationSpec("own", (1,)))
        first, second = ("Duel?team=0", "Steering") if steers else ("Duel?team=0", "Duel?team=1")
        actions = {first: ActionSpec(0, (3,)), second: ActionSpec(1) if steers else ActionSpec(0, (3,))}
        self.specs = {name: BehaviorSpec(name, seen, spec) for name, spec in actions.items()}
        self.num_agents = dict.fromkeys(self.specs, 1)
        self._fails_at, self._count, self._time = fails_at, 0, 0
        self._chosen = dict.fromkeys(self.specs, 0.0)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        self._time, self._chosen = 0, dict.fromkeys(self.specs, 0.0)
        return {name: Steps(self._decisions(name)) for name in self.specs}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        if self._count == self._fails_at:
            raise ValueError("broken")
        self._time += 1
        for name, action in actions.items():
            self._chosen[name] = float(action.discrete[0, 0] if action.discrete.size else action.continuous[0, 0])
        if self._time < 3:
            return {name: Steps(self._decisions(name)) for name in self.specs}
        first, second = self._chosen.values()
        sign = np.sign(first - second)
        ends = {
            name: TerminalSteps(*self._seen(name), np.array([reward], np.float32), np.zeros(1, np.bool_))
            for name, reward in zip(self.specs, (sign, -sign), strict=True)
        }
        begun = self.reset(None)
        return {name: Steps(begun[name].decisions, ends[name]) for name in self.specs}

    def close(self) -> None:
        pass

    def render(self) -> str:
        return f"time {self._time}"

    def _decisions(self, name: str) -> DecisionSteps:
        return DecisionSteps(*self._seen(name), np.zeros(1, np.float32))

    def _seen(self, name: str) -> Any:
        ids = np.array([list(self.specs).index(name)])
        return ids, tuple(np.array([[value]], np.float32) for value in (self._time, self._chosen[name]))


class Late(Line):
    """Its first agent acts once, and then only the second one, until a reset."""

    def __init__(self) -> None:
        super().__init__("Late", 2)
        self._time = 0

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        self._time = 0
        return super().reset(seed)

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._time += 1
        rows = actions["Late"].discrete
        both = rows if len(rows) == 2 else np.concatenate([rows, rows])
        steps = super().step({"Late": Actions(np.empty((2, 0), np.float32), both)})["Late"]
        decisions = steps.decisions
        observations = tuple(column[1:] for column in decisions.observations)
        return {"Late": Steps(DecisionSteps(decisions.agent_ids[1:], observations, decisions.rewards[1:]))}
