"""How a behavior is trained: ML-Agents' keys and defaults, in the order in which it writes them.

rl-tui's additions come last in their section and have a description.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self, TypeAlias

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from rl_tui.engine.config.diagnostics import must_be
from rl_tui.engine.config.hyperparameters import (
    Hyperparameters,
    TrainerHyperparameters,
    TrainerType,
    every_hyperparameters,
    hyperparameters_of,
)
from rl_tui.engine.config.network import MemorySettings, NetworkSettings
from rl_tui.engine.config.reward_signals import RewardSignals, environment_reward
from rl_tui.engine.config.types import (
    OFF,
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


class SelfPlaySettings(Settings):
    """Training against earlier selves."""

    save_steps: PositiveWhole = 20000
    team_change: PositiveWhole = 100000
    swap_steps: PositiveWhole = 2000
    window: PositiveWhole = 10
    play_against_latest_model_ratio: float = 0.5
    initial_elo: float = 1200.0
    elo_k: Positive = Field(1.0, description="How far one game moves a rating at most.")
    game_result: Literal["final_reward", "return"] = Field(
        "final_reward", description="What decides a game: the last reward of the team that learns, or its return."
    )
    draw_margin: NotNegative = Field(0.0, description="How far from 0 a result is a draw.")
    interrupted_games: Literal["ignore", "draw"] = Field(
        "ignore", description="What a game counts that was cut off by a limit of steps."
    )

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

    interval: Interval = Field(50000, description="Steps between two evaluations; -1: none.")
    episodes: PositiveWhole = Field(10, description="Episodes of each.")
    deterministic: bool = Field(True, description="Act by the mean and the likeliest choice.")
    opponent: PathText | None = Field(
        None, description="Who plays all teams but one: random, oldest, or a path; null: as in training."
    )


ExportedKind: TypeAlias = Literal["stochastic", "greedy", "raw"]


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
    reward_signals: RewardSignals = Field(default_factory=environment_reward)
    init_path: PathText | None = None
    keep_checkpoints: Whole = 5
    even_checkpoints: bool = False
    max_steps: PositiveWhole = 500000
    time_horizon: PositiveWhole = 64
    summary_freq: Interval = 50000
    threaded: bool = False
    self_play: SelfPlaySettings | None = None
    behavioral_cloning: BehavioralCloningSettings | None = None
    normalize_reward: bool = Field(False, description="Divide rewards by the running deviation of their return.")
    evaluation: EvaluationSettings | None = Field(None, description="null: none but by `rl-tui evaluate`.")
    export_interval: Interval | None = Field(
        None, description="Steps between exports; null: with checkpoints; -1: none."
    )
    export_policies: list[ExportedKind] = Field(
        default_factory=list, description="What is also written to policies/, besides the ONNX file for Unity."
    )
    throughput_interval: Interval = Field(OFF, description="Steps between two measurements of the speed; -1: none.")
    checkpoint_seconds: Interval = Field(
        600, description="Seconds until what was learned is saved in any case; one such checkpoint is kept; -1: never."
    )

    _ignores_interval: bool = PrivateAttr(False)

    @property
    def ignores_interval(self) -> bool:
        """Whether even_checkpoints has replaced a checkpoint_interval that is not the default."""
        return self._ignores_interval

    @property
    def demo_paths(self) -> Mapping[str, str]:
        """The demonstrations that it learns from, by the key that names them."""
        found: dict[str, str] = {}
        if self.hyperparameters.demonstration_path is not None:
            found["hyperparameters.demo_path"] = self.hyperparameters.demonstration_path
        for name, signal in self.reward_signals.items():
            if signal.demonstration_path is not None:
                found[f"reward_signals.{name}.demo_path"] = signal.demonstration_path
        if self.behavioral_cloning is not None:
            found["behavioral_cloning.demo_path"] = self.behavioral_cloning.demo_path
        return found

    @classmethod
    def known_synonyms(cls) -> Mapping[str, str]:
        """With the hyperparameters of every trainer, written one level too high."""
        keys = (key for hyperparameters in every_hyperparameters().values() for key in hyperparameters.model_fields)
        return {**cls.synonyms, **{key: f"hyperparameters.{key}" for key in keys}}

    @classmethod
    def complete(cls, written: dict[str, object]) -> dict[str, object]:
        """Hyperparameters that are not written are read as an empty section: the trainer may need some of them."""
        return {"hyperparameters": {}} | written

    def default_of(self, key: str) -> object:
        """Hyperparameters have what their trainer needs, and are otherwise the defaults."""
        if key != "hyperparameters":
            return super().default_of(key)
        return self.hyperparameters.minimal()

    @field_validator("network_settings")
    @classmethod
    def _check_network(cls, network: NetworkSettings, info: ValidationInfo) -> NetworkSettings:
        hyper: Hyperparameters | None = info.data.get("hyperparameters")
        if hyper and network.hidden_units % hyper.attention_heads:
            text = f"a multiple of {hyper.attention_heads}, the heads of the attention of {info.data['trainer_type']}"
            raise refusal(must_be(text, network.hidden_units), "hidden_units")
        if not network.memory or not hyper:
            return network
        batch_size: int | None = getattr(hyper, "batch_size", None)  # a trainer may have no mini-batches
        if batch_size is not None and network.memory.sequence_length > batch_size:
            text = must_be(f"at most batch_size ({batch_size})", network.memory.sequence_length)
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
            default = type(self).model_fields["checkpoint_interval"].default
            self._ignores_interval = self.checkpoint_interval not in (interval, default)
            object.__setattr__(self, "checkpoint_interval", interval)  # frozen, but still being built
        return self
