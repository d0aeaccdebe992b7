"""Hyperparameters of MA-POCA: ML-Agents' keys and defaults in its order."""

from typing import ClassVar

from rl_tui.engine.config.hyperparameters import Hyperparameters, Schedule
from rl_tui.engine.config.types import Fraction, NotNegative, Positive, PositiveWhole


class POCASettings(Hyperparameters):
    """Hyperparameters of posthumous credit assignment."""

    synonyms: ClassVar = {"lambda": "lambd", "gamma": "reward_signals.extrinsic.gamma", "num_epochs": "num_epoch"}

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
