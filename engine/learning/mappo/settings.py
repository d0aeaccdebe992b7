"""Hyperparameters of MAPPO: those of MA-POCA, as in ML-Agents' development version."""

from typing import ClassVar

from rl_tui.engine.learning.on_policy.group_settings import GroupSettings


class MAPPOSettings(GroupSettings):
    """Hyperparameters of PPO with a critic that sees the whole group."""

    implementation: ClassVar = "rl_tui.engine.learning.mappo.trainer:MAPPOTrainer"
