"""The environment that a Python program passes: a name, an object, or a function that makes one."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeAlias, cast

import gymnasium
from gymnasium.vector import VectorEnv

from rl_tui.engine import registry
from rl_tui.engine.config.environments import KIND, environment_names, near_kind
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.base_env.adapting import is_base_env
from rl_tui.engine.sampling.environments.base_env.interface import BaseEnv
from rl_tui.engine.sampling.environments.copies import has_member
from rl_tui.engine.sampling.environments.factory import FROM_FACTORY, PROTOCOL, EnvironmentSource, checked
from rl_tui.engine.sampling.environments.named_callable import is_of_program
from rl_tui.engine.sampling.environments.user_factory import wrapped

AnyGymnasiumEnv: TypeAlias = "gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]"  # Any: only its spaces know
AnyEnv: TypeAlias = "AnyGymnasiumEnv | BaseEnv | Environment"
EnvironmentLike: TypeAlias = "str | AnyEnv | Callable[[], AnyEnv]"

_GYMNASIUM_ID = re.compile(r"([\w.-]+:)?([\w.-]+/)?[\w.-]+-v[0-9]+")
_GYMNASIUM_NAME = re.compile(r"gymnasium:(?:.*[:/])?([\w.-]+?)(?:-v[0-9]+)?")
_OBJECTS = (
    "a gymnasium.Env, a gymnasium VectorEnv, a BaseEnv of mlagents_envs, an Environment of rl-tui "
    "or a function that makes one"
)


def full_name(env: str) -> str:
    """The name of an environment with its kind, which a Gymnasium id may leave out."""
    kind, colon, _ = env.strip().partition(":")
    is_kind = colon and (registry.has(KIND, kind) or _is_misspelled(kind))
    is_bare = _GYMNASIUM_ID.fullmatch(env.strip()) and not is_kind
    return f"gymnasium:{env.strip()}" if is_bare else env


def _is_misspelled(kind: str) -> bool:
    """Whether it is like a kind of environment, and no module has that name."""
    return near_kind(kind) is not None and find_spec(kind.partition(".")[0]) is None


@dataclass(frozen=True)
class GivenSource(EnvironmentSource):
    """Makes instances of an environment that the program has made, or by a function of the program.

    env: its name in messages. name: under which other processes find it, None without one.
    """

    given: object = None
    name: str | None = None

    @property
    def is_lent(self) -> bool:
        """See EnvironmentSource."""
        return self.is_object

    @property
    def is_object(self) -> bool:
        """Whether there is one environment only, which belongs to the program."""
        return _is_environment(self.given)

    def _make(self, copies: range) -> list[Environment]:
        """As EnvironmentSource does. An object's own copies are all there are."""
        if self.is_object:
            made = [self.given]
        else:
            factory = cast(Callable[[], object], self.given)
            made = [factory() for _ in copies]
        return checked(self.env, wrapped(self.env, self.behavior, made, self.adaptation), FROM_FACTORY)

    @property
    def has_one_behavior(self) -> bool:
        """Whether it is known to have one behavior, and never more."""
        return isinstance(self.given, gymnasium.Env | VectorEnv)

    @property
    def num_copies(self) -> int | None:
        """How many copies an object holds; None for a function, which makes as many as needed."""
        if not self.is_object:
            return None
        return self.given.num_envs if isinstance(self.given, VectorEnv) else 1


def behavior_of(env: object) -> str | None:
    """A name for what is trained in an environment: that of its Gymnasium id, without module and version.

    env: an object, or a name with its kind. None where there is no id.
    """
    spec = env.spec if isinstance(env, gymnasium.Env | VectorEnv) else None
    name = f"gymnasium:{spec.id}" if spec is not None else env
    found = _GYMNASIUM_NAME.fullmatch(name) if isinstance(name, str) else None
    return found[1] if found else None


def given_source(env: object, behavior: str, metrics: tuple[str, ...]) -> GivenSource:
    """The source of an environment that is no name. Raises ConfigError for anything that is none."""
    if isinstance(env, gymnasium.Env):
        name = _gymnasium_name(env.spec)
        return GivenSource(name or type(env.unwrapped).__name__, behavior, {}, metrics, given=env, name=name)
    if isinstance(env, VectorEnv):
        return GivenSource(type(env).__name__, behavior, {}, metrics, given=env)
    if _is_environment(env):
        return GivenSource(type(env).__name__, behavior, {}, metrics, given=env)
    if callable(env):
        name = factory_name(env)
        if name is not None and is_of_program(name):  # the run's folder outlives the program
            name = None
        known_as = name or str(getattr(env, "__qualname__", type(env).__name__))
        return GivenSource(known_as, behavior, {}, metrics, given=env, name=name)
    raise ConfigError(f"env: must be {environment_names()}, or {_OBJECTS}; got {_described(env)}")


def _is_environment(env: object) -> bool:
    if isinstance(env, gymnasium.Env | VectorEnv) or is_base_env(env):
        return True
    return not isinstance(env, type) and all(has_member(env, attribute) for attribute in PROTOCOL)


def _gymnasium_name(spec: Any) -> str | None:  # Any: an EnvSpec of Gymnasium
    """Under which `gymnasium.make` makes an equal one without arguments, if it does."""
    arguments = {} if spec is None else {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    if spec is None or spec.additional_wrappers or arguments:
        return None
    registered = gymnasium.registry.get(spec.id)
    return f"gymnasium:{spec.id}" if registered is not None and not _differs(spec, registered) else None


def _differs(spec: Any, registered: Any) -> bool:  # Any: EnvSpecs of Gymnasium
    same = ("entry_point", "max_episode_steps", "order_enforce")
    return any(getattr(spec, field) != getattr(registered, field) for field in same)


def factory_name(factory: object) -> str | None:
    """module:name, where importing that finds the same function or class; of the program itself, only here."""
    module, name = getattr(factory, "__module__", None), getattr(factory, "__qualname__", "")
    if not isinstance(module, str) or "<" in name or not name:
        return None
    found: object = importlib.import_module(module)
    for attribute in name.split("."):
        found = getattr(found, attribute, None)
    return f"{module}:{name}" if found is factory else None


def _described(env: object) -> str:
    if hasattr(env, "reset") and hasattr(env, "step"):
        missing = ", ".join(attribute for attribute in PROTOCOL if not hasattr(env, attribute))
        return f"a {type(env).__name__}, which has no {missing}"
    return f"a {type(env).__name__}" if env is not None else "None"
