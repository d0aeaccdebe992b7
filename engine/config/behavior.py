"""How a behavior is trained: ML-Agents' keys and defaults, in the order in which it writes them.

rl-tui's additions come last in their section and have a description.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationInfo, field_validator, model_validator

from rl_tui.engine.config.diagnostics import must_be
from rl_tui.engine.config.hyperparameters import (
    Hyperparameters,
    TrainerHyperparameters,
    TrainerType,
    hyperparameters_of,
    trainer_names,
)
from rl_tui.engine.config.types import (
    Fraction,
    Interval,
    NotNegative,
    PathText,
    Positive,
    PositiveWhole,
    Settings,
    Whole,
    WholeFromZero,
    is_positive,
    refusal,
)


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
    vis_encode_type: Literal["fully_connected", "match3", "simple", "nature_cnn", "resnet"] = "simple"
    memory: MemorySettings | None = None
    goal_conditioning_type: Literal["hyper", "none"] = "hyper"
    deterministic: bool = False
    activation: Literal["swish", "tanh", "relu"] = Field("swish", description="Between the hidden layers.")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="What image encoders compute in while training; bfloat16 needs a processor that has it."
    )


class RewardSignalSettings(Settings):
    """What every reward signal has."""

    gamma: Fraction = 0.99
    strength: float = 1.0
    network_settings: NetworkSettings = Field(default_factory=NetworkSettings)

    @field_validator("network_settings")
    @classmethod
    def _drop_memory(cls, network: NetworkSettings) -> NetworkSettings:
        return network.model_copy(update={"memory": None})  # as in ML-Agents, with a warning of config.support


class ExtrinsicSettings(RewardSignalSettings):
    """The environment's own reward."""


class IntrinsicSettings(RewardSignalSettings):
    """A reward that the agent computes, with a network of its own."""

    learning_rate: Positive = 3e-4


class CuriositySettings(IntrinsicSettings):
    """Reward for what a learned model of the world did not predict."""


class GAILSettings(IntrinsicSettings):
    """Reward for acting like a demonstration."""

    use_actions: bool = False
    use_vail: bool = False
    demo_path: str


class RNDSettings(IntrinsicSettings):
    """Reward for unfamiliar observations: those whose random features are badly predicted."""

    learning_rate: Positive = 1e-4


class RewardSignals(Settings):
    """The reward signals a file may contain; only the written ones are kept, as a mapping by name."""

    extrinsic: ExtrinsicSettings = Field(default_factory=ExtrinsicSettings)
    gail: GAILSettings = Field(default_factory=lambda: GAILSettings(demo_path=""))
    curiosity: CuriositySettings = Field(default_factory=CuriositySettings)
    rnd: RNDSettings = Field(default_factory=RNDSettings)


class SelfPlaySettings(Settings):
    """Training against earlier selves."""

    save_steps: PositiveWhole = 20000
    team_change: PositiveWhole = 100000
    swap_steps: PositiveWhole = 2000
    window: PositiveWhole = 10
    play_against_latest_model_ratio: float = 0.5
    initial_elo: float = 1200.0

    @classmethod
    def complete(cls, written: dict[str, object]) -> dict[str, object]:
        """team_change is five times save_steps unless written."""
        steps = written.get("save_steps")
        return {"team_change": 5 * steps} | written if is_positive(steps) else written


class BehavioralCloningSettings(Settings):
    """Imitation of a demonstration, in addition to reinforcement learning."""

    demo_path: str
    steps: WholeFromZero = 0
    strength: NotNegative = 1.0
    samples_per_update: WholeFromZero = 0
    num_epoch: WholeFromZero | None = None
    batch_size: WholeFromZero | None = None


class EvaluationSettings(Settings):
    """Measuring the policy outside of its training, on environments of its own."""

    interval: PositiveWhole = Field(50000, description="Steps between two evaluations.")
    episodes: PositiveWhole = Field(10, description="Episodes of each.")
    deterministic: bool = Field(True, description="Act by the mean and the likeliest choice.")


ExportedKind: TypeAlias = Literal["stochastic", "greedy", "raw"]


