"""What a learner will be made of, before anything is opened or started."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from rl_tui.engine.api.environments import EnvironmentLike, GivenSource, behavior_of, full_name, given_source
from rl_tui.engine.api.settings import DEFAULT_BEHAVIOR, SettingsLike, is_of_one_behavior, keyword_of, read_run_config
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.diagnostics import must_be_one_of, one_of
from rl_tui.engine.config.environment_name import EDITOR
from rl_tui.engine.config.environments import environment_names
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.support import require_supported
from rl_tui.engine.errors import ConfigError, NotSupportedError
from rl_tui.engine.running.environments import adaptation_of, named_environments
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.storage.behavior_folder import EXPORTED_KINDS
from rl_tui.engine.storage.checkpoints import trained_behaviors
from rl_tui.engine.storage.run_folder import RunFolder


@dataclass(frozen=True, slots=True)
class LearnerPlan:
    """The configuration of a run with one behavior, and where its environments come from.

    is_named: the caller chose the behavior's name. Otherwise it is the environment's where that has one, else that of
    what the folder holds.
    """

    config: RunConfig
    behavior: str
    is_named: bool
    source: EnvironmentSource

    @property
    def settings(self) -> BehaviorConfig:
        """Of the behavior."""
        return self.config.behaviors[self.behavior]

    def renamed(self, behavior: str) -> LearnerPlan:
        """The same for a behavior of another name."""
        config = self.config.model_copy(update={"behaviors": {behavior: self.settings}})
        return replace(self, config=config, behavior=behavior)


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
    config = read_run_config(settings, overrides, behavior, _keyword_of)
    chosen = _behavior_of(config, behavior)
    is_named = behavior is not None or not (is_of_one_behavior(settings) or not config.behaviors)
    name = chosen if is_named else _name_for(path, config.env_settings.env if env is None else env)
    origin = None if initialize_from is None else str(_absolute(initialize_from, "initialize_from"))
    config = _narrowed(config, chosen, name, origin)
    given = None if env is None or isinstance(env, str) else given_source(env, name, tuple(config.env_settings.metrics))
    require_supported(config, has_environment=given is not None)
    if given is None:
        return LearnerPlan(config, name, is_named, _named_source(config))
    config, source = _with_given(config, given, num_envs)
    if config.behaviors[name].evaluation is not None and given.is_object:
        raise NotSupportedError(
            "evaluation: needs environments of its own, and env is a single one; pass its name or a function that"
            " makes one"
        )
    return LearnerPlan(config, name, is_named, source)


def _named_source(config: RunConfig) -> EnvironmentSource:
    seed, folder = config.env_settings.seed, RunFolder.of(config)
    source = named_environments(config, max(0, seed), folder.run_logs)[0].source
    if source.env == EDITOR:
        raise ConfigError(
            f"env: must be {environment_names()}. The Unity Editor, which is trained in where no environment is named,"
            " is for `rl-tui`, rl_tui.train and rl_tui.start: a Learner does not wait for it"
        )
    return source


def _absolute(path: object, keyword: str = "folder") -> Path:
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{keyword}: must be a path, got {name!r}")
    return Path(os.path.abspath(name))


def _keyword_of(dotted: str) -> str:
    is_folder = dotted in ("checkpoint_settings.run_id", "checkpoint_settings.results_dir")
    return "folder" if is_folder else keyword_of(dotted)


def _behavior_of(config: RunConfig, behavior: str | None) -> str:
    """The requested behavior, or the only one."""
    names = list(config.behaviors)
    if behavior is None and len(names) > 1:
        raise ConfigError(f"behavior: must be given, since the settings have several: {one_of(names)}")
    if behavior is None:
        return names[0] if names else DEFAULT_BEHAVIOR
    if behavior not in names and config.default_settings is None and names:
        raise ConfigError(f"behavior: {must_be_one_of(names, behavior)}")
    return behavior


def _name_for(folder: Path, env: object) -> str:
    """The name of a behavior that was given none: that of the folder's only behavior, or from the environment."""
    held = trained_behaviors(folder)
    if len(held) == 1:
        return held[0]
    return behavior_of(full_name(env) if isinstance(env, str) else env) or DEFAULT_BEHAVIOR


def _narrowed(config: RunConfig, name: str, new_name: str, origin: str | None) -> RunConfig:
    """With that behavior alone, which learns in the caller's thread and exports every kind of policy."""
    own = config.behaviors.get(name) or config.default_settings
    if own is None:
        raise ConfigError("settings: must have behaviors or default_settings, or be the settings of one behavior")
    update: dict[str, object] = {"threaded": False, "init_path": origin or own.init_path}
    own = own.model_copy(update=update | {"export_policies": own.export_policies or list(EXPORTED_KINDS)})
    environment = config.env_settings
    if isinstance(environment.env, dict) and name in environment.env:
        update = {"env": environment.env[name], "env_kwargs": environment.env_kwargs.get(name, {})}
        environment = environment.model_copy(update=update)
    return config.model_copy(update={"behaviors": {new_name: own}, "env_settings": environment})


def _with_given(config: RunConfig, given: GivenSource, num_envs: int | None) -> tuple[RunConfig, EnvironmentSource]:
    """The environment of the program instead of the file's."""
    settings, source = config.env_settings, given
    copies = given.num_copies
    if copies is not None and num_envs not in (None, copies):
        text = f"must be {copies}, which is how many copies env has, got {num_envs}"
        raise ConfigError(f"num_envs: {text}. A function that makes an environment is called for each copy")
    if settings.num_workers and (given.is_object or given.name is None):
        raise NotSupportedError(
            f"num_workers: must be 0, got {settings.num_workers}: worker processes need the name of an environment, or"
            " a function that they can import"
        )
    update: dict[str, object] = {
        "env": given.name,
        "env_kwargs": {},
        "env_path": None,
        "num_envs": copies or settings.num_envs,
    }
    config = config.model_copy(update={"env_settings": settings.model_copy(update=update)})
    if settings.num_workers and given.name is not None:
        return config, EnvironmentSource(
            given.name, given.behavior, {}, given.metrics, adaptation=adaptation_of(config, [given.behavior])
        )
    return config, replace(source, adaptation=adaptation_of(config, [given.behavior]))
