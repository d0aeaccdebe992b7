"""From `pettingzoo:NAME` to environments, or to a message that says what is wrong."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from pathlib import Path

import pytest

from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.environments import named_environments
from rl_tui.engine.sampling.environments.factory import EnvironmentSource, make_environments
from rl_tui.engine.sampling.environments.pettingzoo.loop import PettingZooLoop
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.specs import Json
from tests.sampling.driving import history

WORLDS = "tests.sampling.environments.pettingzoo.worlds"

pytestmark = pytest.mark.filterwarnings("ignore:The old environment creation API")


@pytest.mark.parametrize(
    ("env", "num_agents"),
    [
        ("pettingzoo:classic/rps_v2", 4),
        ("pettingzoo:classic/rps", 4),  # the newest version
        ("pettingzoo:classic/connect_four_v3", 4),
        ("pettingzoo:mpe2.simple_spread_v3", 6),
        ("pettingzoo:pettingzoo.classic.tictactoe_v3", 4),
        (f"{WORLDS}:relays", 4),
        (f"{WORLDS}:Nim", 4),
    ],
)
def test_name_gives_one_instance_that_holds_all_copies(env: str, num_agents: int) -> None:
    [environment] = make_environments(env, "B", range(2), {})
    assert isinstance(environment, PettingZooLoop)
    assert environment.num_agents == {"B": num_agents}
    environment.reset(0)
    environment.close()


@pytest.mark.parametrize(
    ("name", "kwargs", "words"),
    [
        ("mpe/simple_spread_v3", {}, "no such PettingZoo environment. Did you mean pettingzoo:mpe2.simple_spread_v3"),
        ("classic/connect_for_v3", {}, "no such .*. Did you mean pettingzoo:classic/connect_four_v3"),
        ("connect_four_v3", {}, "no module named 'connect_four_v3'. Did you mean pettingzoo:classic/connect_four_v3"),
        ("classic/connect_four_v1", {}, "Did you mean pettingzoo:classic/connect_four_v3"),
        (
            "mpe2.simple_spred_v3",
            {},
            "no module named 'mpe2.simple_spred_v3'. Did you mean pettingzoo:mpe2.simple_spread_v3",
        ),
        ("mpe2.simple_spread_v9", {}, "Did you mean pettingzoo:mpe2.simple_spread_v3[?]$"),
        ("mpe2.xyzzy", {}, "no module named 'mpe2.xyzzy'$"),
        (WORLDS, {}, "the module must have parallel_env, env or raw_env"),
        ("classic/connect_four_v3", {"size": 3}, "invalid env_kwargs: .*unexpected keyword argument 'size'"),
        ("classic/hanabi_v5", {}, "it needs shimmy, which is not installed. Install it with: .* 'shimmy.openspiel.'"),
        pytest.param(
            "atari/pong_v3",
            {},
            "it needs multi_agent_ale_py, which is not installed. Install it with: .*ale-py",
            marks=pytest.mark.skipif(find_spec("multi_agent_ale_py") is not None, reason="it is installed"),
        ),
    ],
)
def test_name_that_leads_nowhere_says_what_would(name: str, kwargs: dict[str, Json], words: str) -> None:
    with pytest.raises(ConfigError, match=f"^pettingzoo:{name}: .*{words}"):
        make_environments(f"pettingzoo:{name}", "B", range(1), kwargs)


class Without(MetaPathFinder):
    """Nothing of one package can be imported."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {self.package!r}", name=self.package)


@pytest.mark.parametrize("missing", ["pettingzoo", "mpe2", "pygame"])
def test_missing_package_is_named_with_the_command_that_installs_the_extra(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] in ("mpe2", missing)]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Without(missing), *sys.meta_path])
    with pytest.raises(ConfigError, match=f"it needs {missing}, which is not installed. Install it with: .*pettingzoo"):
        make_environments("pettingzoo:mpe2.simple_spread_v3", "B", range(1), {})


def test_module_in_the_working_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_relay.py").write_text(f"from {WORLDS} import Relay as parallel_env\n")
    monkeypatch.chdir(tmp_path)
    [environment] = make_environments("pettingzoo:my_relay", "B", range(1), {"stays": [4]})
    assert environment.num_agents == {"B": 1}


def test_environment_is_made_to_be_drawn_as_frames_or_text() -> None:
    source = EnvironmentSource("pettingzoo:mpe2.simple_v3", "B", {}).showing_frames()
    [environment] = source.make(0, 1)
    assert isinstance(environment, PettingZooLoop)
    environment.reset(0)
    frame = environment.render()
    assert not isinstance(frame, str | None)
    assert frame.shape == (700, 700, 3)


def test_workers_give_agents_the_behaviors_of_the_file() -> None:
    text = """
behaviors: {Even: {}, Odd: {}}
env_settings:
  env: tests.sampling.environments.pettingzoo.worlds:relays
  env_kwargs: {stays: [9, 9, 9, 9]}
  num_envs: 2
  behaviors: {Even?team=1: {agents: "runner_[02]", group: true}, Odd: [runner_1]}
  random_agents: runner_3
"""
    [named] = named_environments(parse_config(text.encode(), "c.yaml"))
    assert EnvironmentSource.from_json(named.source.to_json()).adaptation.behaviors == named.source.adaptation.behaviors
    pool = ProcessPool(named.source, 2, 1)
    pool.start()
    try:
        first, *_, last = history(pool, 3)
    finally:
        pool.close()
    for answer in (first[0], last[0]):
        even, odd = answer["Even"].decisions, answer["Odd"].decisions
        assert (even.agent_ids.tolist(), odd.agent_ids.tolist()) == ([0, 2, 3, 5], [1, 4])
        assert even.team_ids is not None
        assert even.team_ids.tolist() == [1] * 4
        assert even.group_ids is not None
        assert even.group_ids.tolist() == [0, 0, 1, 1]
