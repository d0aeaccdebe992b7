"""How a behavior is trained: ML-Agents' key names and defaults in the order in which it writes them.

Our few additions come last in their section and carry a description. The sections that hold for the whole run stand
in engine.run_settings, the root and the reading of files in engine.config.
"""

from typing import Annotated, ClassVar, Literal, Self, TypeAlias, TypeGuard

from pydantic import (
    BeforeValidator,
    Field,
    JsonValue,
    SerializeAsAny,
    ValidationInfo,
    field_validator,
    model_validator,
)

from engine.mistakes import describe
from engine.setting_types import (
    Fraction,
    NotNegative,
    Positive,
    PositiveWhole,
    Settings,
    Whole,
    WholeFromZero,
    refusal,
)

Schedule: TypeAlias = Literal["constant", "linear"]


def _is_positive(value: object) -> TypeGuard[int | float]:
    """Whether other defaults may be derived from it; what is wrong with it otherwise is told once, by its own field."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _follow_learning_rate(written: dict[str, object]) -> dict[str, object]:
    """beta and epsilon take the learning rate's schedule where they have none of their own."""
    schedule = written.get("learning_rate_schedule")
    if schedule not in ("constant", "linear"):
        return written
    return {"beta_schedule": schedule, "epsilon_schedule": schedule} | written


def _read_value_clip(value: object) -> object:
    if value is None or value == "epsilon":
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    raise refusal(f"found {describe(value)}. epsilon, a number greater than 0 or null is right")


ValueClip: TypeAlias = Annotated[Literal["epsilon"] | Positive | None, BeforeValidator(_read_value_clip)]


class PPOSettings(Settings):
    """Hyperparameters of proximal policy optimization."""

    synonyms: ClassVar = {"lambda": "lambd", "gamma": "reward_signals.extrinsic.gamma", "num_epochs": "num_epoch"}

    batch_size: PositiveWhole = 1024
    buffer_size: PositiveWhole = 10240
    learning_rate: Positive = 3e-4
    beta: NotNegative = 5e-3
    epsilon: Positive = 0.2
    lambd: Fraction = 0.95
    num_epoch: PositiveWhole = 3
    shared_critic: bool = False
    learning_rate_schedule: Schedule = "linear"
    beta_schedule: Schedule = "linear"
    epsilon_schedule: Schedule = "linear"
    max_grad_norm: Positive | None = Field(None, description="Clip the gradient to this norm; null: never.")
    value_coefficient: NotNegative = Field(0.5, description="Weight of the value loss.")
    value_clip: ValueClip = Field("epsilon", description="Clip range of the value; epsilon: as the policy; null: off.")
    target_kl: Positive | None = Field(None, description="End an update when the policy moved this far; null: never.")
    joint_ratio: bool = Field(False, description="One probability ratio per action, summed over dimensions, branches.")
    normalize_advantage: Literal["buffer", "minibatch", "none"] = Field(
        "buffer", description="What advantages are normalized over."
    )
    adam_epsilon: Positive = Field(1e-8, description="Adam's epsilon.")

    @classmethod
    def complete(cls, written: dict[str, object]) -> dict[str, object]:
        """Schedules as in ML-Agents."""
        return _follow_learning_rate(written)


class SACSettings(Settings):
    """Hyperparameters of soft actor-critic."""

    synonyms: ClassVar = {"reward_signal_num_update": "reward_signal_steps_per_update"}

    learning_rate: Positive = 3e-4
    learning_rate_schedule: Schedule = "constant"
    batch_size: PositiveWhole = 128
    buffer_size: PositiveWhole = 50000
    buffer_init_steps: WholeFromZero = 0
    tau: Fraction = 0.005
    steps_per_update: Positive = 1.0
    save_replay_buffer: bool = False
    init_entcoef: Positive = 1.0
    reward_signal_steps_per_update: Positive = 1.0

    @classmethod
    def complete(cls, written: dict[str, object]) -> dict[str, object]:
        """reward_signal_steps_per_update is steps_per_update unless written."""
        steps = written.get("steps_per_update")
        return {"reward_signal_steps_per_update": steps} | written if _is_positive(steps) else written


class POCASettings(Settings):
    """Hyperparameters of posthumous credit assignment."""

    synonyms: ClassVar = PPOSettings.synonyms

    batch_size: PositiveWhole = 1024
    buffer_size: PositiveWhole = 10240
    learning_rate: Positive = 3e-4
    beta: NotNegative = 5e-3
    epsilon: Positive = 0.2
    lambd: Fraction = 0.95
    num_epoch: PositiveWhole = 3
    learning_rate_schedule: Schedule = "linear"
    beta_schedule: Schedule = "linear"
    epsilon_schedule: Schedule = "linear"

    @classmethod
    def complete(cls, written: dict[str, object]) -> dict[str, object]:
        """Schedules as in ML-Agents."""
        return _follow_learning_rate(written)


Hyperparameters: TypeAlias = PPOSettings | SACSettings | POCASettings
TRAINERS: dict[str, type[Hyperparameters]] = {"ppo": PPOSettings, "sac": SACSettings, "poca": POCASettings}


class MemorySettings(Settings):
    """A recurrent layer."""

    sequence_length: PositiveWhole = 64
    memory_size: PositiveWhole = 128

    @field_validator("memory_size")
    @classmethod
    def _check_even(cls, size: int) -> int:
        if size % 2:
            raise refusal(f"found {size}. An even number is right")
        return size


