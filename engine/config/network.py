"""The layers of a network: ML-Agents' keys and defaults in its order, then rl-tui's additions."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from rl_tui.engine.config.diagnostics import must_be
from rl_tui.engine.config.encoders import EncoderName, SettingsOfEncoder, encoder_settings
from rl_tui.engine.config.types import PositiveWhole, Settings, refusal


class MemorySettings(Settings):
    """A recurrent layer."""

    sequence_length: PositiveWhole = 64
    memory_size: PositiveWhole = 128

    @field_validator("memory_size")
    @classmethod
    def _check_even(cls, size: int) -> int:
        if size % 2:
            raise refusal(must_be("even", size))
        return size


class NetworkSettings(Settings):
    """The layers of an actor, a critic or a reward signal's own network."""

    synonyms: ClassVar = {
        "vis_encoder_type": "vis_encode_type",
        "use_recurrent": "memory",
        **{key: f"memory.{key}" for key in MemorySettings.model_fields},
    }

    normalize: bool = False
    hidden_units: PositiveWhole = 128
    num_layers: PositiveWhole = 2
    vis_encode_type: EncoderName = "simple"
    memory: MemorySettings | None = None
    goal_conditioning_type: Literal["hyper", "none"] = "hyper"
    deterministic: bool = False
    activation: Literal["swish", "tanh", "relu"] = Field("swish", description="Between the hidden layers.")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="What image encoders compute in while training; bfloat16 needs a processor that has it."
    )
    encoder_settings: SettingsOfEncoder = Field(
        default_factory=lambda before: encoder_settings(before["vis_encode_type"]).model_validate({}),
        description="Settings of an installed encoder that vis_encode_type names.",
    )
