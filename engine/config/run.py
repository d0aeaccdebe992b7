"""All settings of a run, and the sections that hold for the whole of it. Keys and defaults are ML-Agents'."""

import re
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, JsonValue, PrivateAttr, ValidationInfo, field_validator, model_validator

from rl_tui.engine.config.agents import BehaviorPatterns, Patterns
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.diagnostics import SourceMap, describe, must_be, visible
from rl_tui.engine.config.environment_name import DEMONSTRATIONS, EDITOR, UNITY, read_environment
from rl_tui.engine.config.environment_parameters import EnvironmentParameter
from rl_tui.engine.config.environments import read_arguments
from rl_tui.engine.config.types import (
    AUTO,
    Device,
    PathText,
    Positive,
    PositiveWhole,
    Settings,
    WholeFromMinusOne,
    WholeFromZero,
    Workers,
    refusal,
)
from rl_tui.engine.config.wrappers import read_wrappers
from rl_tui.engine.config.writers import Writers, default_writers
from rl_tui.engine.session.behavior_view import RETURN


def _read_arguments(value: object) -> object:
    """Numbers among the arguments are converted to text, as in ML-Agents."""
    if not isinstance(value, list):
        return value
    return [str(entry) if isinstance(entry, int | float) else entry for entry in value]


def _read_kwargs(value: object, info: ValidationInfo) -> object:
    env, path = info.data.get("env"), info.data.get("env_path")
    if env is None and path is not None and "env" in info.data:  # where neither is set, a program may bring one
        env = f"{UNITY}:{path}"
    return read_arguments(env, value, info.context)


STEPS_PER_SECOND = "Performance/Steps per Second"
_OUR_TAGS = (
    *("Environment/Cumulative Reward", "Environment/Episode Length", STEPS_PER_SECOND),
    *("Losses/", "Policy/", "Evaluation/"),
)
_OUR_NAMES = frozenset({RETURN, "Step", "Is Training"})  # of a curve on the screen, and of gauges in timers.json


def metric_tag(key: str) -> str:
    """The name of a statistic: a key with a slash is the name itself, as with StatsRecorder of ML-Agents."""
    return key if "/" in key else f"Environment/{key}"


def is_our_tag(tag: str) -> bool:
    """Whether rl-tui reports something under this name, or may do so."""
    return tag in _OUR_NAMES or tag.startswith(_OUR_TAGS)


