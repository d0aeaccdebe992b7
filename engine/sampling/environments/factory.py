"""From the name of an environment to its instances."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from rl_tui.engine import registry
from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.config.environments import (
    KIND,
    EnvironmentSettings,
    OpenArguments,
    arguments_of,
    environment_names,
    kind_of,
)
from rl_tui.engine.errors import ConfigError, NotSupportedError
from rl_tui.engine.sampling.environments.base import Environment, EnvironmentKind, ShowsEnds
from rl_tui.engine.sampling.environments.copies import has_member
from rl_tui.engine.sampling.environments.measuring import Measuring
from rl_tui.engine.sampling.environments.named_callable import is_of_program
from rl_tui.engine.sampling.environments.user_factory import UserFactory
from rl_tui.engine.specs import Json

FROM_KIND = "make must return a list of environments"
FROM_FACTORY = (
    "must return a gymnasium.Env, a gymnasium VectorEnv, a ParallelEnv or AECEnv of PettingZoo, a BaseEnv of"
    " mlagents_envs or an Environment of rl-tui"
)
PROTOCOL = ("specs", "num_agents", "reset", "step", "close")


Drawn: TypeAlias = Literal["no", "as frames", "as frames or text"]


@dataclass(frozen=True)
class EnvironmentSource:
    """What a run's instances are made from: the environment's name and arguments.

    metrics: keys of `info` that are reported as statistics. drawn: how instances render, if they can. first_copy: the
    number of the first copy among all copies of the run. seed_shift: what is added to the seeds that instances are made
    with, so that those made later do not repeat the episodes of the first ones. adaptation: the rest of
    env_settings. shows_ends: see ShowsEnds.
    """

    env: str
    behavior: str
    kwargs: Mapping[str, object]
    metrics: tuple[str, ...] = ()
    drawn: Drawn = "no"
    first_copy: int = 0
    seed_shift: int = 0
    adaptation: Adaptation = field(default_factory=Adaptation)
    shows_ends: bool = False

    def make(self, first: int, count: int) -> list[Environment]:
        """Instances that hold `count` copies, the first of which is number `first` of this source's."""
        number = self.first_copy + first
        made = self._make(range(number, number + count))
        for environment in made:
            if self.metrics and isinstance(environment, Measuring):
                environment.measure(self.metrics)
            if self.shows_ends and isinstance(environment, ShowsEnds):
                environment.show_ends()
        return made

    def _make(self, copies: range) -> list[Environment]:
        """The instances of these copies of the run, which measure nothing yet."""
        return make_environments(
            self.env, self.behavior, copies, self.kwargs, self.drawn, self.seed_shift, self.adaptation
        )

    @property
    def is_lent(self) -> bool:
        """Whether its environments are the user's, who closes them."""
        return False

    @property
    def is_here(self) -> bool:
        """Whether no other process can make its environments."""
        return self.is_lent or is_of_program(self.env)

    @property
    def has_one_behavior(self) -> bool:
        """Whether it is known to have one behavior, and never more."""
        kind = kind_of(self.env)
        return kind is not None and kind.has_one_behavior

    @property
    def not_drawn(self) -> str:
        """Why it can neither be watched nor recorded; "" where it may."""
        kind = kind_of(self.env)
        return "" if kind is None else kind.not_drawn

    @property
    def seeding(self) -> str:
        """What its author has to do for the same seed to give the same episodes."""
        return (kind_of(self.env) or EnvironmentSettings).seeding

    @property
    def time_limit(self) -> str:
        """What its user or author can do so that its episodes end."""
        return (kind_of(self.env) or EnvironmentSettings).time_limit

    def showing_frames(self) -> EnvironmentSource:
        """A source of the same environment whose instances render frames, if they can."""
        return replace(self, drawn="as frames")

    def watched(self) -> EnvironmentSource:
        """A source of the same environment for watching: text if it can render text, else frames; never a window."""
        return replace(self, drawn="as frames or text")

    def showing_ends(self) -> EnvironmentSource:
        """A source of the same environment whose instances also draw how episodes ended, if they can: see ShowsEnds."""
        return replace(self, shows_ends=True)

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
            "drawn": self.drawn,
            "first_copy": self.first_copy,
            "seed_shift": self.seed_shift,
            "adaptation": self.adaptation.to_json(),
            "shows_ends": self.shows_ends,
        }

    @staticmethod
    def from_json(fields: Json) -> EnvironmentSource:
        """The source that was written."""
        assert isinstance(fields, dict)
        kwargs, metrics, adaptation = fields["kwargs"], fields["metrics"], fields["adaptation"]
        assert isinstance(kwargs, dict)
        assert isinstance(adaptation, dict)
        assert isinstance(metrics, list)
        env, behavior = str(fields["env"]), str(fields["behavior"])
        drawn, first_copy = cast(Drawn, fields["drawn"]), cast(int, fields["first_copy"])
        seed_shift, adapted = cast(int, fields["seed_shift"]), Adaptation.from_json(adaptation)
        return EnvironmentSource(
            env, behavior, kwargs, tuple(map(str, metrics)), drawn, first_copy, seed_shift, adapted,
            fields["shows_ends"] is True,
        )  # fmt: skip


