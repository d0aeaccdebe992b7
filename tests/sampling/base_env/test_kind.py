"""The names of BaseEnvs, and what their factories return."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.base_env.environment import BaseEnvironment
from rl_tui.engine.sampling.environments.base_env.interface import ActionTuple, action_tuple
from rl_tui.engine.sampling.environments.factory import EnvironmentSource, make_environments, require_environment
from rl_tui.engine.sampling.parameters import Parameters
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.serial import SerialPool
from tests.sampling.base_env.disguise import Disguised, toy
from tests.sampling.driving import actions_for, history

HERE = __name__
NUMBERS: list[int] = []
ONE = toy("line")


def make(env: str, num_copies: int = 2, **kwargs: Any) -> list[Any]:
    return list(make_environments(env, "Walker", range(num_copies), kwargs))


def numbered(worker_id: int, agents: int = 1) -> Disguised:
    """As factories of ML-Agents take it."""
    NUMBERS.append(worker_id)
    return toy("line", num_agents=agents)


class Tuned(Disguised):
    """Its agents are as many as a parameter says at the first reset."""

    def __init__(self) -> None:
        super().__init__(toy("line").inner)

    def set_parameters(self, parameters: Parameters) -> None:
        self.inner = toy("line", num_agents=int(parameters.draw("agents"))).inner


def shared() -> Disguised:
    return ONE


def nothing() -> None:
    """Returns no environment."""


class UnityToGymWrapper:
    """As one of mlagents_envs."""

    def __init__(self) -> None:
        self._env = toy("line")


UnityToGymWrapper.__module__ = "mlagents_envs.envs.unity_gym_env"


@pytest.mark.parametrize(
    "env", ["mlagents:tests.sampling.base_env.disguise:toy", "tests.sampling.base_env.disguise:toy"]
)
def test_each_copy_is_a_base_env_of_its_own_with_or_without_its_kind_in_the_name(env: str) -> None:
    first, second = make(env, name="line", num_agents=4)
    assert isinstance(first, BaseEnvironment)
    assert first is not second
    assert second.num_agents == {"Walker": 4}


def test_a_factory_that_takes_a_worker_id_gets_the_number_of_the_copy() -> None:
    NUMBERS.clear()
    make(f"mlagents:{HERE}:numbered", 3, agents=2)
    EnvironmentSource(f"mlagents:{HERE}:numbered", "Walker", {}, first_copy=4).make(1, 1)
    make(f"mlagents:{HERE}:numbered", 1, worker_id=9)
    assert NUMBERS == [0, 1, 2, 5, 9]


@pytest.mark.parametrize(
    ("env", "kwargs", "words"),
    [
        ("mlagents:my_world", {}, "^mlagents:my_world: must be mlagents:package.module:factory$"),
        (f"mlagents:{HERE}:", {}, f"^mlagents:{HERE}:: must be mlagents:package.module:factory$"),
        ("mlagents:nowhere_at_all:make", {}, "no module named 'nowhere_at_all'"),
        (f"mlagents:{HERE}:numberd", {}, "has no attribute 'numberd'. Did you mean numbered?"),
        (f"mlagents:{HERE}:numbered", {"agent": 1}, r"invalid env_kwargs: numbered\(.*unexpected keyword .* 'agent'"),
        (f"mlagents:{HERE}:nothing", {}, "must return a BaseEnv of mlagents_envs, got None$"),
        (f"mlagents:{HERE}:shared", {}, "must return a new environment at each of 2 calls, got the same Disguised"),
        (
            "mlagents:tests.sampling.worlds:Counting",
            {},
            "got Counting, which has no behavior_specs, get_steps, set_actions$",
        ),
        (
            f"mlagents:{HERE}:UnityToGymWrapper",
            {},
            "must return the BaseEnv that UnityToGymWrapper wraps, without that wrapper, got UnityToGymWrapper$",
        ),
        (f"{HERE}:UnityToGymWrapper", {}, "must return the BaseEnv that UnityToGymWrapper wraps"),
    ],
)
def test_what_is_no_base_env_is_refused_by_name(env: str, kwargs: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make(env, **kwargs)


def test_a_name_is_looked_up_before_anything_is_made() -> None:
    require_environment(f"mlagents:{HERE}:nothing")
    with pytest.raises(ConfigError, match="has no attribute 'numberless'"):
        require_environment(f"mlagents:{HERE}:numberless")


def test_worker_processes_give_what_this_process_gives() -> None:
    source = EnvironmentSource("mlagents:tests.sampling.base_env.disguise:toy", "Walker", {"name": "line"})
    pools = SerialPool("x", source.make, 2), ProcessPool(source, 2, 2)
    histories = []
    for pool in pools:
        pool.start()
        try:
            histories.append([sorted(answers.items()) for answers in history(pool, 20)])
        finally:
            pool.close()
    assert len(histories[0]) == 21
    assert repr(histories[0]) == repr(histories[1])


def test_parameters_reach_a_base_env_with_a_method_for_them_before_its_first_reset() -> None:
    pool = SerialPool("x", EnvironmentSource(f"mlagents:{HERE}:Tuned", "Walker", {}).make, 1)
    pool.set_parameters({"agents": 5.0})
    pool.start()
    assert pool.num_agents == {"Walker": 5}
    pool.close()
    other = SerialPool("y", EnvironmentSource(f"mlagents:{HERE}:shared", "Walker", {}).make, 1)
    other.set_parameters({"agents": 5.0})
    with pytest.raises(ConfigError, match=r"y must have a method set_parameters to take them \(agents\)"):
        other.start()


def test_actions_are_of_the_class_that_mlagents_envs_has_where_it_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A BaseEnv may look at their type."""

    class Own(ActionTuple):
        """Another class with the same arguments."""

    [environment] = make(f"mlagents:{HERE}:shared", 1)
    actions = actions_for(environment.specs["Walker"], 1, np.random.default_rng(0))
    assert type(action_tuple(actions)) is ActionTuple
    module = ModuleType("mlagents_envs.base_env")
    module.ActionTuple = Own  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlagents_envs.base_env", module)
    assert type(action_tuple(actions)) is Own


def test_none_of_this_imports_mlagents_envs() -> None:
    make(f"mlagents:{HERE}:numbered", worker_id=1)
    assert not [name for name in sys.modules if name.partition(".")[0] == "mlagents_envs"]
