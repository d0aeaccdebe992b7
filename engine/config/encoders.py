"""What the settings of every encoder of images have in common, and how `vis_encode_type` chooses their class.

Those built in are in engine/learning/encoders/settings.py.
"""

from typing import Annotated, ClassVar, TypeAlias

from pydantic import SerializeAsAny

from rl_tui.engine.config.plugin_settings import (
    PluginSettings,
    plugin_name,
    plugin_settings,
    settings_of_plugin,
    settings_of_plugins,
)

KIND = "encoders"


class EncoderSettings(PluginSettings):
    """The settings of one encoder of images."""

    smallest: ClassVar[int] = 1  # rows and columns of the smallest image that it can encode


def encoder_settings(name: str) -> type[EncoderSettings]:
    """The class of an encoder's settings. Raises NotSupportedError for an unknown one, PluginError."""
    return settings_of_plugin(KIND, name, EncoderSettings)


def every_encoder() -> dict[str, type[EncoderSettings]]:
    """The class of every encoder's settings, without those that cannot be used."""
    return settings_of_plugins(KIND, EncoderSettings)


EncoderName: TypeAlias = Annotated[str, plugin_name(KIND, EncoderSettings)]
SettingsOfEncoder: TypeAlias = Annotated[
    SerializeAsAny[EncoderSettings], plugin_settings(KIND, EncoderSettings, "vis_encode_type")
]
"""Those of the `vis_encode_type` that is declared before."""
