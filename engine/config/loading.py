"""From a YAML file and a command line to the settings of a run, or to one error that names every mistake."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import starmap
from pathlib import Path
from typing import Annotated, ClassVar, Self, TypeAlias

from pydantic import (
    BeforeValidator,
    Field,
    JsonValue,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import ErrorDetails

from rl_tui.engine.config import support
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.defaults import merge_defaults, missing_trainers, override, settle_start
from rl_tui.engine.config.diagnostics import Diagnostic, KeyPath, SourceMap, own_and_inherited, suggest, visible
from rl_tui.engine.config.environment_parameters import EnvironmentParameter
from rl_tui.engine.config.flags import why_unusable
from rl_tui.engine.config.legacy.modernize import modernize, read_document
from rl_tui.engine.config.run import CheckpointSettings, EngineSettings, EnvSettings, TorchSettings
from rl_tui.engine.config.types import Settings, as_diagnostic, refusal
from rl_tui.engine.config.yaml_document import Document, write_yaml
from rl_tui.engine.errors import ConfigError

LARGEST_FILE = 16 * 2**20  # bytes


def _check_behavior_name(name: object) -> object:
    if isinstance(name, str) and (not name or "?" in name):
        raise refusal("not a behavior's name. A name without ?team=N is right: teams share their settings")
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

    _source: SourceMap = PrivateAttr(default_factory=SourceMap)

    @property
    def source(self) -> SourceMap:
        """Where each key was written, for messages."""
        return self._source

    def with_source(self, source: SourceMap) -> Self:
        """The same settings, knowing where they were written."""
        config = self.model_copy()
        config._source = source
        return config

    @field_validator("env_settings")
    @classmethod
    def _check_environments(cls, settings: EnvSettings, info: ValidationInfo) -> EnvSettings:
        """A mapping of environments names exactly the behaviors there are."""
        behaviors = info.data.get("behaviors")
        if not isinstance(settings.env, dict) or behaviors is None:
            return settings
        for name in settings.env:
            if name not in behaviors:
                raise refusal(f"not a key under behaviors.{suggest(name, behaviors)}", "env", name)
        if missing := [visible(name) for name in behaviors if name not in settings.env]:
            raise refusal(f"no environment for {', '.join(missing)}. One for each behavior is right", "env")
        return settings


def load_config(path: Path, overrides: Mapping[str, object] | None = None) -> RunConfig:
    """The settings in a file, with the command line's on top.

    overrides: values by dotted path (`env_settings.num_envs`); they win over the file and their mistakes are told
    by flag (`--num-envs`). Raises ConfigError with one line for every mistake there is.
    """
    return parse_config(read_file(path), str(path), overrides)


def read_file(path: Path) -> bytes:
    """What is in a file. Raises ConfigError when it cannot be read, or does not end."""
    place = visible(str(path.absolute()), limit=4096)
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{place}: cannot be read: {visible(error.strerror or str(error))}") from None
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"{place}: larger than 16 MiB, which no configuration is")
    return content


def parse_config(content: bytes, file: str, overrides: Mapping[str, object] | None = None) -> RunConfig:
    """The settings in the content of a file; `file` is its name in messages. Raises ConfigError."""
    document = read_document(content, RunConfig.model_fields)
    if not document.complete:
        raise ConfigError("\n".join(SourceMap(file).lines(document.diagnostics)))
    raw = document.values
    rewriting = modernize(raw, RunConfig.model_fields)
    typed = {_key_path(dotted, raw): (_flag(dotted), value) for dotted, value in (overrides or {}).items()}
    flags = {path: flag for path, (flag, _) in typed.items()}
    source = SourceMap(file, document.keys, document.key_values, flags, rewriting.written)
    unusable = {path: text for path, (_, value) in typed.items() if (text := why_unusable(path, value))}
    for path, (_, value) in typed.items():
        if path not in unusable:
            override(raw, path, value)
    legacy = source.lines([*rewriting.notes(_UPGRADE_HINT), *document.repeated])
    notes = (*legacy, *settle_start(raw, flags))
    diagnostics = [
        *document.diagnostics,
        *starmap(Diagnostic, unusable.items()),
        *missing_trainers(raw),
        *merge_defaults(raw),
    ]
    diagnostics += [
        diagnostic for diagnostic in rewriting.diagnostics if not _is_unusable(diagnostic.path, document, source)
    ]
    classes: dict[int, type[Settings]] = {}
    try:
        config = RunConfig.model_validate(raw, context=classes)
    except ValidationError as error:
        diagnostics += _schema_diagnostics(error.errors(include_url=False), document, source, classes)
    if diagnostics:
        raise ConfigError("\n".join(source.lines(diagnostics)))
    return config.with_source(replace(source, notes=notes))


_UPGRADE_HINT = ". `rl-tui upgrade-config IN OUT` rewrites the file"


def _key_path(dotted: str, raw: Mapping[str, object]) -> KeyPath:
    """The path, cut at the dots; a behavior's own name may hold some."""
    section, _, rest = dotted.partition(".")
    behaviors = raw.get(section)
    if section == "behaviors" and isinstance(behaviors, dict):
        for name in behaviors:
            if rest.startswith(f"{name}."):
                return (section, name, *rest.removeprefix(f"{name}.").split("."))
    return tuple(dotted.split("."))


