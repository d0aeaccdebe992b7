"""What the settings of every kind of environment have in common, and how the name of one chooses their class.

A kind is the word before the colon. Those built in are in engine/sampling/environments/settings.py.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field, PrivateAttr, create_model

from rl_tui.engine import registry
from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.config.diagnostics import closest, one_of, path_text
from rl_tui.engine.config.plugin_settings import PluginSettings, settings_of_plugin, settings_of_plugins
from rl_tui.engine.config.types import read_settings
from rl_tui.engine.errors import ConfigError

KIND = "environments"


class EnvironmentSettings(PluginSettings):
    """What `env_kwargs` may hold for one kind of environment."""

    has_one_behavior: ClassVar[bool] = False  # and never more, which has the name that the file gives it
    names_agents: ClassVar[bool] = False  # its agents have names, by which env_settings.behaviors selects them
    pattern: ClassVar[str] = "NAME"  # what follows the colon, in messages
    has_agents: ClassVar[bool] = True  # else it only says what is observed and done, to behaviors that learn offline
    takes_wrappers: ClassVar[bool] = False  # its copies may be put into the classes of env_settings.wrappers
    has_mlagents_defaults: ClassVar[bool] = False  # where no file says otherwise, its behaviors are trained with these
    not_drawn: ClassVar[str] = ""  # why none can be watched or recorded, and what to do instead
    seeding: ClassVar[str] = "Draw from self.np_random, after super().reset(seed=seed)"  # how to repeat its episodes
    # What makes episodes end.
    time_limit: ClassVar[str] = (
        "max_episode_steps in env_kwargs for an id of Gymnasium, or the wrapper gymnasium.wrappers:TimeLimit"
    )
    from_file: ClassVar[type[PluginSettings] | None] = None  # what env_kwargs hold, where a run adds other settings

    _adaptation: Adaptation = PrivateAttr(default_factory=Adaptation)

    @property
    def adaptation(self) -> Adaptation:
        """What the rest of `env_settings` says about environments that were written for other programs."""
        return self._adaptation

    def adapted(self, adaptation: Adaptation) -> Self:
        """The same arguments with that adaptation."""
        settings = self.model_copy()
        settings._adaptation = adaptation
        return settings

    @classmethod
    def runs_user_code(cls, name: str) -> bool:
        """Whether looking up the name after the colon imports modules that may take long."""
        return True

    def with_later_seed(self, shift: int) -> Self:
        """For instances that are made after a restart or by a resumed run: a seed that is larger by `shift`, where
        these settings have one."""
        return self


class OpenArguments(EnvironmentSettings):
    """Any arguments; the environment itself refuses those that do not fit."""

    model_config = ConfigDict(extra="allow")

    @property
    def arguments(self) -> dict[str, Any]:
        """As they were written."""
        return dict(self.model_extra or {})


def kind_of(env: str) -> type[EnvironmentSettings] | None:
    """The settings of the kind before the colon; None for package.module:factory. Raises PluginError."""
    kind = env.strip().partition(":")[0]
    return settings_of_plugin(KIND, kind, EnvironmentSettings) if registry.has(KIND, kind) else None


def has_mlagents_defaults(env: str) -> bool:
    """Whether an environment is trained with ML-Agents' defaults where no file says otherwise. Raises PluginError."""
    kind = kind_of(env)
    return kind is not None and kind.has_mlagents_defaults


def has_agents(env: str) -> bool:
    """Whether anyone acts in it, as far as its name says: a factory may return anything. Raises PluginError."""
    kind = kind_of(env)
    return kind is None or kind.has_agents


def require_wrappable(env: str) -> None:
    """It can be put into wrappers, as far as its name says. Raises ConfigError, PluginError."""
    kind = kind_of(env)
    if kind is not None and not kind.takes_wrappers:
        raise ConfigError(f"--wrappers: {env} takes none: only environments of Gymnasium and PettingZoo do")


def environment_names() -> str:
    """What `env` may be, in words: those of every kind that can be used and has agents, and a factory of the user's."""
    every = settings_of_plugins(KIND, EnvironmentSettings)
    names = [f"{name}:{kind.pattern}" for name, kind in every.items() if kind.implementation and kind.has_agents]
    return one_of([*names, "package.module:factory"])


def near_kind(word: str) -> str | None:
    """The kind of environment that was probably meant: one that begins so, or is similar."""
    kinds = registry.names(KIND)
    return next((kind for kind in kinds if len(word) > 1 and kind.startswith(word)), None) or closest(word, kinds)


def strict_kinds() -> dict[str, type[PluginSettings]]:
    """What `env_kwargs` hold for every kind that lists its arguments, without those that cannot be used."""
    every = settings_of_plugins(KIND, EnvironmentSettings)
    return {name: kind.from_file or kind for name, kind in every.items() if not issubclass(kind, OpenArguments)}


def arguments_of(env: str, kind: type[EnvironmentSettings], kwargs: Mapping[str, object]) -> EnvironmentSettings:
    """The arguments of an environment of that kind. Raises ConfigError with everything that is wrong."""
    settings, wrong = read_settings(kind, dict(kwargs), "env_kwargs")
    if settings is None:
        raise ConfigError("\n".join(f"{env}: {path_text(one.path)}: {one.text}" for one in wrong))
    return settings


def read_arguments(env: object, kwargs: object, context: object) -> object:
    """`env_kwargs` with the defaults of an installed kind; raises pydantic's errors where they do not fit.

    env: one name, or a name for each behavior, by which the arguments are then keyed too.
    """
    if isinstance(env, str):
        kind = _strict_kind(env)
        return kwargs if kind is None else kind.model_validate(kwargs, context=context).model_dump(mode="json")
    if not isinstance(env, dict) or not isinstance(kwargs, dict):
        return kwargs
    kinds = {behavior: kind for behavior, name in env.items() if (kind := _strict_kind(name)) is not None}
    if not kinds:
        return kwargs
    fields: dict[str, Any] = {
        f"of_{number}": (kind, Field(alias=behavior)) for number, (behavior, kind) in enumerate(kinds.items())
    }
    by_behavior = create_model("Arguments", __config__=ConfigDict(extra="allow"), **fields)
    read = by_behavior.model_validate({**{behavior: {} for behavior in kinds}, **kwargs}, context=context)
    return read.model_dump(mode="json", by_alias=True)


def _strict_kind(env: str) -> type[PluginSettings] | None:
    kind = kind_of(env)
    return None if kind is None or issubclass(kind, OpenArguments) else kind.from_file or kind