class EnvSettings(Settings):
    """Which environment, how many copies of it, and what happens when one fails."""

    env_path: PathText | None = None
    env_args: Annotated[list[str] | None, BeforeValidator(_read_arguments)] = None
    base_port: PositiveWhole = 5005
    num_envs: PositiveWhole = 1
    num_areas: PositiveWhole = 1
    timeout_wait: PositiveWhole = 60
    seed: Annotated[WholeFromMinusOne, Field(le=2**32 - 1)] = -1
    max_lifetime_restarts: WholeFromMinusOne = 10
    restarts_rate_limit_n: WholeFromMinusOne = 1
    restarts_rate_limit_period_s: PositiveWhole = 60
    env: Annotated[str | dict[str, str] | None, BeforeValidator(read_environment)] = Field(
        None,
        description="The path of a Unity player, gymnasium:ID, toy:NAME, package.module:factory, or a mapping of"
        " behavior to one of these; null: env_path, else the Unity Editor.",
    )
    env_kwargs: Annotated[dict[str, JsonValue], BeforeValidator(_read_kwargs)] = Field(
        default_factory=dict,
        description="Arguments of the environment; by behavior where env is a mapping.",
        validate_default=True,  # an installed kind may need some
    )
    num_workers: Workers = Field(
        0,
        description="Worker processes for the copies; 0: all in this process; auto: chosen at the start, by how long a"
        " step takes and how many CPUs there are.",
    )
    act_in: Literal["auto", "main", "workers"] = Field(
        "auto",
        description="Where policies act that are trained in worker processes: in the workers, which then pass on whole"
        " blocks of experience, or in the training process; auto: in the workers, where the policy can.",
    )
    shares: Literal["even", "adaptive"] = Field(
        "even",
        description="How workers that act divide the experience of an update: evenly, or fast ones collect more, which"
        " no run repeats exactly.",
    )
    parameters: dict[str, str] = Field(
        default_factory=dict, description="The attribute of an environment that each environment parameter sets."
    )
    wrappers: list[JsonValue] = Field(
        default_factory=list,
        description="Classes around each copy of a Gymnasium or PettingZoo environment, the first innermost:"
        " package.module:Class, or a mapping from one to its arguments.",
    )
    metrics: list[str] = Field(
        default_factory=list, description="Keys of an environment's info whose means are recorded as statistics."
    )
    behaviors: BehaviorPatterns = Field(
        default_factory=dict,
        description="The agents of each behavior, by patterns of their names: * is any text. PettingZoo only.",
    )
    random_agents: Patterns = Field(
        default_factory=list, description="Patterns of agents that act at random, untrained. PettingZoo only."
    )
    training_analytics: bool = Field(
        False, description="Send Unity players, for their analytics, how the training is set up, with names hashed."
    )

    @property
    def environment(self) -> str | dict[str, str]:
        """What is trained in: `env`, else the player of `env_path`, else the Unity Editor."""
        if self.env is not None:
            return self.env
        return EDITOR if self.env_path is None else f"{UNITY}:{self.env_path}"

    @field_validator("metrics")
    @classmethod
    def _check_metrics(cls, keys: list[str]) -> list[str]:
        for index, key in enumerate(keys):
            if not key.strip():
                raise refusal(must_be("the name of a key of info", key), index)
            if key in keys[:index]:
                raise refusal(f"must be named once, got {describe(key)} twice", index)
            if is_our_tag(metric_tag(key)):
                raise refusal(f"must be renamed in info: {describe(key)} is a statistic of rl-tui's own", index)
        return keys

    @field_validator("wrappers")
    @classmethod
    def _check_wrappers(cls, entries: list[JsonValue]) -> list[JsonValue]:
        read_wrappers(entries)
        return entries

    @field_validator("env_kwargs")
    @classmethod
    def _check_kwargs(cls, kwargs: dict[str, JsonValue], info: ValidationInfo) -> dict[str, JsonValue]:
        environments = info.data.get("env")
        if not isinstance(environments, dict):
            return kwargs
        for behavior, entry in kwargs.items():
            if behavior not in environments:
                raise refusal(must_be("a behavior that env names", behavior, environments), behavior)
            if not isinstance(entry, dict):
                raise refusal(must_be("a mapping of arguments", entry), behavior)
        return kwargs

    @property
    def worker_count(self) -> int:
        """`num_workers` of a run that has chosen it."""
        assert self.num_workers != AUTO, "the start of a run makes it a number"
        return int(self.num_workers)

    @field_validator("num_workers")
    @classmethod
    def _check_workers(cls, workers: int | str, info: ValidationInfo) -> int | str:
        num_envs = info.data.get("num_envs", workers)
        if isinstance(workers, int) and workers > num_envs:
            raise refusal(must_be(f"at most num_envs ({num_envs})", workers))
        return workers


class EngineSettings(Settings):
    """How a Unity player draws and counts time."""

    width: PositiveWhole = 84
    height: PositiveWhole = 84
    quality_level: WholeFromZero = 5
    time_scale: Positive = 20.0
    target_frame_rate: WholeFromMinusOne = -1
    capture_frame_rate: WholeFromZero = 60
    no_graphics: bool = False
    no_graphics_monitor: bool = False


# A run's name is also its folder's: no separators, no leading dot or dash, nothing special to a shell.
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class CheckpointSettings(Settings):
    """The run's name, its folder, and what it starts from."""

    run_id: str | None = Field(None, description="The run's folder in results_dir; null: named by the file, counted.")
    initialize_from: str | None = None
    load_model: bool = False
    resume: bool = False
    force: bool = False
    train_model: bool = False
    inference: bool = False
    results_dir: PathText = Field("results", min_length=1)
    resume_or_start: bool = Field(False, description="Continue the run if there is one, otherwise start it.")

    @field_validator("run_id", "initialize_from")
    @classmethod
    def _check_run_id(cls, name: str | None) -> str | None:
        if name is not None and not _RUN_ID.fullmatch(name):
            rest = "at most 64 letters, digits, dots, dashes and underscores"
            raise refusal(f"must start with a letter or digit and have {rest}, got {describe(name)}")
        return name


