"""What Unity players are made from, and which processes and limits they get."""

from __future__ import annotations

from pathlib import Path

from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.running.environments import named_environments, start_note
from rl_tui.engine.running.watching.service import WatchService
from rl_tui.engine.running.watching.viewer import WatchTarget
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.settings import UnitySettings
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import LogEmitted
from tests.running.runs import behavior, configuration, ending, run_to_end

EVERY_KEY = """\
behaviors: {A: {}}
debug: true
env_settings:
  {env_path: Ball, env_kwargs: {side_channels: ["a:B"]}, env_args: [--level, 3], base_port: 6000, num_envs: 3,
   num_areas: 2, timeout_wait: 7}
engine_settings:
  {width: 1, height: 2, quality_level: 3, time_scale: 4, target_frame_rate: 5, capture_frame_rate: 6, no_graphics: true,
   no_graphics_monitor: true}
"""


def parse(text: str, **overrides: object) -> RunConfig:
    return parse_config(text.encode(), "c.yaml", overrides)


def test_every_setting_of_a_player_reaches_it(tmp_path: Path) -> None:
    [named] = named_environments(parse(EVERY_KEY), 11, tmp_path)
    assert (named.source.env, named.source.first_copy, named.behaviors) == ("unity:Ball", 0, ("A",))
    assert UnitySettings(**named.source.kwargs) == UnitySettings(
        env_args=["--level", "3"],
        base_port=6000,
        num_areas=2,
        timeout_wait=7,
        seed=11,
        width=1,
        height=2,
        quality_level=3,
        time_scale=4.0,
        target_frame_rate=5,
        capture_frame_rate=6,
        no_graphics=True,
        no_graphics_monitor=True,
        log_folder=str(tmp_path),
        shows_output=True,
        side_channels=["a:B"],
    )
    assert UnitySettings.model_fields.keys() - UnitySettings(**named.source.kwargs).model_fields_set == set()


def test_defaults_of_players_are_those_of_a_file() -> None:
    [named] = named_environments(parse("behaviors: {A: {}}"))
    assert UnitySettings(**named.source.kwargs) == UnitySettings()


def test_only_a_typed_port_is_insisted_on() -> None:
    """configuration.yaml has every key, also those that nobody wrote."""
    assert named_environments(parse(EVERY_KEY))[0].source.kwargs["is_port_fixed"] is False
    typed = parse(EVERY_KEY, **{"env_settings.base_port": 6000})
    assert named_environments(typed)[0].source.kwargs["is_port_fixed"] is True


def test_copies_of_every_environment_of_a_run_have_numbers_of_their_own() -> None:
    text = "behaviors: {A: {}, B: {}, C: {}}\nenv_settings: {num_envs: 3, env: {A: Ball, B: 'toy:line', C: Wall}}\n"
    sources = [named.source for named in named_environments(parse(text))]
    assert [source.first_copy for source in sources] == [0, 3, 6]
    assert sources[0].kwargs == sources[2].kwargs
    assert sources[1].kwargs == {}
    assert [EnvironmentSource.from_json(source.to_json()) for source in sources] == sources


def test_player_is_not_watched_and_the_user_is_told_what_to_do(tmp_path: Path) -> None:
    service = WatchService(EventBus())
    source = EnvironmentSource("unity:Ball", "A", {})
    service.offer({"A": WatchTarget(source, {}, 1, 1.0, tmp_path, tmp_path)})
    assert service.begin("A", (10, 10)).startswith("a Unity player cannot be drawn here")
    assert service.pop_scene() is None


def test_start_of_players_is_announced_with_how_long_they_may_take() -> None:
    several = parse(EVERY_KEY).env_settings
    assert start_note("unity:Ball", several) == "starting 3 players, each of which may take 7 s to connect"
    one = parse("behaviors: {A: {}}").env_settings
    assert start_note("unity:Ball", one) == "starting a player, which may take 60 s to connect"
    assert start_note("unity:editor", one) == start_note("toy:line", one) == ""


def test_player_that_is_not_there_is_named_before_any_is_said_to_start(tmp_path: Path) -> None:
    config = configuration(tmp_path, {"Ball": behavior()}, {"Ball": str(tmp_path / "builds/Ball")})
    run = run_to_end(config)
    assert run.launch.exit_code == 2
    assert ending(run).reason.startswith(f"{tmp_path}/builds/Ball: no such Unity player.")
    assert run.of(LogEmitted) == []
    assert not run.folder.exists()