class NetworkSettings(Settings):
    """The layers of an actor, a critic or a reward signal's own network."""

    synonyms: ClassVar = {"vis_encoder_type": "vis_encode_type", "use_recurrent": "memory"}

    normalize: bool = False
    hidden_units: PositiveWhole = 128
    num_layers: PositiveWhole = 2
    vis_encode_type: Literal["fully_connected", "match3", "simple", "nature_cnn", "resnet"] = "simple"
    memory: MemorySettings | None = None
    goal_conditioning_type: Literal["hyper", "none"] = "hyper"
    deterministic: bool = False
    activation: Literal["swish", "tanh", "relu"] = Field("swish", description="Between the hidden layers.")


class RewardSignalSettings(Settings):
    """What every reward signal has."""

    gamma: Fraction = 0.99
    strength: float = 1.0
    network_settings: NetworkSettings = Field(default_factory=NetworkSettings)

    @field_validator("network_settings")
    @classmethod
    def _drop_memory(cls, network: NetworkSettings) -> NetworkSettings:
        return network.model_copy(update={"memory": None})  # as in ML-Agents, which warns; so does engine.support


class ExtrinsicSettings(RewardSignalSettings):
    """The environment's own reward."""


class IntrinsicSettings(RewardSignalSettings):
    """A reward that the agent computes, with a network of its own."""

    learning_rate: Positive = 3e-4
    encoding_size: PositiveWhole | None = Field(default=None, exclude=True, json_schema_extra={"deprecated": True})

    @classmethod
    def complete(cls, written: dict[str, object]) -> dict[str, object]:
        """A deprecated encoding_size becomes hidden_units where network_settings are absent."""
        size = written.get("encoding_size")
        if "network_settings" in written or not _is_positive(size):
            return written
        return written | {"network_settings": {"hidden_units": size}}


class CuriositySettings(IntrinsicSettings):
    """Reward for what a learned model of the world did not foresee."""


class GAILSettings(IntrinsicSettings):
    """Reward for acting like a demonstration."""

    use_actions: bool = False
    use_vail: bool = False
    demo_path: str


class RNDSettings(IntrinsicSettings):
    """Reward for observations that a random network makes unfamiliar."""

    learning_rate: Positive = 1e-4


class RewardSignals(Settings):
    """The reward signals a file may name; only the written ones are kept, as a mapping by name."""

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
        return {"team_change": 5 * steps} | written if _is_positive(steps) else written


class BehavioralCloningSettings(Settings):
    """Imitation of a demonstration beside the trainer."""

    demo_path: str
    steps: WholeFromZero = 0
    strength: NotNegative = 1.0
    samples_per_update: WholeFromZero = 0
    num_epoch: WholeFromZero | None = None
    batch_size: WholeFromZero | None = None


def _read_hyperparameters(value: object, info: ValidationInfo) -> object:
    settings = TRAINERS.get(info.data.get("trainer_type", ""))
    if settings is None:
        return PPOSettings()  # the trainer's name is refused already: which keys are right is anybody's guess
    return settings.model_validate(value, context=info.context)


def _read_reward_signals(value: object, info: ValidationInfo) -> object:
    if isinstance(value, dict) and all(isinstance(signal, RewardSignalSettings) for signal in value.values()):
        signals: dict[str, object] = value
    else:
        read = RewardSignals.model_validate(value, context=info.context)
        signals = {name: getattr(read, name) for name in value} if isinstance(value, dict) else {}
    if not signals:
        raise refusal("no reward signal is named. extrinsic: {} is right for the environment's own reward")
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
        **{key: f"hyperparameters.{key}" for key in (*PPOSettings.model_fields, *SACSettings.model_fields)},
    }

    trainer_type: Literal["ppo", "sac", "poca"] = "ppo"
    hyperparameters: Annotated[
        Hyperparameters, BeforeValidator(_read_hyperparameters, json_schema_input_type=Hyperparameters)
    ] = Field(default_factory=lambda before: TRAINERS[before.get("trainer_type", "ppo")]())
    checkpoint_interval: PositiveWhole = 500000
    network_settings: NetworkSettings = Field(default_factory=NetworkSettings)
    reward_signals: Annotated[
        dict[str, SerializeAsAny[RewardSignalSettings]],
        BeforeValidator(_read_reward_signals, json_schema_input_type=RewardSignals),
    ] = Field(default_factory=_environment_reward)
    init_path: str | None = None
    keep_checkpoints: Whole = 5
    even_checkpoints: bool = False
    max_steps: PositiveWhole = 500000
    time_horizon: PositiveWhole = 64
    summary_freq: PositiveWhole = 50000
    threaded: bool = False
    self_play: SelfPlaySettings | None = None
    behavioral_cloning: BehavioralCloningSettings | None = None
    framework: JsonValue = Field(default=None, exclude=True, json_schema_extra={"deprecated": True})
    normalize_reward: bool = Field(False, description="Divide rewards by the running deviation of their return.")

    @field_validator("network_settings")
    @classmethod
    def _check_sequence_length(cls, network: NetworkSettings, info: ValidationInfo) -> NetworkSettings:
        trainer = info.data.get("hyperparameters")
        if network.memory and trainer and network.memory.sequence_length > trainer.batch_size:
            text = f"found {network.memory.sequence_length}. At most batch_size ({trainer.batch_size}) is right"
            raise refusal(text, "memory", "sequence_length")
        return network

    @field_validator("even_checkpoints")
    @classmethod
    def _check_even_checkpoints(cls, even: bool, info: ValidationInfo) -> bool:
        if even and info.data.get("keep_checkpoints", 1) < 1:
            raise refusal("found true. It needs keep_checkpoints of at least 1, by which max_steps is divided")
        return even

    @model_validator(mode="after")
    def _space_checkpoints(self) -> Self:
        if self.even_checkpoints:
            interval = max(1, self.max_steps // self.keep_checkpoints)
            object.__setattr__(self, "checkpoint_interval", interval)  # nobody has seen it yet: still being built
        return self
