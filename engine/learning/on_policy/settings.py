"""The hyperparameters that the loop of an on-policy update reads, and those of the clipped objective."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field

from rl_tui.engine.config.diagnostics import must_be
from rl_tui.engine.config.hyperparameters import Hyperparameters, Schedule
from rl_tui.engine.config.types import NotNegative, Positive, refusal


def _read_clip(value: object) -> object:
    if value is None or value == "epsilon":
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    raise refusal(must_be("epsilon, a number greater than 0 or null", value))


_Clip: TypeAlias = Annotated[Literal["epsilon"] | Positive | None, BeforeValidator(_read_clip)]

# rl-tui's additions to ML-Agents' keys
MaxGradNorm: TypeAlias = Annotated[Positive | None, Field(description="Clip the gradient to this norm; null: never.")]
ValueCoefficient: TypeAlias = Annotated[NotNegative, Field(description="Weight of the value loss.")]
ValueClip: TypeAlias = Annotated[
    _Clip, Field(description="Clip range of the value; epsilon: as the policy; null: off.")
]
BaselineClip: TypeAlias = Annotated[
    _Clip, Field(description="Clip range of the baseline; epsilon: as the policy, as in ML-Agents; null: off.")
]
TargetKL: TypeAlias = Annotated[
    Positive | None, Field(description="End an update when the policy moved this far; null: never.")
]
JointRatio: TypeAlias = Annotated[
    bool, Field(description="One probability ratio per action, summed over dimensions, branches.")
]
NormalizeAdvantage: TypeAlias = Annotated[
    Literal["buffer", "minibatch", "none"], Field(description="What advantages are normalized over.")
]
AdamEpsilon: TypeAlias = Annotated[Positive, Field(description="Adam's epsilon.")]


# What may change while a trainer with the clipped objective trains: nothing that shapes the network or the rollout.
CLIPPED_CHANGEABLE = ("learning_rate", "beta", "epsilon", "lambd", "num_epoch", "value_coefficient", "target_kl")


TIMED_MINIBATCHES, TIMED_EPOCHS = 2, 3  # enough for the estimates before an update to have their share of its time


class OnPolicySettings(Hyperparameters):
    """Those of a trainer that derives from `OnPolicyTrainer`. It declares all of these, in its own order, with its own
    ranges and defaults."""

    if TYPE_CHECKING:  # for pydantic, what a base class declares would come first in files
        batch_size: int
        buffer_size: int
        learning_rate: float
        learning_rate_schedule: Schedule
        num_epoch: int
        max_grad_norm: float | None
        target_kl: float | None
        adam_epsilon: float

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        """Raise TypeError, where a plug-in is imported, for a class that lacks one."""
        super().__pydantic_init_subclass__(**kwargs)
        names = ("batch_size", "buffer_size", "learning_rate", "learning_rate_schedule", "num_epoch")
        missing = {*names, "max_grad_norm", "target_kl", "adam_epsilon"} - cls.model_fields.keys()
        if missing and cls.implementation:
            raise TypeError(f"{cls.__name__} must have the fields {', '.join(sorted(missing))}")

    def for_timing(self, share: float) -> Self:
        """A few mini-batches make an update."""
        rows = max(1, round(self.batch_size * share))
        update = {"batch_size": rows, "buffer_size": TIMED_MINIBATCHES * rows}
        return self.model_copy(update=update | {"num_epoch": min(self.num_epoch, TIMED_EPOCHS)})


class ClippedSettings(OnPolicySettings):
    """Those of a trainer that derives from `ClippedTrainer`; it declares these, too."""

    synonyms: ClassVar = {"lambda": "lambd", "gamma": "reward_signals.extrinsic.gamma", "num_epochs": "num_epoch"}
    advice: ClassVar = {
        "entropy_collapse": "raise beta, or roll back to an earlier checkpoint",
        "kl_spike": "lower learning_rate or epsilon",
        "clip_fraction": "lower learning_rate or num_epoch",
        "same_returns": "reward steps toward the goal, make the task easier, or explore more: raise beta",
        "no_improvement": "update more often (a smaller buffer_size, a higher num_epoch or learning_rate), reward steps"
        " toward the goal, or raise beta",
    }

    if TYPE_CHECKING:
        beta: float
        epsilon: float
        lambd: float
        beta_schedule: Schedule
        epsilon_schedule: Schedule
        value_coefficient: float
        value_clip: Literal["epsilon"] | float | None
        joint_ratio: bool
        normalize_advantage: Literal["buffer", "minibatch", "none"]

    def num_updates(self, max_steps: int) -> int:
        """One for each buffer that is filled."""
        return max_steps // self.buffer_size
