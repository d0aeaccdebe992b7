"""Hyperparameters of MA-POCA."""

from typing import ClassVar

from rl_tui.engine.learning.on_policy.group_settings import GroupSettings
from rl_tui.engine.learning.on_policy.settings import BaselineClip


class POCASettings(GroupSettings):
    """Hyperparameters of posthumous credit assignment."""

    implementation: ClassVar = "rl_tui.engine.learning.poca.trainer:POCATrainer"

    baseline_clip: BaselineClip = None
