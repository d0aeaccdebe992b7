"""A kind of environment that an installed package brings: its arguments, its instances, and how it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from rl_tui.engine.config.loading import effective_yaml, parse_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.schema import json_schema
from rl_tui.engine.config.support import find_unsupported
from rl_tui.engine.errors import ConfigError, PluginError
from rl_tui.engine.running.environments import named_environments
from rl_tui.engine.running.preflight import refusals
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.sampling.pools.process import ProcessPool
from tests.packages import MAZE, Packages

ONE = "behaviors: {A: {}}\nenv_settings:\n  env: %s\n  env_kwargs: {%s}\n"


@pytest.fixture(autouse=True)
def installed(packages: Packages) -> None:
    packages.install("maze", MAZE, environments="maze = maze:MazeSettings")


def read(text: str) -> RunConfig:
    return parse_config(text.encode(), "c.yaml")


def errors(text: str) -> list[str]:
    with pytest.raises(ConfigError) as refusal:
        read(text)
    return str(refusal.value).splitlines()


def test_arguments_are_read_strictly_and_completed() -> None:
    config = read(ONE % ("maze:small", "size: 3.0"))
    assert config.env_settings.env_kwargs == {"size": 3, "masked": True}
    assert read(effective_yaml(config)).model_dump() == config.model_dump()
    place = "env_settings.env_kwargs"
    assert errors(ONE % ("maze:small", "size: 0, maskd: true")) == [
        f"c.yaml:4:22: {place}.size: must be at least 1, got 0",
        f"c.yaml:4:25: {place}.maskd: unknown key. Did you mean masked?",
    ]
    assert errors(ONE % ("maze:small", "")) == [f"c.yaml:4:3: {place}: size is missing: it has no default"]
    assert errors("behaviors: {A: {}}\nenv_settings: {env: maze:small}") == [
        f"c.yaml:2:1: {place}: size is missing: it has no default"
    ]


def test_arguments_of_each_behavior_are_those_of_its_environment() -> None:
    text = "behaviors: {A: {}, B.x: {}}\nenv_settings:\n  env: {A: 'toy:line', B.x: 'maze:large'}\n  env_kwargs: {%s}\n"
    config = read(text % "A: {actions: continuous}, B.x: {size: 2}")
    assert config.env_settings.env_kwargs == {"A": {"actions": "continuous"}, "B.x": {"size": 2, "masked": True}}
    assert read(effective_yaml(config)).model_dump() == config.model_dump()
    place = "env_settings.env_kwargs.B.x"
    assert errors(text % "B.x: {size: 2, deep: 1}") == [
        f"c.yaml:4:31: {place}.deep: unknown key. Must be one of: masked or size"
    ]
    assert errors(text % "A: {}") == [f"c.yaml:4:3: {place}: size is missing: it has no default"]
    assert errors(text % "B.x: 3") == [f"c.yaml:4:21: {place}: must be a mapping, got 3"]


def test_schema_has_the_arguments_where_the_kind_is_named() -> None:
    definitions: Any = json_schema()["$defs"]
    assert definitions["MazeSettings"]["required"] == ["size"]
    by_pattern = {one["if"]["properties"]["env"]["pattern"]: one for one in definitions["EnvSettings"]["allOf"]}
    condition = by_pattern["^maze:"]
    assert condition["then"]["properties"]["env_kwargs"] == {"$ref": "#/$defs/MazeSettings"}


def test_instances_are_made_from_the_settings_in_this_process_and_in_a_worker() -> None:
    [named] = named_environments(read(ONE % ("maze:small", "size: 3")))
    [environment] = named.source.make(0, 2)
    assert isinstance(environment, Line)
    assert (environment.size, environment.num_agents) == (3, {"A": 2})  # type: ignore[attr-defined]
    pool = ProcessPool(named.source, 2, 1, 10.0)
    pool.start()
    assert pool.num_agents == {"A": 2}
    pool.close()


def test_misspelled_kind_and_name_are_refused_with_what_was_meant() -> None:
    [line] = errors(ONE % ("maz:/small", ""))
    names = "gymnasium:ID, toy:NAME, pettingzoo:NAME, mlagents:module:factory, unity:PATH, maze:NAME"
    assert line.endswith(
        f'env_settings.env: must be {names} or package.module:factory, got "maz:/small". Did you mean maze:/small?'
    )
    assert refusals(read(ONE % ("maz:small", ""))) == ["maz:small: no module named 'maz'. Did you mean maze:small?"]
    assert refusals(read(ONE % ("maze:tiny", "size: 1"))) == ["maze:tiny: must be maze:small or maze:large"]


def test_one_environment_with_one_behavior_is_not_for_two() -> None:
    text = (ONE % ("maze:small", "size: 3")).replace("{A: {}}", "{A: {}, B: {}}")
    [line] = find_unsupported(read(text))
    assert line.endswith("must map each of the 2 behaviors to an environment; maze:small has only one behavior")


def test_wrong_arguments_from_code_are_one_line_each() -> None:
    with pytest.raises(ConfigError) as refusal:
        EnvironmentSource("maze:small", "B", {"size": "x", "deep": 1}).make(0, 1)
    assert str(refusal.value).splitlines() == [
        'maze:small: env_kwargs.size: must be a whole number, got "x"',
        "maze:small: env_kwargs.deep: unknown key. Must be one of: masked or size",
    ]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("MazeSettings = 3", "TypeError: must be a class, got 3"),
        ("class MazeSettings: pass", "TypeError: must be a subclass of EnvironmentSettings, got MazeSettings"),
        ("", "AttributeError: module 'broken' has no attribute 'MazeSettings'"),
    ],
)
def test_kind_that_cannot_be_used_is_refused_where_it_is_named(packages: Packages, code: str, reason: str) -> None:
    packages.install("broken", code, environments="broken = broken:MazeSettings")
    package = "broken of broken 1.0 (environments: broken:MazeSettings) cannot be used"
    assert errors(ONE % ("broken:small", "size: 3")) == [f"c.yaml:3:8: env_settings.env: {package}: {reason}"]
    assert read(ONE % ("maze:small", "size: 3")).env_settings.env == "maze:small"


@pytest.mark.parametrize(
    ("implementation", "reason"),
    [
        ("nowhere:Mazes", "ModuleNotFoundError: No module named 'nowhere'"),
        ("broken:Mazez", "AttributeError: module 'broken' has no attribute 'Mazez'"),
        ("broken:MazeSettings", "TypeError: MazeSettings must be a subclass of EnvironmentKind"),
    ],
)
def test_implementation_that_cannot_be_used_is_refused(packages: Packages, implementation: str, reason: str) -> None:
    packages.install("broken", MAZE.replace("maze:Mazes", implementation), environments="broken = broken:MazeSettings")
    source = EnvironmentSource("broken:small", "B", {"size": 1})
    package = "broken of broken 1.0 (environments: broken:MazeSettings) cannot be used"
    with pytest.raises(PluginError) as refusal:
        source.make(0, 1)
    assert str(refusal.value) == f"{package}: {reason}"
    assert refusals(read(ONE % ("broken:small", "size: 3"))) == [f"{package}: {reason}"]


def test_what_a_kind_makes_must_be_a_list_of_environments(packages: Packages) -> None:
    returned = "return {1: [], 2: [3], 3: made[0], 4: None}[settings.size]"
    code = MAZE.replace("return made", returned).replace("maze:Mazes", "hollow:Mazes")
    packages.install("hollow", code, environments="hollow = hollow:MazeSettings")
    lacking = "int, which has no specs, num_agents, reset, step, close"
    for size, found in enumerate(["an empty list", lacking, "Line", "None"], start=1):
        with pytest.raises(ConfigError, match=f"^hollow:small: make must return a list of environments, got {found}$"):
            EnvironmentSource("hollow:small", "B", {"size": size}).make(0, 1)


def test_kind_may_refuse_a_name_before_anything_is_made_and_is_blamed_for_what_it_raises(packages: Packages) -> None:
    with pytest.raises(ConfigError, match="maze:tiny: must be maze:small or maze:large"):
        EnvironmentSource("maze:tiny", "B", {"size": 1}).make(0, 1)
    packages.install(
        "broken",
        MAZE.replace("if name", "if 1 / 0 or name").replace("maze:M", "broken:M"),
        environments="broken = broken:MazeSettings",
    )
    package = "broken of broken 1.0 (environments: broken:MazeSettings)"
    [refusal] = refusals(read(ONE % ("broken:small", "size: 3")))
    assert refusal.startswith(f"{package}: require raised ZeroDivisionError: division by zero, at ")
    with pytest.raises(PluginError, match="require raised ZeroDivisionError"):
        EnvironmentSource("broken:small", "B", {"size": 1}).make(0, 1)
