"""From the name of an environment to its instances."""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from rl_tui.engine import registry
from rl_tui.engine.errors import ConfigError, NotSupportedError
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.measuring import Measuring
from rl_tui.engine.sampling.environments.modules import import_named
from rl_tui.engine.specs import Json

PLANNED = {"pettingzoo": "PettingZoo environments are", "unity": "Unity environments are"}
_PROTOCOL = ("specs", "num_agents", "reset", "step", "close")


class EnvironmentKind(Protocol):
    """What the registry has under "environments": makes instances from the text after the first colon."""

    @staticmethod
    def make(name: str, behavior: str, num_copies: int, kwargs: Mapping[str, object]) -> list[Environment]:
        """Instances that together hold `num_copies` copies. Raises ConfigError and NotSupportedError."""


@dataclass(frozen=True)
class EnvironmentSource:
    """What a run's instances are made from: the environment's name and arguments.

    metrics: keys of `info` that are reported as statistics. is_watched: whether instances render if they can, as text
    rather than as frames.
    """

    env: str
    behavior: str
    kwargs: Mapping[str, object]
    metrics: tuple[str, ...] = ()
    is_watched: bool = False

    def make(self, first: int, count: int) -> list[Environment]:
        """Instances that hold `count` copies, the first of which is copy number `first` of the run."""
        kwargs = self._kwargs_to_be_watched() if self.is_watched else self.kwargs
        made = make_environments(self.env, self.behavior, count, kwargs)
        for environment in made:
            if self.metrics and isinstance(environment, Measuring):
                environment.measure(self.metrics)
        return made

    @property
    def has_one_behavior(self) -> bool:
        """Whether it is known to have one behavior, and never more."""
        return self.env.partition(":")[0] in ("gymnasium", "toy")

    def showing_frames(self) -> EnvironmentSource:
        """A source of the same environment whose instances render frames, if it has a render mode."""
        kind, _, name = self.env.partition(":")
        if kind not in registry.names("environments"):
            knows_modes = "render_mode" in inspect.signature(find_factory(self.env, kind, name)).parameters
        else:
            knows_modes = kind in ("gymnasium", "toy")
        kwargs = {"render_mode": "rgb_array", **self.kwargs} if knows_modes else self.kwargs
        return replace(self, kwargs=kwargs)

    def watched(self) -> EnvironmentSource:
        """A source of the same environment for watching; how it is drawn is decided when its instances are made."""
        return replace(self, is_watched=True)

    def _kwargs_to_be_watched(self) -> Mapping[str, object]:
        """Text if the environment can render text, else frames; never a window."""
        kind, _, name = self.env.partition(":")
        if kind != "gymnasium":
            kwargs = self.showing_frames().kwargs
            return {**kwargs, "render_mode": "rgb_array"} if "render_mode" in kwargs else kwargs
        from rl_tui.engine.sampling.environments.gymnasium import render_modes

        modes = render_modes(name)
        mode = next((mode for mode in ("ansi", "rgb_array") if mode in modes), None)
        return self.kwargs if mode is None else {**self.kwargs, "render_mode": mode}

    def to_json(self) -> Json:
        """What `from_json` turns into an equal source. Raises ConfigError when kwargs are not plain values."""
        try:
            kwargs: Json = json.loads(json.dumps(dict(self.kwargs)))
        except TypeError as error:
            raise ConfigError(f"{self.env}: env_kwargs must be plain values for worker processes: {error}") from error
        return {
            "env": self.env,
            "behavior": self.behavior,
            "kwargs": kwargs,
            "metrics": list(self.metrics),
            "is_watched": self.is_watched,
        }

    @staticmethod
    def from_json(fields: Json) -> EnvironmentSource:
        """The source that was written."""
        assert isinstance(fields, dict)
        kwargs, metrics = fields["kwargs"], fields["metrics"]
        assert isinstance(kwargs, dict)
        assert isinstance(metrics, list)
        env, behavior = str(fields["env"]), str(fields["behavior"])
        return EnvironmentSource(env, behavior, kwargs, tuple(map(str, metrics)), bool(fields["is_watched"]))


