"""Where the entrants of an arena play: the environment of the first run, or another one that was named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rl_tui.engine.config.diagnostics import must_be_one_of, one_of
from rl_tui.engine.config.environment_name import full_name, short_name
from rl_tui.engine.config.environments import has_agents
from rl_tui.engine.config.loading import load_to_act, parse_config
from rl_tui.engine.config.naming import name_of
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.yaml_document import write_yaml
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.environments import NamedEnvironment, named_environments
from rl_tui.engine.running.games.entrants import Entrant
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.storage.file_names import CONFIGURATION
from rl_tui.engine.storage.run_folder import RunFolder

ENV, KWARGS = "env_settings.env", "env_settings.env_kwargs"


@dataclass(frozen=True, slots=True)
class Venue:
    """config: with the settings of its behaviors. folder: of the run that it is of, None without any."""

    config: RunConfig
    folder: RunFolder | None
    source: EnvironmentSource


def find_venue(entrants: Sequence[Entrant], overrides: Mapping[str, object], behavior: str | None, seed: int) -> Venue:
    """The environment that all of them have learned in. Raises ConfigError.

    overrides: settings by dotted path, on top of the first run's; another environment has no arguments of that one's.
    behavior: whose environment it is, where a run has
    several. seed: of Unity players.
    """
    if ENV in overrides:
        overrides = {KWARGS: {}, **overrides}
    of_runs = [entrant for entrant in entrants if entrant.run is not None]
    first = of_runs[0] if of_runs else None
    config = _without_run(overrides, behavior) if first is None else _config(first, overrides)
    source = _chosen(named_environments(config, seed), behavior, tuple(config.behaviors)).source
    if not has_agents(source.env):
        raise ConfigError(
            f"{entrants[0].name}: it learned offline, and has no environment to play in: {name_of(ENV)} names one"
        )
    if ENV not in overrides and first is not None:
        for other in of_runs[1:]:
            _require_same(source.env, first, other)
    folder = None
    if first is not None and first.run is not None:
        folder = RunFolder(first.run.parent, first.run.name)
    return Venue(config, folder, source)


def _config(entrant: Entrant, overrides: Mapping[str, object] | None = None) -> RunConfig:
    assert entrant.run is not None
    return load_to_act(entrant.run / CONFIGURATION, overrides)


def _without_run(overrides: Mapping[str, object], behavior: str | None) -> RunConfig:
    """Exported files alone do not say where they act."""
    env = overrides.get(ENV)
    if not isinstance(env, str):
        raise ConfigError(
            f"{name_of(ENV)}: must be given where no run is among those that play: only a run has an environment"
        )
    name = behavior or short_name(full_name(env))
    return parse_config(write_yaml({"default_settings": {}, "behaviors": {name: {}}}).encode(), "", overrides)


def _chosen(
    environments: Sequence[NamedEnvironment], behavior: str | None, behaviors: Sequence[str]
) -> NamedEnvironment:
    """That of the behavior, or the only one."""
    if len(environments) == 1:
        return environments[0]
    if behavior not in behaviors:
        found = f"must be given: {one_of(behaviors)}" if behavior is None else must_be_one_of(behaviors, behavior)
        raise ConfigError(f"--behavior: {found}")
    return next(environment for environment in environments if behavior in environment.behaviors)


def _require_same(env: str, first: Entrant, other: Entrant) -> None:
    """They have learned in the same environment. Raises ConfigError."""
    others = [environment.source.env for environment in named_environments(_config(other))]
    if env not in others:
        has = f"has learned in {' and '.join(others)}, and {first.name} in {env}"
        raise ConfigError(f"{other.name}: {has}. With {name_of(ENV)}, all play in one that is named")
