"""Hyperparameters of PPO: ML-Agents' keys in its order, then rl-tui's additions, which have a description."""

from typing import ClassVar

from rl_tui.engine.config.hyperparameters import Schedule
from rl_tui.engine.config.types import Fraction, NotNegative, Positive, PositiveWhole
from rl_tui.engine.learning.on_policy.settings import (
    CLIPPED_CHANGEABLE,
    AdamEpsilon,
    ClippedSettings,
    JointRatio,
    MaxGradNorm,
    NormalizeAdvantage,
    TargetKL,
    ValueClip,
    ValueCoefficient,
)


class PPOSettings(ClippedSettings):
    """Hyperparameters of proximal policy optimization."""

    implementation: ClassVar = "rl_tui.engine.learning.ppo.trainer:PPOTrainer"
    changeable: ClassVar = CLIPPED_CHANGEABLE

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
    max_grad_norm: MaxGradNorm = None
    value_coefficient: ValueCoefficient = 0.5
    value_clip: ValueClip = None
    target_kl: TargetKL = None
    joint_ratio: JointRatio = False
    normalize_advantage: NormalizeAdvantage = "buffer"
    adam_epsilon: AdamEpsilon = 1e-8