def make_environments(env: str, behavior: str, num_copies: int, kwargs: Mapping[str, object]) -> list[Environment]:
    """Instances that together hold `num_copies` copies of the environment `env` names.

    env: "gymnasium:CartPole-v1" and the like, with any kind that the registry has before the first colon, or
    "package.module:factory". Raises ConfigError when nothing has that name, NotSupportedError for planned kinds.
    """
    kind, colon, name = env.partition(":")
    if not colon or not name:
        raise ConfigError(f"{env}: must be gymnasium:ID, toy:NAME or package.module:factory")
    if kind in PLANNED:
        raise NotSupportedError(f"{env}: {PLANNED[kind]} not supported yet")
    if kind in registry.names("environments"):
        source = cast(type[EnvironmentKind], registry.settings_class("environments", kind))
        return source.make(name, behavior, num_copies, kwargs)
    return _from_factory(env, kind, name, behavior, num_copies, kwargs)


def require_environment(env: str) -> None:
    """An environment of that name can be looked up; its module is imported, nothing of it is called.

    Raises ConfigError as making it would. The name of an installed kind's environment is not checked.
    """
    kind, _, name = env.partition(":")
    if kind == "gymnasium":
        from rl_tui.engine.sampling.environments.gymnasium import find

        find(name)
    elif kind == "toy":
        from rl_tui.engine.sampling.environments.toys.factory import find_task

        find_task(name)
    elif kind not in registry.names("environments"):
        find_factory(env, kind, name)


def _from_factory(
    env: str, module: str, name: str, behavior: str, num_copies: int, kwargs: Mapping[str, object]
) -> list[Environment]:
    """What the user's factory returns, called once for each copy; wrapped if it is Gymnasium's."""
    import gymnasium
    from gymnasium.vector import VectorEnv

    from rl_tui.engine.sampling.environments.gymnasium_loop import GymnasiumLoop
    from rl_tui.engine.sampling.environments.gymnasium_vector import GymnasiumVector

    factory = find_factory(env, module, name)
    try:
        inspect.signature(factory).bind(**kwargs)
    except TypeError as error:
        raise ConfigError(f"{env}: invalid env_kwargs: {name}{inspect.signature(factory)} {error}") from error
    copies = [factory(**kwargs) for _ in range(num_copies)]
    first = copies[0]
    if isinstance(first, gymnasium.Env):
        return [GymnasiumLoop(behavior, copies)]
    if isinstance(first, VectorEnv):
        return [GymnasiumVector(behavior, copy) for copy in copies]
    if missing := [attribute for attribute in _PROTOCOL if not hasattr(first, attribute)]:
        raise ConfigError(
            f"{env} must return a gymnasium.Env, a gymnasium VectorEnv or an Environment of rl-tui, got "
            f"{type(first).__name__}, which has no {', '.join(missing)}"
        )
    return copies


def find_factory(env: str, module: str, name: str) -> Callable[..., Any]:  # Any: a user's function
    """The callable at `module:name`.

    Raises ConfigError naming the part that does not exist, and InstanceFailure if importing fails.
    """
    try:
        found: Any = import_named(env, module)
    except ModuleNotFoundError as error:
        near = difflib.get_close_matches(module.partition(".")[0], registry.names("environments"), n=1)
        hint = f". Did you mean {near[0]}:{name}?" if near else ""
        raise ConfigError(f"{env}: no module named {error.name!r}{hint}") from error
    for attribute in name.split("."):
        if not hasattr(found, attribute):
            near = difflib.get_close_matches(attribute, dir(found), n=1)
            hint = f". Did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{env}: module {module} has no attribute {attribute!r}{hint}")
        found = getattr(found, attribute)
    if not callable(found):
        raise ConfigError(f"{env}: {name} must be a class or a function, got {type(found).__name__}")
    return cast(Callable[..., Any], found)
