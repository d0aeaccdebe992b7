"""The environments that a configuration names, and the settings of their behaviors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.diagnostics import closest, visible
from rl_tui.engine.config.environment_name import EDITOR, is_of_unity
from rl_tui.engine.config.run import EnvSettings, RunConfig
from rl_tui.engine.config.wrappers import read_wrappers
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.collecting.pool import CollectingPool
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.settings import UnitySettings
from rl_tui.engine.sampling.environments.training_analytics import TrainingAnalytics
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.quota import RestartQuota
from rl_tui.engine.sampling.pools.restarts import MakeQuota
from rl_tui.engine.sampling.pools.serial import SerialPool

PLAYER_WAITS = 4.0  # times timeout_wait: more than a start, which waits for the player three times, each limited itself


@dataclass(frozen=True, slots=True)
class NamedEnvironment:
    """An environment of a run, and the behaviors in it for which the file has settings."""

    source: EnvironmentSource
    behaviors: tuple[str, ...]


def named_environments(
    config: RunConfig, seed: int = 0, run_logs: Path | None = None, analytics: TrainingAnalytics | None = None
) -> tuple[NamedEnvironment, ...]:
    """The one environment of all behaviors, or each behavior's own.

    seed: of the first Unity player. run_logs: the folder for the logs of players, None for no logs. analytics: what
    the first player receives of the training.
    """
    settings, of_players = config.env_settings, player_settings(config, seed, run_logs, analytics)

    def named(env: str, kwargs: Mapping[str, object], behaviors: tuple[str, ...], index: int = 0) -> NamedEnvironment:
        all_kwargs = {**of_players, **kwargs} if is_of_unity(env) else kwargs
        source = EnvironmentSource(
            env,
            behaviors[0] if behaviors else "",
            all_kwargs,
            tuple(settings.metrics),
            first_copy=index * settings.num_envs,
            adaptation=adaptation_of(config, behaviors),
        )
        return NamedEnvironment(source, behaviors)

    match settings.environment:
        case str(env):
            return (named(env, settings.env_kwargs, tuple(config.behaviors)),)
        case environments:
            kwargs = settings.env_kwargs
            return tuple(
                named(env, _kwargs_of(kwargs, name), (name,), index)
                for index, (name, env) in enumerate(environments.items())
            )


def player_settings(
    config: RunConfig, seed: int, run_logs: Path | None, analytics: TrainingAnalytics | None = None
) -> Mapping[str, object]:
    """What Unity players are made from, as `UnitySettings` reads it. seed: of the first."""
    settings = config.env_settings
    return UnitySettings(
        **config.engine_settings.model_dump(),
        env_args=settings.env_args or [],
        base_port=settings.base_port,
        is_port_fixed=("env_settings", "base_port") in config.source.flags,
        num_areas=settings.num_areas,
        timeout_wait=settings.timeout_wait,
        seed=seed,
        log_folder=None if run_logs is None else str(run_logs.absolute()),
        shows_output=config.debug,
        analytics=analytics,
    ).model_dump(mode="json")


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


def adaptation_of(config: RunConfig, behaviors: Sequence[str]) -> Adaptation:
    """What the environment of these behaviors needs to know. With one for each, others have their own agents."""
    settings = config.env_settings
    agents = {
        name: patterns
        for name, patterns in settings.behaviors.items()
        if isinstance(settings.environment, str) or name.partition("?")[0] in behaviors
    }
    return Adaptation(
        settings.parameters,
        bool(config.environment_parameters),
        behaviors={name: patterns.agents for name, patterns in agents.items()},
        groups={name: patterns.common_reward for name, patterns in agents.items() if patterns.group},
        random_agents=settings.random_agents,
        wrappers=read_wrappers(settings.wrappers),
    )


def _kwargs_of(kwargs: Mapping[str, object], behavior: str) -> Mapping[str, object]:
    """With an environment per behavior, `env_kwargs` is keyed by behavior too."""
    own = kwargs.get(behavior, {})
    assert isinstance(own, Mapping)
    return own


def make_pool(source: EnvironmentSource, settings: EnvSettings, run_logs: Path, first_step: int) -> EnvironmentPool:
    """A new pool of `num_envs` copies: in worker processes, which log to that folder, or in this process.

    first_step: at which training begins or resumes. It is added to the seeds of players, as it is to those of resets.
    """
    source, quota = replace(source, seed_shift=first_step), quota_of(settings)
    kind = ProcessPool if settings.act_in == "main" else CollectingPool
    if is_of_unity(source.env):
        return player_pool(source, settings.num_envs, settings.timeout_wait, run_logs, quota, kind)
    if settings.worker_count:
        workers = min(settings.worker_count, settings.num_envs)
        return kind(source, settings.num_envs, workers, settings.timeout_wait, run_logs, make_quota=quota)
    return SerialPool(source.env, source.make, settings.num_envs)


def make_pool_apart(
    source: EnvironmentSource,
    make: Callable[[int, int], Sequence[Environment]],
    num_copies: int,
    timeout_wait: float,
    make_quota: MakeQuota | None = None,
) -> EnvironmentPool:
    """A new pool apart from training: by `make` in this process, except for Unity players.

    make_quota: how often each player that fails is started again; None: never.
    """
    if is_of_unity(source.env):
        return player_pool(source, num_copies, timeout_wait, make_quota=make_quota)
    return SerialPool(source.env, make, num_copies)


def quota_of(settings: EnvSettings) -> MakeQuota:
    """How often each worker of a pool may be restarted."""
    lifetime, rate_n = settings.max_lifetime_restarts, settings.restarts_rate_limit_n
    return partial(RestartQuota, lifetime, rate_n, settings.restarts_rate_limit_period_s)


def start_note(env: str, settings: EnvSettings) -> str:
    """The line that announces the start of Unity players: each may load for long. Empty for other environments."""
    if not is_of_unity(env) or env == EDITOR:
        return ""
    players = "a player, which" if settings.num_envs == 1 else f"{settings.num_envs} players, each of which"
    return f"starting {players} may take {settings.timeout_wait} s to connect"


def player_pool(
    source: EnvironmentSource,
    num_players: int,
    timeout_wait: float,
    run_logs: Path | None = None,
    make_quota: MakeQuota | None = None,
    kind: type[ProcessPool] = ProcessPool,
) -> ProcessPool:
    """Unity players, each with a worker process of its own, which limits how long it waits for its player. kind: of the
    pool."""
    is_editor = source.env == EDITOR  # a person presses Play, whenever they like
    timeout = math.inf if is_editor else PLAYER_WAITS * timeout_wait
    return kind(source, num_players, num_players, timeout, run_logs, make_quota=make_quota)
