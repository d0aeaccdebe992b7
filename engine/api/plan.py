"""What a learner will be made of, before anything is opened or started."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from rl_tui.engine.api.environments import EnvironmentLike, GivenSource, behavior_of, full_name, given_source
from rl_tui.engine.api.settings import DEFAULT_BEHAVIOR, SettingsLike, is_of_one_behavior, keyword_of, read_run_config
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.diagnostics import must_be_one_of
from rl_tui.engine.config.environment_name import EDITOR, is_of_unity
from rl_tui.engine.config.environments import environment_names, kind_of
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.support import require_supported
from rl_tui.engine.config.types import AUTO
from rl_tui.engine.errors import ConfigError, NotSupportedError
from rl_tui.engine.running.environments import adaptation_of, named_environments
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.storage.behavior_folder import EXPORTED_KINDS
from rl_tui.engine.storage.checkpoints import trained_behaviors


@dataclass(frozen=True, slots=True)
class LearnerPlan:
    """The configuration of a run, and where its environments come from: source, None for those that it names.

    Without behaviors, the default settings are for whatever behaviors the environment has.
    """

    config: RunConfig
    source: EnvironmentSource | None


def plan_learner(
    settings: SettingsLike,
    env: EnvironmentLike | None,
    folder: str | os.PathLike[str],
    behavior: str | None,
    seed: int | None,
    num_envs: int | None,
    device: str | None,
    initialize_from: str | os.PathLike[str] | None,
) -> LearnerPlan:
    """Read what the caller has passed. Raises ConfigError and NotSupportedError; nothing is created."""
    path = _absolute(folder)
    overrides: dict[str, object] = {
        "checkpoint_settings.run_id": path.name,
        "checkpoint_settings.results_dir": str(path.parent),
        "checkpoint_settings.resume_or_start": True,
        **dict.fromkeys((f"checkpoint_settings.{key}" for key in ("resume", "force", "inference")), False),
    }
    if isinstance(env, str):
        overrides["env_settings.env"] = full_name(env)
    keywords = {"env_settings.seed": seed, "env_settings.num_envs": num_envs, "torch_settings.device": device}
    overrides |= {key: value for key, value in keywords.items() if value is not None}
    config = read_run_config(settings, overrides, behavior, argument_of)
    name = behavior or _name_for(path, config.env_settings.env if env is None else env)
    origin = None if initialize_from is None else str(_absolute(initialize_from, "initialize_from"))
    config = _narrowed(config, behavior, origin, is_of_any=behavior is None and is_of_one_behavior(settings))
    metrics = tuple(config.env_settings.metrics)
    given = None if env is None or isinstance(env, str) else given_source(env, _first(config) or name, metrics)
    if not config.behaviors and (_has_one_behavior(config) if given is None else given.has_one_behavior):
        config = config.model_copy(update={"behaviors": {name: config.default_settings}, "default_settings": None})
    require_supported(config, has_environment=given is not None)
    if given is None:
        _require_no_editor(config)
        return LearnerPlan(config, None if config.behaviors else _unnamed_source(config, name))
    config, source = _with_given(config, given, num_envs)
    if given.is_object and any(one.evaluation is not None for one in config.all_behaviors):
        raise NotSupportedError(
            "evaluation: needs environments of its own, and env is a single one; pass its name or a function that"
            " makes one"
        )
    return LearnerPlan(config, source)


def _has_one_behavior(config: RunConfig) -> bool:
    env = config.env_settings.environment
    kind = kind_of(env) if isinstance(env, str) else None
    return kind is not None and kind.has_one_behavior


def _unnamed_source(config: RunConfig, name: str) -> EnvironmentSource | None:
    """Of an environment that may have behaviors of its own, or else one, which gets this name."""
    (environment,) = named_environments(config)
    return None if is_of_unity(environment.source.env) else replace(environment.source, behavior=name)


def _require_no_editor(config: RunConfig) -> None:
    if config.env_settings.environment == EDITOR:
        raise ConfigError(
            f"env: must be {environment_names()}. The Unity Editor, which is trained in where no environment is named,"
            " is for `rl-tui`, rl_tui.train and rl_tui.start: a Learner does not wait for it"
        )


def _absolute(path: object, keyword: str = "folder") -> Path:
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{keyword}: must be a path, got {name!r}")
    return Path(os.path.abspath(name))


def argument_of(dotted: str) -> str:
    """The argument of a Learner that sets a path."""
    is_folder = dotted in ("checkpoint_settings.run_id", "checkpoint_settings.results_dir")
    return "folder" if is_folder else keyword_of(dotted)


def _name_for(folder: Path, env: object) -> str:
    """The name of a behavior that was given none: that of the folder's only behavior, or from the environment."""
    held = trained_behaviors(folder)
    if len(held) == 1:
        return held[0]
    return behavior_of(full_name(env) if isinstance(env, str) else env) or DEFAULT_BEHAVIOR


