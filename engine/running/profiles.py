"""The settings of a run that has no file: those of a profile, chosen by what the environment's behaviors have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from rl_tui.engine.config.diagnostics import Mark, visible
from rl_tui.engine.config.environment_name import short_name
from rl_tui.engine.config.environments import has_mlagents_defaults, kind_of
from rl_tui.engine.config.flags import flag_of
from rl_tui.engine.config.loading import merge, read_document_settings
from rl_tui.engine.config.origins import PROFILE
from rl_tui.engine.config.presets import profile_name
from rl_tui.engine.config.profiles import Profile, Trait, name_without_file, read_profile
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.yaml_document import Document, key_paths
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.call_timeout import call_with_timeout, close_unless_busy
from rl_tui.engine.running.environments import adaptation_of, make_pool_apart
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.observation_space import bounds_of
from rl_tui.engine.sampling.environments.space_json import space_from_json
from rl_tui.engine.sampling.pools.worker_process import start_seconds
from rl_tui.engine.specs import BehaviorSpec

_SMALLEST_IMAGE = 36  # rows and columns, which Nature's network needs
_LARGE = 10.0  # of an entry of a vector: networks learn badly from larger ones unless they are normalized


def profiled_config(
    trainer: str, overrides: Mapping[str, object], name_of: Callable[[str], str] = flag_of, only_profiled: bool = False
) -> RunConfig:
    """The settings of a run without a file, with `overrides` by dotted path on top, which messages call by `name_of`.

    The environment is made once, to see its behaviors, and closed. One whose kind has ML-Agents' defaults is not made:
    it has these, of this trainer, unless `only_profiled`. Raises RlTuiError.
    """
    profile = read_profile(trainer)
    draft = _read({"default_settings": {"trainer_type": trainer}}, "--trainer", _of_environment(overrides), name_of)
    environment = draft.env_settings.environment
    name = name_without_file(trainer, environment)
    environments = [environment] if isinstance(environment, str) else list(environment.values())
    of_mlagents = [env for env in environments if has_mlagents_defaults(env)]
    if of_mlagents and only_profiled:
        raise ConfigError(f"{profile_name(trainer)}: {_not_for(of_mlagents[0], draft)}")
    if len(of_mlagents) == len(environments):
        return _named(_read({"default_settings": {"trainer_type": trainer}}, "--trainer", overrides, name_of), name)
    if isinstance(environment, str):
        behaviors = _behaviors(draft, profile, environment)
    else:
        behaviors = {behavior: _behavior(draft, profile, behavior, env) for behavior, env in environment.items()}
    document: dict[str, object] = {"behaviors": behaviors}
    kind = kind_of(environments[0])
    if isinstance(environment, str) and not (kind is not None and kind.has_one_behavior):  # others may appear later
        document["default_settings"] = merge(next(iter(behaviors.values())), {})
    if not of_mlagents:
        document["env_settings"] = profile.env_settings
    return _named(_read(document, PROFILE, overrides, name_of), name)


def traits_of(spec: BehaviorSpec) -> Iterator[Trait]:
    """What decides on the settings of a behavior. A vector whose space is not known may have any size."""
    if spec.actions.branches:
        yield "discrete_actions"
    if spec.actions.continuous:
        yield "continuous_actions"
    if _has_large_vector(spec):
        yield "large_observations"
    if any(each.kind == "image" and min(each.shape[:2]) >= _SMALLEST_IMAGE for each in spec.observations):
        yield "images"


def _has_large_vector(spec: BehaviorSpec) -> bool:
    if not isinstance(spec.spaces, dict):
        return any(observation.kind == "vector" for observation in spec.observations)
    bounds = bounds_of(space_from_json(spec.spaces["observation"]))
    vectors = (own for own, each in zip(bounds, spec.observations, strict=True) if each.kind == "vector")
    return any(own is not None and bool((np.abs(np.concatenate(own)) > _LARGE).any()) for own in vectors)


def _of_environment(overrides: Mapping[str, object]) -> dict[str, object]:
    """Those that say which environment it is, and which agents in it are trained."""
    return {path: value for path, value in overrides.items() if path.startswith("env_settings.")}


def _not_for(env: str, draft: RunConfig) -> str:
    if draft.env_settings.env is None and draft.env_settings.env_path is None:
        return "needs the name of an environment (env), such as gymnasium:CartPole-v1"
    return (
        f"is for environments of Gymnasium and PettingZoo, and for factories; {visible(env)} has ML-Agents' defaults,"
        " which are used without CONFIG"
    )


def _behaviors(draft: RunConfig, profile: Profile, env: str) -> dict[str, dict[str, object]]:
    """The settings of every behavior that the environment has at first."""
    specs = _specs(draft, env, short_name(env), draft.env_settings.env_kwargs)
    return {name: profile.settings_for([*traits_of(spec)]) for name, spec in specs.items()}


def _behavior(draft: RunConfig, profile: Profile, behavior: str, env: str) -> dict[str, object]:
    """The settings of the one behavior that is trained in an environment."""
    if has_mlagents_defaults(env):
        return {"trainer_type": draft.behaviors[behavior].trainer_type}
    kwargs = draft.env_settings.env_kwargs.get(behavior, {})
    assert isinstance(kwargs, dict)
    specs = _specs(draft, env, behavior, kwargs)
    spec = specs.get(behavior) or next(iter(specs.values()))
    return profile.settings_for([*traits_of(spec)])


def _specs(draft: RunConfig, env: str, behavior: str, kwargs: Mapping[str, object]) -> Mapping[str, BehaviorSpec]:
    """The behaviors of one copy of the environment, at least one. behavior: the name of an only one."""
    source = EnvironmentSource(env, behavior, kwargs, adaptation=adaptation_of(draft, [behavior]))
    timeout = start_seconds(draft.env_settings.timeout_wait)
    pool = make_pool_apart(source, source.make, 1, timeout)

    def find_behaviors() -> None:
        pool.start()
        if not pool.specs:  # some only know their agents once they are reset
            pool.reset(0)
            pool.receive(0)

    try:
        call_with_timeout(timeout, pool, find_behaviors)
        if not pool.specs:
            raise ConfigError(f"{env}: has no agents after a reset: write a file with default_settings for them")
        return dict(pool.specs)
    finally:
        close_unless_busy(pool, timeout)


def _read(
    values: dict[str, object], origin: str, overrides: Mapping[str, object], name_of: Callable[[str], str]
) -> RunConfig:
    keys = dict.fromkeys(key_paths(values), Mark(1, 1))  # all are meant
    return read_document_settings(Document(values, keys, dict(keys)), "", overrides, name_of, origin)


def _named(config: RunConfig, name: str) -> RunConfig:
    return config.with_source(replace(config.source, run_name=name))
