"""Random network distillation: a reward for observations that are not familiar yet (Burda et al. 2019).

Shapes: B steps, H hidden units.
"""

from __future__ import annotations

from torch import Tensor, nn

from rl_tui.engine.learning.networks.body import Body
from rl_tui.engine.learning.rewards.base import Numbers
from rl_tui.engine.learning.rewards.learned import LearnedSignal
from rl_tui.engine.learning.rewards.settings import RNDSettings
from rl_tui.engine.learning.transitions import Transitions


class RNDReward(LearnedSignal[RNDSettings, nn.ModuleDict]):
    """Pays for an observation as much as a network is wrong about what another, random one makes of it.

    As in ML-Agents, that is the observation before the action, and the reward is not divided by its deviation.
    """

    def make_network(self) -> nn.ModuleDict:
        """The random network, which stays as it is, and the one that predicts it."""
        target, predictor = (Body(self.random, self.layout, self.settings.network_settings) for _ in range(2))
        return nn.ModuleDict({"target": target.requires_grad_(False), "predictor": predictor})

    def rewards(self, transitions: Transitions) -> Tensor:
        """f32[B]: the squared distance of the two, summed over H."""
        features = self.features(transitions.observations)
        distance: Tensor = self.network["predictor"](features) - self.network["target"](features)
        return distance.square().sum(1)

    def loss(self, transitions: Transitions) -> tuple[Tensor, Numbers]:
        """The mean reward: what is seen often is paid less and less."""
        loss = self.rewards(transitions).mean()
        return loss, {"Losses/RND Loss": loss}
