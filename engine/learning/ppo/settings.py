"""Hyperparameters of PPO: ML-Agents' keys in its order, then rl-tui's additions, which have a description."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from rl_tui.engine.config.diagnostics import must_be
from rl_tui.engine.config.hyperparameters import Schedule
from rl_tui.engine.config.types import Fraction, NotNegative, Positive, PositiveWhole, refusal
from rl_tui.engine.learning.on_policy.settings import OnPolicySettings


def _read_value_clip(value: object) -> object:
    if value is None or value == "epsilon":
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    raise refusal(must_be("epsilon, a number greater than 0 or null", value))


ValueClip: TypeAlias = Annotated[Literal["epsilon"] | Positive | None, BeforeValidator(_read_value_clip)]


class PPOSettings(OnPolicySettings):
    """Hyperparameters of proximal policy optimization."""

    implementation: ClassVar = "rl_tui.engine.learning.ppo.trainer:PPOTrainer"
    synonyms: ClassVar = {"lambda": "lambd", "gamma": "reward_signals.extrinsic.gamma", "num_epochs": "num_epoch"}
    changeable: ClassVar = (  # nothing that shapes the network or the rollout
        *("learning_rate", "beta", "epsilon", "lambd"),
        *("num_epoch", "value_coefficient", "target_kl"),
    )
    advice: ClassVar = {
        "entropy_collapse": "raise beta, or roll back to an earlier checkpoint",
        "kl_spike": "lower learning_rate or epsilon",
        "clip_fraction": "lower learning_rate or num_epoch",
        "same_returns": "reward steps toward the goal, make the task easier, or explore more: raise beta",
        "no_improvement": "update more often (a smaller buffer_size, a higher num_epoch or learning_rate), reward steps"
        " toward the goal, or raise beta",
    }

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

    def num_updates(self, max_steps: int) -> int:
        """One for each buffer that is filled."""
        return max_steps // self.buffer_size
