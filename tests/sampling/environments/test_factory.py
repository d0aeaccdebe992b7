"""From the text that names an environment to its instances, or to a message that says what is wrong with the text."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.vector import SyncVectorEnv

from rl_tui.engine.errors import ConfigError, RlTuiError
from rl_tui.engine.sampling.environments.base import Rendered
from rl_tui.engine.sampling.environments.factory import EnvironmentSource, make_environments
from rl_tui.engine.sampling.environments.gymnasium_loop import GymnasiumLoop
from rl_tui.engine.sampling.environments.gymnasium_vector import GymnasiumVector
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.sampling.environments.toys.one_step import OneStep
from rl_tui.engine.sampling.environments.toys.pong import Pong
from rl_tui.engine.sampling.failures import InstanceFailure
from rl_tui.engine.specs import Json
from tests.sampling.worlds import Counting, Misbehaving

WORLDS = "tests.sampling.worlds"


def make(env: str, num_copies: int = 2, **kwargs: Json) -> list[object]:
    return list(make_environments(env, "B", range(num_copies), kwargs))


@pytest.mark.parametrize(
    ("env", "kinds"),
    [
        ("gymnasium:CartPole-v1", [GymnasiumVector]),
        ("gymnasium:Acrobot-v1", [GymnasiumLoop]),
        ("gymnasium:gymnasium.envs.classic_control:Acrobot-v1", [GymnasiumLoop]),
        ("toy:line", [Line]),
        ("toy:pong", [Pong]),
        ("toy:one-step", [OneStep]),
        ("toy:cart-pole-positions", [GymnasiumVector]),
        ("toy:frames", [GymnasiumLoop]),
        (f"{WORLDS}:Counting", [GymnasiumLoop]),
        (f"{WORLDS}:vectorized", [GymnasiumVector, GymnasiumVector]),
        (f"{WORLDS}:Misbehaving", [Misbehaving, Misbehaving]),
    ],
)
def test_name_gives_instances_that_hold_all_copies(env: str, kinds: list[type]) -> None:
    assert [type(environment) for environment in make(env)] == kinds


def test_arguments_reach_the_factory() -> None:
    [environment] = make(f"{WORLDS}:Misbehaving", 1, num_agents=5)
    assert isinstance(environment, Misbehaving)
    assert environment.num_agents == {"Walker": 5}


@pytest.mark.parametrize(
    ("env", "kwargs", "words"),
    [
        (
            "CartPole-v1",
            {},
            "^CartPole-v1: must be gymnasium:ID, toy:NAME, pettingzoo:NAME, mlagents:.*, unity:PATH or package",
        ),
        (":make", {}, "the module must be named like my_world or package.module, got ''"),
        ("gymnasium:.world:X-v0", {}, "the module must be named like .*, got '.world'"),
        (
            "__main__:make",
            {},
            "this program defines no make. An environment of a script or a notebook exists only there",
        ),
        ("gymnasium:CartPol-v1", {}, "no such Gymnasium environment. Did you mean gymnasium:CartPole-v1[?]$"),
        ("gymnasium:CartPole", {}, "no such Gymnasium environment. Did you mean gymnasium:CartPole-v1[?]$"),
        ("gymnasium:CartPole-v9", {}, "`v0`, `v1`"),
        ("gymnasium:Maze/Small-v0", {}, "no module has registered Maze. .* gymnasium:MODULE:Maze/Small-v0$"),
        ("gymnasium:nowhere_at_all:X-v0", {}, "no module named 'nowhere_at_all'"),
        (
            "gymnasium:phys2d/CartPole-v1",
            {},
            r"it needs JAX, which is not installed. Install it with: .*'gymnasium\[jax\]'$",
        ),
        ("gymnasium:CartPole-v1", {"gravity": 3}, "invalid env_kwargs: .*__init__.* argument 'gravity'$"),
        ("gymnasum:CartPole-v1", {}, "no module named 'gymnasum'. Did you mean gymnasium:CartPole-v1"),
        (f"{WORLDS}:Countin", {}, "has no attribute 'Countin'. Did you mean Counting"),
        ("worlds.py:Counting", {}, "no module named 'worlds(.py)?'. Did you mean worlds:Counting[?]$"),
        ("tests.nowhere:make", {}, "no module named 'tests.nowhere'"),
        (f"{WORLDS}:Counting", {"lenth": 3}, r"invalid env_kwargs: Counting\(.*unexpected keyword argument 'lenth'"),
        (f"{WORLDS}:NOT_CALLABLE", {}, "NOT_CALLABLE must be a class or a function, got int"),
        (f"{WORLDS}:gives_the_same", {}, "must return a new environment at each of 2 calls, got the same .* again"),
        (f"{WORLDS}:gives_the_same_wrapped", {}, "must return a new environment at each of 2 calls"),
        (f"{WORLDS}:gives_a_number", {}, "must return a gymnasium.Env, .*, got int, which has no specs"),
        ("toy:lime", {}, "toy:lime: unknown task. Did you mean toy:line?"),
        ("toy:xyzzy", {}, "toy:xyzzy: unknown task. Known: one-step, line, entities"),
        ("toy:line", {"action": "discrete"}, "env_kwargs.action: unknown key. Did you mean actions?"),
        ("toy:frames", {"width": 3}, "env_kwargs.width: unknown key. Known: size or render_mode"),
        ("toy:line", {"actions": "both"}, 'actions: must be discrete, continuous or hybrid, got "both"'),
        ("toy:line", {"masked": 1}, "masked: must be false or true, got 1"),
        ("toy:pixels", {"size": True}, "size: must be a whole number from 8 to 256, got true"),
        ("toy:catch", {"cell_pixels": 0}, "cell_pixels: must be a whole number from 1 to 21, got 0"),
        ("toy:memory", {"delay": 2.0}, "delay: must be a whole number from 1 to 1000, got 2.0"),
        ("toy:memory", {"masked": True}, "env_kwargs.masked: unknown key"),
        ("toy:catch", {"render_mode": "human"}, 'render_mode: must be rgb_array, got "human"'),
        ("toy:pong", {"opponent": "me"}, 'opponent: must be null, tracking or random, got "me"'),
        ("toy:pong", {"opponent": False}, "opponent: must be null, tracking or random, got false"),
        ("toy:pong", {"observations": "pixels"}, 'observations: must be vector or image, got "pixels"'),
        ("toy:pong", {"players": 3}, "players: must be a whole number from 1 to 2, got 3"),
        ("toy:pong", {"points": 0}, "points: must be a whole number from 1 to 21, got 0"),
        ("toy:pong", {"point": 5}, "env_kwargs.point: unknown key. Did you mean points?"),
        ("toy:pong", {"max_episode_steps": 0}, "max_episode_steps: must be a whole number from 1 to 100000, got 0"),
    ],
)
def test_name_that_leads_nowhere_says_what_would(env: str, kwargs: dict[str, Json], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make(env, **kwargs)


@pytest.mark.skipif(find_spec("ale_py") is not None, reason="ale-py is installed")
@pytest.mark.parametrize("identifier", ["ale_py:ALE/Pong-v5", "ALE/Pong-v5"])
def test_atari_without_its_package_names_the_command_that_installs_it(identifier: str) -> None:
    words = r"it needs ale-py, which is not installed. Install it with: .*install.*(\[atari\]|ale-py)"
    with pytest.raises(ConfigError, match=f"^gymnasium:{identifier}: {words}"):
        make(f"gymnasium:{identifier}")


class Scaled(SyncVectorEnv):
    """A vectorized form whose observations are not those of one copy, as Atari's."""

    def __init__(self, num_envs: int, length: int = 3) -> None:
        super().__init__([lambda: gymnasium.wrappers.FrameStackObservation(Counting(length), 4)] * num_envs)


