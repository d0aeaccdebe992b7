"""The environments that a configuration names, and the settings of their behaviors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.diagnostics import closest, visible
from rl_tui.engine.config.environments import environment_names
from rl_tui.engine.config.run import NO_UNITY, EnvSettings, RunConfig
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.serial import SerialPool


@dataclass(frozen=True, slots=True)
class NamedEnvironment:
    """An environment of a run, and the behaviors in it for which the file has settings."""

    source: EnvironmentSource
    behaviors: tuple[str, ...]


def named_environments(config: RunConfig) -> tuple[NamedEnvironment, ...]:
    """The one environment of all behaviors, or each behavior's own. Raises ConfigError when none is named."""
    settings = config.env_settings
    match settings.env:
        case None:
            raise ConfigError(f"env_settings.env: must be set (or use --env): {environment_names()}. {NO_UNITY}")
        case str(env):
            return (_named(env, settings.env_kwargs, settings.metrics, tuple(config.behaviors)),)
        case environments:
            return tuple(
                _named(env, _kwargs_of(settings.env_kwargs, name), settings.metrics, (name,))
                for name, env in environments.items()
            )


def settings_of(config: RunConfig, behavior: str) -> BehaviorConfig:
    """The settings of a behavior of an environment. Raises ConfigError when the file has none for it."""
    settings = config.behaviors.get(behavior) or config.default_settings
    if settings is None:
        known = ", ".join(config.behaviors) or "none"
        near = closest(behavior, config.behaviors)
        hint = f" Did you mean {visible(behavior)} instead of {visible(near)}?" if near else ""
        raise ConfigError(
            f"behaviors: the environment has a behavior {behavior!r}, the file has {known}.{hint}"
            " Add an entry for it, or default_settings."
        )
    return settings


def _named(
    env: str, kwargs: Mapping[str, object], metrics: Sequence[str], behaviors: tuple[str, ...]
) -> NamedEnvironment:
    """A Gymnasium environment has one behavior, which takes the first name."""
    source = EnvironmentSource(env, behaviors[0] if behaviors else "", kwargs, tuple(metrics))
    return NamedEnvironment(source, behaviors)


def _kwargs_of(kwargs: Mapping[str, object], behavior: str) -> Mapping[str, object]:
    """With an environment per behavior, `env_kwargs` is keyed by behavior too."""
    own = kwargs.get(behavior, {})
    assert isinstance(own, Mapping)
    return own


def make_pool(source: EnvironmentSource, settings: EnvSettings, run_logs: Path) -> EnvironmentPool:
    """A new pool of `num_envs` copies: in worker processes, which log to that folder, or in this process."""
    if settings.num_workers:
        workers = min(settings.num_workers, settings.num_envs)
        return ProcessPool(source, settings.num_envs, workers, settings.timeout_wait, run_logs)
    return SerialPool(source.env, source.make, settings.num_envs)