class TorchSettings(Settings):
    """Where networks are computed."""

    device: Device = Field(
        AUTO,
        description="cpu, cuda, cuda:N or mps; auto or null: each behavior is timed at the start, and updates and acts"
        " where that is faster.",
    )


def _check_behavior_name(name: object) -> object:
    if isinstance(name, str) and (not name or "?" in name):
        raise refusal("must be a behavior's name, not empty and without ?team=N: teams share their settings")
    return name


BehaviorName: TypeAlias = Annotated[str, BeforeValidator(_check_behavior_name)]


class RunConfig(Settings):
    """All settings of a run."""

    synonyms: ClassVar = {
        "behaviours": "behaviors",
        "env": "env_settings.env",
        "curriculum": "environment_parameters",
        "parameter_randomization": "environment_parameters",
    }

    default_settings: BehaviorConfig | None = None
    behaviors: dict[BehaviorName, BehaviorConfig] = Field(default_factory=dict)
    env_settings: EnvSettings = Field(default_factory=EnvSettings)
    engine_settings: EngineSettings = Field(default_factory=EngineSettings)
    environment_parameters: dict[str, EnvironmentParameter] | None = None
    checkpoint_settings: CheckpointSettings = Field(default_factory=CheckpointSettings)
    torch_settings: TorchSettings = Field(default_factory=TorchSettings)
    debug: bool = False
    writers: Writers = Field(
        default_factory=default_writers, description="What records the statistics of the run; null: not this one."
    )

    _source: SourceMap = PrivateAttr(default_factory=SourceMap)

    @property
    def source(self) -> SourceMap:
        """Where each key was written, for messages."""
        return self._source

    @property
    def all_behaviors(self) -> list[BehaviorConfig]:
        """The settings of each that is listed, and the default ones where there are some."""
        return [*self.behaviors.values(), *([] if self.default_settings is None else [self.default_settings])]

    def with_source(self, source: SourceMap) -> Self:
        """The same settings, with where they were written."""
        config = self.model_copy()
        config._source = source
        return config

    def acting_deterministically(self, origin: str) -> Self:
        """The same settings with every listed behavior acting deterministically, as ML-Agents' flag does; that is where
        they have it from."""
        behaviors = {
            name: behavior.model_copy(
                update={"network_settings": behavior.network_settings.model_copy(update={"deterministic": True})}
            )
            for name, behavior in self.behaviors.items()
        }
        paths = (("behaviors", name, "network_settings", "deterministic") for name in behaviors)
        origins = dict(self.source.origins)
        origins.update((path, origin) for path in paths)
        config = self.model_copy(update={"behaviors": behaviors})
        return config.with_source(replace(self.source, origins=origins))

    @model_validator(mode="after")
    def _learn_from_demonstrations(self) -> Self:
        """Without an environment, behaviors that learn from demonstrations alone have these in its place."""
        settings = self.env_settings
        is_offline = all(each.hyperparameters.learns_offline for each in self.all_behaviors)
        if settings.env is None and settings.env_path is None and self.behaviors and is_offline:
            env = {
                name: f"{DEMONSTRATIONS}:{behavior.hyperparameters.demonstration_path}"
                for name, behavior in self.behaviors.items()
            }
            found = settings.model_copy(update={"env": env})
            object.__setattr__(self, "env_settings", found)  # frozen, but still being built
        return self

    @field_validator("env_settings")
    @classmethod
    def _check_environments(cls, settings: EnvSettings, info: ValidationInfo) -> EnvSettings:
        """A mapping of environments must have exactly the behaviors."""
        behaviors = info.data.get("behaviors")
        if not isinstance(settings.env, dict) or behaviors is None:
            return settings
        for name in settings.env:
            if name not in behaviors:
                raise refusal(must_be("a key under behaviors", name, behaviors), "env", name)
        if missing := [visible(name) for name in behaviors if name not in settings.env]:
            raise refusal(f"must have an environment for each behavior, got none for {', '.join(missing)}", "env")
        return settings