def test_vectorized_form_with_other_observations_is_not_used() -> None:
    """A policy has to fit an evaluation, which has one copy."""
    gymnasium.register("Scaled-v0", entry_point=Counting, vector_entry_point=Scaled)
    try:
        specs = [make_environments("gymnasium:Scaled-v0", "B", range(count), {})[0].specs for count in (1, 4)]
        assert specs[0] == specs[1]
    finally:
        del gymnasium.registry["Scaled-v0"]


def test_module_next_to_the_configuration_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed command does not look into the working folder by itself."""
    (tmp_path / "my_world.py").write_text(f"from {WORLDS} import Counting as make\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    [environment] = make("my_world:make")
    assert isinstance(environment, GymnasiumLoop)


def test_module_that_imports_from_a_former_package_is_shown_the_new_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_former_world.py").write_text("from engine.specs import Steps\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if not Path(entry, "engine").is_dir()])
    with pytest.raises(
        InstanceFailure, match=r"No module named 'engine' \(.* are imported as rl_tui.engine\), at my_f"
    ):
        make("my_former_world:make")


def test_module_that_cannot_import_something_else_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_broken_world.py").write_text("import something_not_installed\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(InstanceFailure, match="ModuleNotFoundError: No module named 'something_not_installed'"):
        make("my_broken_world:make")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os\n1 / 0\n", "ZeroDivisionError: division by zero, at {name}.py:2$"),
        ("def make(:\n", "SyntaxError: .*, at {name}.py:1$"),
        ("def deep():\n    raise SystemExit('enough')\n\ndeep()\n", "SystemExit: enough, at {name}.py:2 in deep$"),
        ("import json\njson.loads('nonsense')\n", "JSONDecodeError: .*, at {name}.py:2$"),
        ("import something_not_installed\n", "No module named 'something_not_installed', at {name}.py:1$"),
    ],
    ids=["error", "syntax", "exit", "inside-a-library", "missing"],
)
@pytest.mark.parametrize("scheme", ["", "gymnasium:"])
def test_module_that_fails_when_it_is_imported_says_where(
    code: str, words: str, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    name = f"fails_{request.node.callspec.id.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(InstanceFailure, match=f"importing {name} raised .*{words.format(name=name)}") as failure:
        make(f"{scheme}{name}:make")
    assert "\n" not in str(failure.value)
    assert f'File "{tmp_path}/{name}.py"' in failure.value.detail
    assert "importlib" not in failure.value.detail
    assert "engine/sampling" not in failure.value.detail


def test_source_survives_its_json() -> None:
    source = EnvironmentSource("toy:line", "B", {"actions": "hybrid", "masked": True})
    assert EnvironmentSource.from_json(source.to_json()) == source


def draws(render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1", render_mode=render_mode, disable_env_checker=True)


@pytest.mark.parametrize(
    ("env", "shape"),
    [
        ("gymnasium:CartPole-v1", (400, 600, 3)),
        (f"{__name__}:draws", (400, 600, 3)),
        ("toy:catch", (336, 336, 3)),
        ("toy:pixels", (320, 320, 3)),
        ("toy:frames", (336, 336, 3)),
        ("toy:pong", (336, 336, 3)),
        ("toy:entities", None),
        (f"{WORLDS}:Counting", None),
    ],
)
def test_source_that_shows_frames_gives_the_same_environment_to_be_watched(
    env: str, shape: tuple[int, ...] | None
) -> None:
    source = EnvironmentSource(env, "B", {})
    [environment, *_] = source.showing_frames().make(0, 1)
    assert environment.specs == source.make(0, 1)[0].specs
    environment.reset(0)
    assert isinstance(environment, Rendered)
    frame = environment.render()
    assert (None if frame is None else frame.shape) == shape
    environment.close()


def test_environment_without_a_render_mode_is_left_as_it_is() -> None:
    source = EnvironmentSource(f"{WORLDS}:Misbehaving", "B", {"num_agents": 3})
    assert not isinstance(source.showing_frames().make(0, 1)[0], Rendered)


def test_source_with_something_that_is_no_plain_value_is_refused() -> None:
    source = EnvironmentSource("toy:line", "B", {"actions": object()})
    with pytest.raises(RlTuiError, match="plain values"):
        source.to_json()
