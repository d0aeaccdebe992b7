"""Settings of the reward signals: ML-Agents' keys and defaults in its order."""

from typing import ClassVar

from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.config.types import Positive


class ExtrinsicSettings(RewardSignalSettings):
    """The environment's own reward."""

    implementation: ClassVar = "rl_tui.engine.learning.rewards.extrinsic:ExtrinsicReward"


class LearnedSettings(RewardSignalSettings):
    """Of a signal with a network of its own, which learns by Adam."""

    learns: ClassVar = True
    changeable: ClassVar = ("learning_rate",)

    learning_rate: Positive = 3e-4


class CuriositySettings(LearnedSettings):
    """Reward for what a learned model of the world did not predict."""

    implementation: ClassVar = "rl_tui.engine.learning.rewards.curiosity:CuriosityReward"
    ignores_dones: ClassVar = True  # as in ML-Agents: an end is no loss of what is still unknown
    is_reevaluated: ClassVar = True


class GAILSettings(LearnedSettings):
    """Reward for acting like a demonstration."""

    implementation: ClassVar = "rl_tui.engine.learning.rewards.gail:GAILReward"
    is_reevaluated: ClassVar = True

    use_actions: bool = False
    use_vail: bool = False
    demo_path: str
    ignore_dones: bool = False

    @property
    def masks_terminal(self) -> bool:
        """Unless `ignore_dones`."""
        return not self.ignore_dones

    @property
    def demonstration_path(self) -> str:
        """What to imitate."""
        return self.demo_path


class RNDSettings(LearnedSettings):
    """Reward for unfamiliar observations: those whose random features are badly predicted."""

    implementation: ClassVar = "rl_tui.engine.learning.rewards.rnd:RNDReward"
    ignores_dones: ClassVar = True
    is_reevaluated: ClassVar = True

    learning_rate: Positive = 1e-4
