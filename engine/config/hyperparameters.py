"""The hyperparameters of each trainer: ML-Agents' key names and defaults in the order in which it writes them.

Our additions come last and carry a description.
"""

from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from rl_tui.engine.config.diagnostics import describe
from rl_tui.engine.config.types import (
    Fraction,
    NotNegative,
    Positive,
    PositiveWhole,
    Settings,
    WholeFromZero,
    is_positive,
    refusal,
)

Schedule: TypeAlias = Literal["constant", "linear"]


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
    value_clip: ValueClip = Field(None, description="Clip range of the value; epsilon: as the policy; null: off.")
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


class PrioritizedReplaySettings(Settings):
    """Drawing rows of the replay buffer by their error instead of uniformly (Schaul et al. 2016)."""

    alpha: Fraction = Field(0.6, description="0 draws uniformly, 1 in proportion to the error.")
    beta: Fraction = Field(0.4, description="How far it is corrected for at the start; that grows to 1 at max_steps.")


class SACSettings(Settings):
    """Hyperparameters of soft actor-critic."""

    synonyms: ClassVar = {
        **dict.fromkeys(("num_update", "train_interval", "gradient_steps", "train_freq"), "steps_per_update"),
        "reward_signal_num_update": "reward_signal_steps_per_update",
        "learning_starts": "buffer_init_steps",
        "gamma": "reward_signals.extrinsic.gamma",
    }

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
    target_q: bool = Field(False, description="Learn from target copies of both Q networks, without a value network.")
    n_step: PositiveWhole = Field(1, description="Rewards that are summed before a value stands for the rest.")
    prioritized_replay: PrioritizedReplaySettings | None = Field(
        None, description="Draw rows by the error of their Q values; null: uniformly."
    )
    target_entropy: float | None = Field(
        None, description="Of continuous actions; null: minus their number, as in ML-Agents."
    )
    max_grad_norm: Positive | None = Field(None, description="Clip the gradient to this norm; null: never.")
    adam_epsilon: Positive = Field(1e-8, description="Adam's epsilon.")

    @classmethod
    def complete(cls, written: dict[str, object]) -> dict[str, object]:
        """reward_signal_steps_per_update is steps_per_update unless written."""
        steps = written.get("steps_per_update")
        return {"reward_signal_steps_per_update": steps} | written if is_positive(steps) else written

    @model_validator(mode="after")
    def _check_batch(self) -> Self:
        if self.batch_size <= self.buffer_size:
            return self
        if "batch_size" in self.model_fields_set:
            text = f"found {self.batch_size}. At most buffer_size ({self.buffer_size}) is right"
            raise refusal(text, "batch_size")
        raise refusal(f"found {self.buffer_size}. At least batch_size ({self.batch_size}) is right", "buffer_size")


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
