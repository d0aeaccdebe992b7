"""What the settings of every reward signal have in common, and how a key of `reward_signals` chooses their class.

Those built in are in engine/learning/rewards/settings.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeAlias

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationInfo, field_validator

from rl_tui.engine.config.changeable import ChangeableSettings
from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.config.plugin_settings import read_plugin_mapping, settings_of_plugin
from rl_tui.engine.config.types import Fraction, refusal

KIND = "reward_signals"


class RewardSignalSettings(ChangeableSettings):
    """The settings of one reward signal."""

    learns: ClassVar[bool] = False  # it has something to train, such as a network of its own
    ignores_dones: ClassVar[bool] = False  # what follows the end of an episode still counts for this stream
    is_reevaluated: ClassVar[bool] = False  # a replayed step is rewarded as it would be now, not as when it was new
    title: ClassVar[str] = ""  # its name in metrics, as in "Policy/Extrinsic Reward"; empty: its key, capitalized

    gamma: Fraction = 0.99
    strength: float = 1.0
    network_settings: NetworkSettings = Field(default_factory=NetworkSettings)

    @property
    def masks_terminal(self) -> bool:
        """Whether nothing follows the end of an episode for this stream."""
        return not self.ignores_dones

    @property
    def demonstration_path(self) -> str | None:
        """The demonstrations that it learns from, a file or a folder; None without any."""
        return None

    @field_validator("network_settings")
    @classmethod
    def _drop_memory(cls, network: NetworkSettings) -> NetworkSettings:
        return network.model_copy(update={"memory": None})  # as in ML-Agents, with a warning of config.support


def reward_signal_settings(name: str) -> type[RewardSignalSettings]:
    """The class of a signal's settings. Raises NotSupportedError, PluginError."""
    return settings_of_plugin(KIND, name, RewardSignalSettings)


def _read(value: object, info: ValidationInfo) -> object:
    if isinstance(value, dict) and value and all(isinstance(signal, RewardSignalSettings) for signal in value.values()):
        return value
    signals = read_plugin_mapping(KIND, RewardSignalSettings, value, info)
    if not signals:
        raise refusal("must have at least one reward signal, such as `extrinsic: {}`, the environment's own reward")
    return signals


def environment_reward() -> dict[str, RewardSignalSettings]:
    """The default: the environment's own reward."""
    return {"extrinsic": reward_signal_settings("extrinsic").model_validate({})}


RewardSignals: TypeAlias = Annotated[dict[str, SerializeAsAny[RewardSignalSettings]], BeforeValidator(_read)]


def changeable_name(signal: str, key: str) -> str:
    """What a number of a signal that may be changed is called in its behavior: its path there."""
    return f"{KIND}.{signal}.{key}"
