"""An actor beside a critic that sees all agents of a group, with their backward pass, in torch on any device.

Shapes: B rows, H head columns, R reward streams, Q sequences, M memory columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.joint_steps import JointInputs
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.networks.flat import FlatParameters, views
from rl_tui.engine.learning.networks.joint_critic import JointCritic
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.on_policy.actor_critic import Array, Outputs
from rl_tui.engine.specs import ActionSpec, Float32


@dataclass(frozen=True, slots=True)
class GroupOutputs(Outputs):
    """With baselines f32[B, R], None for a critic that has none."""

    baselines: Array | None = None


class GroupModule(nn.Module):
    """The actor, and the critic of its groups; each has an encoder and a memory of its own."""

    def __init__(
        self,
        random: np.random.Generator,
        layout: FeatureLayout,
        actions: ActionSpec,
        network: NetworkSettings,
        num_streams: int,
        has_baselines: bool,
    ):
        super().__init__()
        self.actor = Actor(random, layout, actions, network, is_squashed=False)
        action_columns = actions.continuous + actions.mask_size if has_baselines else None
        self.critic = JointCritic(random, layout, network, num_streams, action_columns)

    def forward(self, features: Features, joint: JointInputs, sequences: Sequences | None = None) -> list[Tensor]:
        """The head f32[B, H], values f32[B, R] and, if there are any, baselines f32[B, R].

        sequences: with the actor's memories f32[Q, M], then those of the critic.
        """
        if sequences is None:
            return [self.actor(features), *self.critic(features, joint)]
        own, critics = sequences.memories.tensor_split([self.actor.memory_size], 1)
        return [
            self.actor(features, Sequences(sequences.lengths, own)),
            *self.critic(features, joint, Sequences(sequences.lengths, critics)),
        ]


class GroupActorCritic:
    """Forward and backward passes of a `GroupModule`. `parameters` is flat and changed in place."""

    sees_mates: Literal[True] = True

    def __init__(self, networks: GroupModule, device: torch.device):
        """networks: their parameters are replaced by views of `parameters`."""
        self.networks = networks.to(device)
        self._flat = FlatParameters(networks, device)
        self.shapes = self._flat.shapes
        self.parameters, self.gradient = self._flat.parameters, self._flat.gradient
        self._log_sigma = views(self.parameters, self.shapes).get("actor.log_sigma")
        self._log_sigma_gradient = views(self.gradient, self.shapes).get("actor.log_sigma")
        self._outputs: list[Tensor] = []

    def place(self, array: np.ndarray[Any, Any]) -> Tensor:
        """A tensor on the device."""
        return self._flat.place(array)

    def forward(self, features: Features, joint: JointInputs, sequences: Sequences | None = None) -> GroupOutputs:
        """The outputs, detached, valid until the next call. sequences: see `GroupModule`."""
        self._outputs = self.networks(features, joint, sequences)
        head, values, *baselines = (output.detach() for output in self._outputs)
        return GroupOutputs(head, values, self._log_sigma, baselines[0] if baselines else None)

    def backward(self, gradients: GroupOutputs) -> Tensor:
        """`gradient`, overwritten, given those of the last `forward`'s outputs."""
        self.gradient.zero_()
        given = (gradients.head, gradients.values, gradients.baselines)
        torch.autograd.backward(self._outputs, given[: len(self._outputs)])
        if self._log_sigma_gradient is not None:
            self._log_sigma_gradient.copy_(gradients.log_sigma)
        return self.gradient

    def values(
        self, features: Features, sequences: Sequences | None, joint: JointInputs
    ) -> tuple[Float32, Float32 | None]:
        """f32[B, R], or f32[B, 2 R] with baselines after the values, and the critic's memories; copies on the CPU."""
        memories: Tensor | None = None
        with torch.no_grad():
            if sequences is None:
                values = self.networks.critic(features, joint)
            else:
                values, memories = self.networks.critic.read(features, joint, sequences)
        return torch.cat(values, 1).cpu().numpy(), None if memories is None else memories.cpu().numpy()
