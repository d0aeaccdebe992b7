"""The JSON Schema of a configuration file, with the settings of every plug-in that can be read."""

from typing import Any

from pydantic import JsonValue
from pydantic.json_schema import models_json_schema

from rl_tui.engine import registry
from rl_tui.engine.config.encoders import EncoderSettings, every_encoder
from rl_tui.engine.config.environments import strict_kinds
from rl_tui.engine.config.hyperparameters import Hyperparameters, every_hyperparameters
from rl_tui.engine.config.plugin_settings import plugin_mapping, settings_of_plugin, settings_of_plugins
from rl_tui.engine.config.plugins import BASES
from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.types import Settings
from rl_tui.engine.config.writers import WriterSettings
from rl_tui.engine.errors import PluginError


def left_out() -> list[str]:
    """One line for every installed plug-in whose settings cannot be read, so that the schema has none of them."""
    lines: list[str] = []
    for kind, base in BASES.items():
        for name in registry.names(kind):
            try:
                settings_of_plugin(kind, name, base)
            except PluginError as error:
                lines.append(str(error))
    return lines


def json_schema() -> dict[str, JsonValue]:
    """For editors."""
    trainers, encoders, environments = every_hyperparameters(), every_encoder(), strict_kinds()
    signals = plugin_mapping("reward_signals", settings_of_plugins("reward_signals", RewardSignalSettings))
    writers = plugin_mapping("writers", settings_of_plugins("writers", WriterSettings), has_null=True)
    plugins = (*trainers.values(), *encoders.values(), *environments.values(), signals, writers)
    models: list[type[Settings]] = [RunConfig, *plugins]
    found, schema = models_json_schema([(model, "validation") for model in models])
    references = {model: found[model, "validation"] for model in models}
    definitions = schema["$defs"]

    keys = definitions["BehaviorConfig"]["properties"]
    _choose(keys, "trainer_type", "hyperparameters", {name: references[kind] for name, kind in trainers.items()})
    keys["reward_signals"] = references[signals]
    keys = definitions["NetworkSettings"]["properties"]
    _choose(keys, "vis_encode_type", "encoder_settings", {name: references[kind] for name, kind in encoders.items()})
    definitions["RunConfig"]["properties"]["writers"] |= references[writers]
    for name, kind in environments.items():  # where one environment is named for all behaviors
        named = {"properties": {"env": {"type": "string", "pattern": f"^{name}:"}}, "required": ["env"]}
        then = {"properties": {"env_kwargs": references[kind]}}
        definitions["EnvSettings"].setdefault("allOf", []).append({"if": named, "then": then})

    for base in (Hyperparameters, RewardSignalSettings, EncoderSettings, WriterSettings):
        definitions.pop(base.__name__, None)
    root = {**definitions.pop("RunConfig"), "title": "rl-tui configuration"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions, **root}


def _choose(keys: dict[str, Any], name: str, settings: str, choices: dict[str, Any]) -> None:
    """One key names a plug-in, another holds its settings. choices: the schema of each."""
    keys[name]["enum"] = list(choices)
    kept = {key: text for key, text in keys[settings].items() if key in ("title", "description")}
    keys[settings] = {"anyOf": list(choices.values()), "title": settings.replace("_", " ").title(), **kept}