def _read_reward_signals(value: object, info: ValidationInfo) -> object:
    if isinstance(value, dict) and all(isinstance(signal, RewardSignalSettings) for signal in value.values()):
        signals: dict[str, object] = value
    else:
        read = RewardSignals.model_validate(value, context=info.context)
        signals = {name: getattr(read, name) for name in value} if isinstance(value, dict) else {}
    if not signals:
        raise refusal("must have at least one reward signal, such as `extrinsic: {}`, the environment's own reward")
    return signals


def _environment_reward() -> dict[str, RewardSignalSettings]:
    return {"extrinsic": ExtrinsicSettings()}


class BehaviorConfig(Settings):
    """How one behavior is trained."""

    synonyms: ClassVar = {
        "trainer": "trainer_type",
        "use_recurrent": "network_settings.memory",
        "network": "network_settings",
        "lambda": "hyperparameters.lambd",
        "gamma": "reward_signals.extrinsic.gamma",
        **{key: f"network_settings.{key}" for key in NetworkSettings.model_fields},
        **{key: f"network_settings.memory.{key}" for key in MemorySettings.model_fields},
    }

    trainer_type: TrainerType = "ppo"
    hyperparameters: TrainerHyperparameters = Field(
        default_factory=lambda before: hyperparameters_of(before["trainer_type"]).model_validate({})
    )
    checkpoint_interval: Interval = 500000
    network_settings: NetworkSettings = Field(default_factory=NetworkSettings)
    reward_signals: Annotated[
        dict[str, SerializeAsAny[RewardSignalSettings]],
        BeforeValidator(_read_reward_signals, json_schema_input_type=RewardSignals),
    ] = Field(default_factory=_environment_reward)
    init_path: PathText | None = None
    keep_checkpoints: Whole = 5
    even_checkpoints: bool = False
    max_steps: PositiveWhole = 500000
    time_horizon: PositiveWhole = 64
    summary_freq: PositiveWhole = 50000
    threaded: bool = False
    self_play: SelfPlaySettings | None = None
    behavioral_cloning: BehavioralCloningSettings | None = None
    normalize_reward: bool = Field(False, description="Divide rewards by the running deviation of their return.")
    evaluation: EvaluationSettings | None = Field(None, description="null: none but by `rl-tui evaluate`.")
    export_interval: PositiveWhole | None = Field(None, description="Steps between exports; null: with checkpoints.")
    export_policies: list[ExportedKind] = Field(
        default_factory=list, description="What is also written to policies/, besides the ONNX file for Unity."
    )

    @classmethod
    def known_synonyms(cls) -> Mapping[str, str]:
        """With the hyperparameters of every trainer, written one level too high."""
        keys = (key for name in trainer_names() for key in hyperparameters_of(name).model_fields)
        return {**cls.synonyms, **{key: f"hyperparameters.{key}" for key in keys}}

    @field_validator("network_settings")
    @classmethod
    def _check_memory(cls, network: NetworkSettings, info: ValidationInfo) -> NetworkSettings:
        hyper: Hyperparameters | None = info.data.get("hyperparameters")
        if not network.memory or not hyper:
            return network
        if network.memory.sequence_length > hyper.batch_size:
            text = must_be(f"at most batch_size ({hyper.batch_size})", network.memory.sequence_length)
            raise refusal(text, "memory", "sequence_length")
        if hyper.memory_conflict:
            raise refusal(hyper.memory_conflict, "memory")
        return network

    @field_validator("even_checkpoints")
    @classmethod
    def _check_even_checkpoints(cls, even: bool, info: ValidationInfo) -> bool:
        if even and info.data.get("keep_checkpoints", 1) < 1:
            raise refusal("must be false where keep_checkpoints is less than 1, since max_steps is divided by it")
        return even

    @model_validator(mode="after")
    def _space_checkpoints(self) -> Self:
        if self.even_checkpoints:
            interval = max(1, self.max_steps // self.keep_checkpoints)
            object.__setattr__(self, "checkpoint_interval", interval)  # frozen, but still being built
        return self
