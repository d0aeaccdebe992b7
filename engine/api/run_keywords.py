"""The keyword arguments of a run: the flags of the command line, with the same names and meanings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

from rl_tui.engine.api.environments import factory_name, full_name
from rl_tui.engine.api.settings import SettingsLike, read_run_config
from rl_tui.engine.config import run_flags
from rl_tui.engine.config.diagnostics import suggest
from rl_tui.engine.config.origins import PYTHON
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.support import require_supported
from rl_tui.engine.config.types import AUTO
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.named_callable import is_of_program

EnvironmentName: TypeAlias = "str | Callable[..., Any]"  # Any: what a user's factory takes and makes

_PATHS = {flag.keyword: flag.path for flag in run_flags.IN_PYTHON}
_KEYWORDS = {path: keyword for keyword, path in _PATHS.items()}


class RunKeywords(TypedDict, total=False):
    """Each wins over the file; one that is missing, or None, leaves the setting to it. False unsets a `true` there.

    env: as in the file, where a Gymnasium id may stand alone; or a class or function that makes one, which must be
    importable by its name; or either for each behavior. Where the file names none either, it is the Unity Editor. set:
    further settings by dotted path.
    """

    run_id: str | None
    results_dir: str | os.PathLike[str] | None
    resume: bool | None
    resume_or_start: bool | None
    force: bool | None
    initialize_from: str | None
    inference: bool | None
    deterministic: bool | None
    seed: int | None
    torch_device: str | None
    env: EnvironmentName | Mapping[str, EnvironmentName] | None
    num_envs: int | None
    num_workers: int | Literal["auto"] | None
    timeout_wait: int | None
    max_lifetime_restarts: int | None
    restarts_rate_limit_n: int | None
    restarts_rate_limit_period_s: int | None
    base_port: int | None
    num_areas: int | None
    width: int | None
    height: int | None
    quality_level: int | None
    time_scale: float | None
    target_frame_rate: int | None
    capture_frame_rate: int | None
    no_graphics: bool | None
    no_graphics_monitor: bool | None
    env_args: Sequence[str] | None
    debug: bool | None
    set: Mapping[str, object] | None


def runnable_config(settings: SettingsLike, keywords: RunKeywords) -> RunConfig:
    """The settings of a run, all of which are supported. Raises ConfigError and NotSupportedError."""
    config = read_run_config(settings, _overrides(keywords), name_of=argument_of)
    if keywords.get("deterministic"):
        config = config.acting_deterministically(PYTHON)
    require_supported(config)
    _require_importable(config)
    return config


def argument_of(dotted: str) -> str:
    """The argument that sets a path: its keyword, or the key of `set`."""
    return _KEYWORDS.get(dotted, dotted)


def _overrides(keywords: RunKeywords) -> dict[str, object]:
    """The settings by dotted path."""
    given: dict[str, Any] = {key: value for key, value in keywords.items() if value is not None}
    given.pop("deterministic", None)
    others = given.pop("set", {})
    if unknown := [keyword for keyword in given if keyword not in _PATHS]:
        advice = suggest(unknown[0], RunKeywords.__annotations__) or " Other settings are given in `set`."
        raise TypeError(f"rl_tui.train and rl_tui.start have no argument {unknown[0]!r}.{advice}")
    if not isinstance(others, Mapping) or not all(isinstance(path, str) for path in others):
        expected = 'a mapping from settings to values, such as {"behaviors.Walker.max_steps": 10000}'
        raise ConfigError(f"set: must be {expected}, got {others!r}")
    if "env" in given:
        given["env"] = _named(given["env"])
    return {_PATHS[keyword]: value for keyword, value in given.items()} | dict(others)


def _named(env: object) -> object:
    """With the names of the callables in it."""
    if isinstance(env, Mapping):
        return {behavior: _named(each) for behavior, each in env.items()}
    return full_name(env) if isinstance(env, str) else _importable_name(env)


def _importable_name(factory: object) -> str:
    """`module:name`, by which an environment's class or function is found. Raises ConfigError if it is not."""
    name = factory_name(factory) if callable(factory) else None
    if name is None:
        what = getattr(factory, "__qualname__", None) or f"a {type(factory).__name__}"
        raise ConfigError(
            f"env: must be a name, or a class or function at the top level of a module or of a notebook, got {what}"
        )
    return name


def _require_importable(config: RunConfig) -> None:
    """Worker processes can import the environments. Raises ConfigError."""
    settings = config.env_settings
    names = settings.env.values() if isinstance(settings.env, dict) else [settings.env or ""]
    own = [name for name in names if is_of_program(name)]
    if own and settings.num_workers not in (0, AUTO):
        raise ConfigError(
            f"env: {own[0].partition(':')[2]} is defined in the program itself, where worker processes cannot import"
            f" it: num_workers must be 0, got {settings.num_workers}, or the environment moved into a module"
        )
