"""Moving agents of the toy tasks."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.factory import make_environments
from rl_tui.engine.sampling.environments.toys.moves import ActionKind
from rl_tui.engine.specs import Actions, Float32, Json, Steps


def make(name: str, num_agents: int = 4, **kwargs: Json) -> Environment:
    """The toy task of this name."""
    [environment] = make_environments(f"toy:{name}", "B", range(num_agents), kwargs)
    return environment


def moving(moves: Float32, kind: ActionKind = "discrete") -> Actions:
    """Every agent moves so; by choices only -1, 0 and 1."""
    columns = np.reshape(moves, (-1, 1))
    none = np.zeros((len(columns), 0))
    continuous = none if kind == "discrete" else columns
    choices = none if kind == "continuous" else columns + 1
    return Actions(continuous.astype(np.float32), choices.astype(np.int64))


def step(environment: Environment, moves: Float32, kind: ActionKind = "discrete") -> Steps:
    """What follows when every agent moves so."""
    return environment.step({"B": moving(moves, kind)})["B"]


def rewards_of(environment: Environment, steps: Steps, guess: object, num_steps: int = 200) -> Float32:
    """Rewards of tasks of one step when agents move as `guess` says, given their observations."""
    earned = []
    for _ in range(num_steps):
        steps = step(environment, guess(*steps.decisions.observations))  # type: ignore[operator]  # a function of observations
        assert steps.terminals is not None
        assert not steps.terminals.truncated.any()
        earned.append(steps.terminals.rewards)
    return np.concatenate(earned)
