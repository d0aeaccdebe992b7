"""What the choices of environments are called."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import gymnasium
import pytest

from rl_tui.engine.sampling.environments.choice_names import BY_ID
from rl_tui.engine.sampling.environments.factory import make_environments
from rl_tui.engine.sampling.environments.gymnasium_loop import GymnasiumLoop
from rl_tui.engine.sampling.pools.wire import spec_from_json, spec_to_json
from rl_tui.engine.specs import BehaviorSpec

WITHOUT_BOX2D = sorted(BY_ID.keys() - {"LunarLander"})


class Console(gymnasium.Env[Any, Any]):
    """Says itself what its actions mean, as Atari's environments do."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, meanings: object) -> None:
        self._meanings = meanings

    def get_action_meanings(self) -> object:
        """Whatever a test wants."""
        return self._meanings


def newest(name: str) -> str:
    """The id of its newest version; ValueError where Gymnasium has none."""
    return max(spec.id for spec in gymnasium.registry.values() if spec.name == name and spec.namespace is None)


def spec_of(env: str, **kwargs: object) -> BehaviorSpec:
    (environment,) = make_environments(env, "B", range(1), kwargs)
    with contextlib.closing(environment):
        return environment.specs["B"]


@pytest.mark.parametrize("name", WITHOUT_BOX2D)
def test_known_environment_has_a_name_for_each_choice(name: str) -> None:
    assert spec_of(f"gymnasium:{newest(name)}").choice_names == BY_ID[name]


@pytest.mark.parametrize(("name", "action"), [("FrozenLake-v1", "down"), ("CliffWalking-v1", "up")])
def test_name_says_where_a_choice_leads(name: str, action: str) -> None:
    """Both worlds number their cells row by row."""
    kwargs = {"is_slippery": False}
    environment = gymnasium.make(name, **kwargs)
    start, _ = environment.reset(seed=1)
    width = 4 if action == "down" else 12
    place = environment.step(BY_ID[name.partition("-")[0]].index(action))[0]
    assert int(place) - int(start) == (width if action == "down" else -width)


def test_environment_that_names_its_actions_is_asked() -> None:
    assert GymnasiumLoop("B", [Console(["NOOP", "FIRE", "UP"])]).specs["B"].choice_names == ("noop", "fire", "up")
    for other in (["NOOP"], [1, 2, 3], None):
        assert GymnasiumLoop("B", [Console(other)]).specs["B"].choice_names == ()


def test_toys_name_their_moves_and_others_have_no_names() -> None:
    assert spec_of("toy:rooms").choice_names == ("up", "down", "left", "right")
    for toy in ("line", "one-step", "memory", "catch"):
        assert spec_of(f"toy:{toy}").choice_names == ("left", "stay", "right")
        assert spec_of(f"toy:{toy}", actions="continuous").choice_names == ()
    assert spec_of("gymnasium:Pendulum-v1").choice_names == ()


def test_worker_process_sends_the_names() -> None:
    spec = spec_of(f"gymnasium:{newest('Taxi')}")
    sent: Any = json.loads(json.dumps(spec_to_json(spec)))
    assert spec_from_json(sent).choice_names == spec.choice_names == BY_ID["Taxi"]


OF_PETTINGZOO = {
    "classic/rps_v2": ("rock", "paper", "scissors"),
    "mpe2.simple_spread_v3": ("stay", "left", "right", "down", "up"),
    "classic/tictactoe_v3": (),
}


@pytest.mark.parametrize("name", OF_PETTINGZOO)
def test_games_of_pettingzoo_have_names_where_they_are_known(name: str) -> None:
    pytest.importorskip("pettingzoo")
    assert spec_of(f"pettingzoo:{name}").choice_names == OF_PETTINGZOO[name]


def test_a_game_with_another_number_of_choices_has_none() -> None:
    pytest.importorskip("pettingzoo")
    assert spec_of("pettingzoo:classic/rps_v2", num_actions=5).choice_names == ()


def test_moves_go_where_their_names_say() -> None:
    spread = pytest.importorskip("mpe2.simple_spread_v3").parallel_env(N=1)
    for move, way in enumerate(((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))):
        spread.reset(seed=1)
        seen, *_ = spread.step({"agent_0": move})
        velocity = seen["agent_0"][:2]
        assert [int(number > 0.1) - int(number < -0.1) for number in velocity] == list(way), OF_PETTINGZOO