def _narrowed(config: RunConfig, behavior: str | None, origin: str | None, is_of_any: bool) -> RunConfig:
    """With the requested behavior alone, where one is; all learn in the caller's thread, and export every kind of
    policy. origin: what they are initialized from, instead of what the settings name. is_of_any: the settings are of a
    behavior that has no name yet."""
    behaviors, default, environment = dict(config.behaviors), config.default_settings, config.env_settings
    if is_of_any:
        default = behaviors.popitem()[1]
    elif behavior is not None:
        own = behaviors.get(behavior) or default
        if own is None and behaviors:
            raise ConfigError(f"behavior: {must_be_one_of(list(behaviors), behavior)}")
        behaviors, default = {} if own is None else {behavior: own}, None
        if isinstance(environment.env, dict) and behavior in environment.env:
            kwargs = environment.env_kwargs.get(behavior, {})
            update = {"env": environment.env[behavior], "env_kwargs": kwargs}
            environment = environment.model_copy(update=update)
    if not behaviors and default is None:
        raise ConfigError("settings: must have behaviors or default_settings, or be the settings of one behavior")
    return config.model_copy(
        update={
            "behaviors": {name: _by_hand(own, origin) for name, own in behaviors.items()},
            "default_settings": None if default is None else _by_hand(default, origin),
            "env_settings": environment,
        }
    )


def _by_hand(settings: BehaviorConfig, origin: str | None) -> BehaviorConfig:
    exported = settings.export_policies or list(EXPORTED_KINDS)
    update = {"threaded": False, "export_policies": exported, "init_path": origin or settings.init_path}
    return settings.model_copy(update=update)


def _first(config: RunConfig) -> str | None:
    return next(iter(config.behaviors), None)


def _with_given(config: RunConfig, given: GivenSource, num_envs: int | None) -> tuple[RunConfig, EnvironmentSource]:
    """The environment of the program instead of the file's."""
    settings, source = config.env_settings, given
    importable = None if given.is_object else given.name
    copies = given.num_copies
    if copies is not None and num_envs not in (None, copies):
        text = f"must be {copies}, which is how many copies env has, got {num_envs}"
        raise ConfigError(f"num_envs: {text}. A function that makes an environment is called for each copy")
    if settings.num_workers not in (0, AUTO) and importable is None:
        raise NotSupportedError(
            f"num_workers: must be 0, got {settings.num_workers}: worker processes need the name of an environment, or"
            " a function that they can import"
        )
    update: dict[str, object] = {
        "env": given.name,
        "env_kwargs": {},
        "env_path": None,
        "num_envs": copies or settings.num_envs,
        "num_workers": 0 if importable is None else settings.num_workers,
    }
    config = config.model_copy(update={"env_settings": settings.model_copy(update=update)})
    names = list(config.behaviors) or [given.behavior]
    if settings.num_workers and importable is not None:
        return config, EnvironmentSource(
            importable, given.behavior, {}, given.metrics, adaptation=adaptation_of(config, names)
        )
    return config, replace(source, adaptation=adaptation_of(config, names))