def _flag(dotted: str) -> str:
    """The flag that sets a path: named after its last part, or the general --set."""
    section, _, key = dotted.partition(".")
    if section == "torch_settings":
        return "--torch-device"
    has_flags = section in ("env_settings", "engine_settings", "checkpoint_settings", "debug")
    if has_flags and "." not in key and key not in ("env_path", "env_kwargs", "load_model", "train_model"):
        return f"--{(key or section).replace('_', '-')}"
    return f"--set {visible(dotted)}"


def _schema_diagnostics(
    errors: Iterable[ErrorDetails], document: Document, source: SourceMap, classes: Mapping[int, type[Settings]]
) -> list[Diagnostic]:
    """The schema's complaints, less those that only follow from a mistake already told."""
    diagnostics = [
        as_diagnostic(error, document.values, classes)
        for error in errors
        if error["type"] != "default_factory_not_called" and not _is_unusable(error["loc"], document, source)
    ]
    told = {diagnostic.path for diagnostic in diagnostics}
    return [diagnostic for diagnostic in diagnostics if not _is_inherited(diagnostic.path, told, source)]


def _is_unusable(path: KeyPath, document: Document, source: SourceMap) -> bool:
    prefixes = (path[:length] for length in range(1, len(path) + 1))
    places = (place for prefix in prefixes for place in own_and_inherited(prefix))
    return any(source.in_file(place) in document.unusable for place in places)


def _is_inherited(path: KeyPath, told: set[KeyPath], source: SourceMap) -> bool:
    return path[:1] == ("behaviors",) and not source.has(path) and ("default_settings", *path[2:]) in told


def effective_yaml(config: RunConfig) -> str:
    """All settings, defaults included, in ML-Agents' order; load_config reads the same settings from it."""
    return write_yaml(config.model_dump())


def json_schema() -> dict[str, JsonValue]:
    """The JSON Schema of a configuration file, for editors."""
    schema: dict[str, JsonValue] = RunConfig.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "rl-tui configuration"}


def find_unsupported(config: RunConfig) -> list[str]:
    """One line, with its place, for everything that keeps this configuration from starting; empty when it can start.

    That is what is understood but not built yet, and an environment or a behavior that nobody named.
    """
    return config.source.lines([*support.unsupported(config), *support.incomplete(config)])


def find_unused(config: RunConfig) -> list[str]:
    """One line, with its place, for every key of the user's file and every flag that changes nothing in this run."""
    source = config.source
    unused = list(support.unused(config))
    keys = [key for key in unused if source.has(key.path)]
    return source.lines([*keys, *(key._replace(path=path) for key in unused for path in source.flags_within(key.path))])


def list_warnings(config: RunConfig) -> list[str]:
    """One line for everything that was accepted and is probably not meant."""
    return [*config.source.notes, *config.source.lines(support.suspicious(config))]
