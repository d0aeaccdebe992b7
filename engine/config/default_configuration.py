"""What the settings of a run would be if its file said no more than what it trains: the defaults to compare it with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from rl_tui.engine.config.loading import effective_yaml, parse_config
from rl_tui.engine.config.reward_signals import environment_reward
from rl_tui.engine.config.yaml_document import read_yaml, write_yaml

Path: TypeAlias = tuple[str, ...]

SUBJECT = {  # by section: what a run is about, for which there is no default
    "env_settings": ("env", "env_path"),
    "checkpoint_settings": ("run_id", "results_dir"),
}
OPTIONAL = (("network_settings", "memory"), ("self_play",), ("behavioral_cloning",), ("evaluation",))  # off by default
REQUIRED = ("demo_path",)  # has no default where its section is given


@dataclass(frozen=True, slots=True)
class DefaultConfiguration:
    """text: all default settings as YAML, also those of optional sections that the run has; added: the paths of these
    sections, which by default are missing."""

    text: str
    added: tuple[Path, ...]


def default_configuration(text: str) -> DefaultConfiguration:
    """The defaults for a run with this effective configuration: of its trainers, reward signals and environments.

    Raises ConfigError where it cannot be read, for example because a plug-in of it is no longer installed.
    """
    values = read_yaml(text.encode()).values
    behaviors = _mapping(values, "behaviors")
    bare: dict[str, object] = {name: _picked(_mapping(values, name), keys) for name, keys in SUBJECT.items()}
    bare["behaviors"] = {name: _bare_behavior(_mapping(behaviors, name)) for name in behaviors}
    if (parameters := values.get("environment_parameters")) is not None:  # all of it is about the environment
        bare["environment_parameters"] = parameters
    added = [("behaviors", name, *path) for name in behaviors for path in _added(_mapping(behaviors, name))]
    config = parse_config(write_yaml(bare).encode(), "the defaults")
    return DefaultConfiguration(effective_yaml(config), tuple(added))


def _bare_behavior(behavior: Mapping[str, object]) -> dict[str, object]:
    """Its trainer, its encoder, and what it has of optional sections, without their settings."""
    network = _mapping(behavior, "network_settings")
    signals = _mapping(behavior, "reward_signals")
    bare: dict[str, object] = _picked(behavior, ("trainer_type",))
    if required := _picked(_mapping(behavior, "hyperparameters"), REQUIRED):
        bare["hyperparameters"] = required
    if signals:
        bare["reward_signals"] = {name: _picked(_mapping(signals, name), REQUIRED) for name in signals}
    of_network = _picked(network, ("vis_encode_type",))
    for section, inside, of_bare in (("", behavior, bare), ("network_settings", network, of_network)):
        for *around, key in OPTIONAL:
            if ".".join(around) == section and isinstance(inside.get(key), dict):
                of_bare[key] = _picked(_mapping(inside, key), REQUIRED)
    return {**bare, "network_settings": of_network}


def _added(behavior: Mapping[str, object]) -> Iterator[Path]:
    """The paths of its sections that are missing by default."""
    for path in OPTIONAL:
        inner: Mapping[str, object] = behavior
        for section in path[:-1]:
            inner = _mapping(inner, section)
        if isinstance(inner.get(path[-1]), dict):
            yield path
    usual = environment_reward()
    for name in _mapping(behavior, "reward_signals"):
        if name not in usual:
            yield "reward_signals", name


def _mapping(values: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = values.get(key)
    return value if isinstance(value, dict) else {}


def _picked(values: Mapping[str, object], keys: tuple[str, ...]) -> dict[str, object]:
    return {key: values[key] for key in keys if values.get(key) is not None}
