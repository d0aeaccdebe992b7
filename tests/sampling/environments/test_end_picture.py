"""Environments that begin their next episode by themselves still draw how the last one ended, where that is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import pytest

from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.sampling.environments.base import Environment, Rendered, ShowsEnds
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.gymnasium_loop import GymnasiumLoop
from rl_tui.engine.specs import Actions, Steps

LAKE = EnvironmentSource("gymnasium:FrozenLake-v1", "B", {"is_slippery": False}).watched()
AGENTS = {"P?team=0": ["player_1"], "P?team=1": ["player_2"]}
TICTACTOE = EnvironmentSource("pettingzoo:classic/tictactoe_v3", "P", {}, adaptation=Adaptation(behaviors=AGENTS))
DOWN, RIGHT = 1, 2
FIRST_WINS = (0, 1, 3, 4, 6)


def made(source: EnvironmentSource) -> Environment:
    [environment] = source.make(0, 1)
    environment.reset(1)
    return environment


def act(environment: Environment, steps: Mapping[str, Steps] | None, choice: int) -> Mapping[str, Steps]:
    """The agent that waits takes that choice."""
    nothing = Actions(np.empty((0, 0), np.float32), np.empty((0, 1), np.int64))
    one = Actions(np.empty((1, 0), np.float32), np.array([[choice]]))
    waits = {
        name: steps is None or (name in steps and len(steps[name].decisions.agent_ids)) for name in environment.specs
    }
    return environment.step({name: one if waits[name] else nothing for name in environment.specs})


def drawn(environment: Environment) -> Any:  # Any: a frame or text
    assert isinstance(environment, Rendered)
    return environment.render()


@pytest.mark.parametrize("shows", [False, True])
def test_end_of_an_episode_is_drawn_until_the_next_step_where_that_is_wanted(shows: bool) -> None:
    environment = made(LAKE.showing_ends() if shows else LAKE)
    first = drawn(environment)
    assert "\x1b[41mS" in first
    steps = None
    for choice in (RIGHT, DOWN):  # into a hole
        steps = act(environment, steps, choice)
    ended = drawn(environment)
    assert ("\x1b[41mH" in ended, ended == drawn(environment)) == (shows, True)
    act(environment, steps, RIGHT)
    assert "\x1b[41mF" in drawn(environment)


def test_reset_from_outside_begins_a_picture_of_its_own() -> None:
    environment = made(LAKE.showing_ends())
    drawn(environment)
    steps = None
    for choice in (RIGHT, DOWN):
        steps = act(environment, steps, choice)
    environment.reset(2)
    assert "\x1b[41mS" in drawn(environment)


def test_games_in_turns_show_their_ends() -> None:
    pytest.importorskip("pettingzoo")
    [environment] = TICTACTOE.watched().showing_ends().make(0, 1)
    steps = environment.reset(1)
    empty = drawn(environment)
    pictures = [empty]
    for choice in FIRST_WINS:
        steps = act(environment, steps, choice)
        pictures.append(drawn(environment))
    assert all(steps[name].terminals is not None for name in steps), "the next game has begun"
    filled = [int((picture != empty).any(axis=2).sum()) for picture in pictures]
    assert filled == sorted(filled)
    assert filled[-1] > filled[-2], "and the fifth mark is on the board"
    environment.reset(None)
    assert (drawn(environment) == empty).all()


class Undrawable(gymnasium.Env[Any, Any]):
    """Cannot be drawn, and ends at each step."""

    render_mode = "rgb_array"
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, **_: Any) -> Any:
        return 0, {}

    def step(self, action: Any) -> Any:
        return 1, 1.0, True, False, {}

    def render(self) -> Any:
        raise ValueError("no display")


def test_what_cannot_be_drawn_fails_no_step() -> None:
    environment = GymnasiumLoop("B", [Undrawable()])
    assert isinstance(environment, ShowsEnds)
    environment.show_ends()
    environment.reset(1)
    with pytest.raises(ValueError, match="no display"):
        environment.render()
    assert act(environment, None, 1)["B"].terminals is not None
