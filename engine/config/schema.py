"""The JSON Schema of a configuration file, with the settings of every plug-in that can be read."""

from typing import Any

from pydantic import JsonValue
from pydantic.json_schema import models_json_schema

from rl_tui.engine.config.encoders import EncoderSettings, every_encoder
from rl_tui.engine.config.environments import strict_kinds
from rl_tui.engine.config.hyperparameters import Hyperparameters, every_hyperparameters
from rl_tui.engine.config.plugin_settings import load_plugins, plugin_mapping, settings_of_plugins
from rl_tui.engine.config.plugins import BASES
from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.types import Settings
from rl_tui.engine.config.writers import WriterSettings


def left_out() -> list[str]:
    """One line for every installed plug-in whose settings cannot be read, so that the schema has none of them."""
    return [problem for kind, base in BASES.items() for problem in load_plugins(kind, base)[1]]


def json_schema() -> dict[str, JsonValue]:
    """For editors."""
    trainers, encoders, environments = every_hyperparameters(), every_encoder(), strict_kinds()
    signals, writers = _section("reward_signals"), _section("writers", has_null=True)
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


def _section(kind: str, has_null: bool = False) -> type[Settings]:
    return plugin_mapping(kind, BASES[kind], settings_of_plugins(kind, BASES[kind]), has_null)


def _choose(keys: dict[str, Any], name: str, settings: str, choices: dict[str, Any]) -> None:
    """One key names a plug-in, another holds its settings. choices: the schema of each."""
    keys[name]["enum"] = list(choices)
    kept = {key: text for key, text in keys[settings].items() if key in ("title", "description")}
    keys[settings] = {"anyOf": list(choices.values()), "title": settings.replace("_", " ").title(), **kept}
