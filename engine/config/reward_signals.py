"""What the settings of every reward signal have in common, and how a key of `reward_signals` chooses their class.

Those built in are in engine/learning/rewards/settings.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationInfo, create_model, field_validator

from rl_tui.engine import registry
from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.config.types import Fraction, PluginSettings, Settings, refusal, settings_of_plugin
from rl_tui.engine.errors import PluginError

KIND = "reward_signals"


class RewardSignalSettings(PluginSettings):
    """The settings of one reward signal."""

    learns: ClassVar[bool] = False  # it has something to train, such as a network of its own
    title: ClassVar[str] = ""  # its name in metrics, as in "Policy/Extrinsic Reward"; empty: its key, capitalized

    gamma: Fraction = 0.99
    strength: float = 1.0
    network_settings: NetworkSettings = Field(default_factory=NetworkSettings)

    @field_validator("network_settings")
    @classmethod
    def _drop_memory(cls, network: NetworkSettings) -> NetworkSettings:
        return network.model_copy(update={"memory": None})  # as in ML-Agents, with a warning of config.support


def reward_signal_settings(name: str) -> type[RewardSignalSettings]:
    """The class of a signal's settings. Raises NotSupportedError, PluginError."""
    return settings_of_plugin(KIND, name, RewardSignalSettings)


def reward_signals_model(classes: Mapping[str, type[RewardSignalSettings]]) -> type[Settings]:
    """The mapping of reward signals, each with its class; all may be left out."""
    return _model(tuple(classes.items()))


@lru_cache(maxsize=64)
def _model(classes: tuple[tuple[str, type[RewardSignalSettings]], ...]) -> type[Settings]:
    fields: dict[str, Any] = {name: (kind, None) for name, kind in classes}
    return create_model("RewardSignals", __base__=Settings, __doc__="One entry per reward signal.", **fields)


def _read(value: object, info: ValidationInfo) -> object:
    """Settings by name, in the order in which they are written. Only the plug-ins that are named are imported."""
    if isinstance(value, dict) and value and all(isinstance(signal, RewardSignalSettings) for signal in value.values()):
        return value
    written = value if isinstance(value, dict) else {}
    read = reward_signals_model({name: _class_of(name, written) for name in registry.names(KIND)}).model_validate(
        value, context=info.context
    )
    if not written:
        raise refusal("must have at least one reward signal, such as `extrinsic: {}`, the environment's own reward")
    return {name: getattr(read, name) for name in written}


def _class_of(name: str, written: Mapping[object, object]) -> type[RewardSignalSettings]:
    if name not in written:
        return RewardSignalSettings  # not read
    try:
        return reward_signal_settings(name)
    except PluginError as error:
        raise refusal(str(error), name) from error


def environment_reward() -> dict[str, RewardSignalSettings]:
    """The default: the environment's own reward."""
    return {"extrinsic": reward_signal_settings("extrinsic").model_validate({})}


RewardSignals: TypeAlias = Annotated[dict[str, SerializeAsAny[RewardSignalSettings]], BeforeValidator(_read)]