def make_environments(
    env: str,
    behavior: str,
    copies: range,
    kwargs: Mapping[str, object],
    drawn: Drawn = "no",
    seed_shift: int = 0,
    adaptation: Adaptation | None = None,
) -> list[Environment]:
    """Instances that together hold these copies of the environment that `env` names.

    env: "gymnasium:CartPole-v1" and the like, with any kind that the registry has before the first colon, or
    "package.module:factory". Raises ConfigError when nothing has that name or kwargs do not fit, NotSupportedError for
    planned kinds, PluginError.
    """
    kind, arguments, name = _find(env)
    settings = arguments_of(env, arguments, kwargs).with_later_seed(seed_shift)
    _require(kind, env, name)
    if drawn != "no":
        settings = kind.to_draw(name, settings, may_be_text=drawn == "as frames or text")
    if adaptation is not None:
        settings = settings.adapted(adaptation)
    made: object = kind.make(name, behavior, copies, settings)  # a user's code may return anything
    return checked(env, made, FROM_FACTORY if isinstance(kind, UserFactory) else FROM_KIND)


def checked(env: str, made: object, expected: str) -> list[Environment]:
    """The list of environments that something has made. Raises ConfigError for anything else, saying what it must."""
    copies = list(made) if isinstance(made, Iterable) else []
    if missing := [attribute for attribute in PROTOCOL if not copies or not has_member(copies[0], attribute)]:
        found = "an empty list" if isinstance(made, Iterable) else "None" if made is None else type(made).__name__
        if copies:
            found = f"{type(copies[0]).__name__}, which has no {', '.join(missing)}"
        raise ConfigError(f"{env}: {expected}, got {found}")
    return copies


def require_environment(env: str) -> None:
    """An environment of that name can be looked up; its module may be imported, nothing is made.

    Raises RlTuiError as making it would.
    """
    kind, _, name = _find(env)
    _require(kind, env, name)


def _require(kind: EnvironmentKind[Any], env: str, name: str) -> None:
    """What an installed kind raises, other than errors on purpose, is a PluginError that names its package."""
    with registry.blaming(KIND, env.strip().partition(":")[0], "require"):
        kind.require(name)


def _find(env: str) -> tuple[EnvironmentKind[Any], type[EnvironmentSettings], str]:
    """What makes it, the class of its arguments, and its name there."""
    scheme, colon, name = env.strip().partition(":")
    if not colon or not name:
        raise ConfigError(f"{env}: must be {environment_names()}")
    arguments = kind_of(env)
    if arguments is None:
        return UserFactory(), OpenArguments, env
    if not arguments.implementation:
        raise NotSupportedError(f"{env}: {scheme} environments are not supported yet")
    found = registry.implementation(KIND, scheme)
    with registry.blaming(KIND, scheme):
        if not issubclass(found, EnvironmentKind):
            raise TypeError(f"{found.__name__} must be a subclass of EnvironmentKind")
        return found(), arguments, name
