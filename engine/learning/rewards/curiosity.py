"""Curiosity: a reward for what a model of the world did not predict (Pathak et al. 2017), in ML-Agents' form.

Shapes: B steps, H hidden units of the encoder, A continuous dimensions, K branches, C columns of an action: A, then as
many as all branches have choices.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.networks.body import Body
from rl_tui.engine.learning.networks.layers import Layers, linear
from rl_tui.engine.learning.rewards.base import Numbers
from rl_tui.engine.learning.rewards.learned import LearnedSignal
from rl_tui.engine.learning.rewards.settings import CuriositySettings
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import ActionSpec

MODEL_UNITS = 256  # of the hidden layer of either model; this and all that follow are ML-Agents' values
LOSS_SCALE = 10.0
FORWARD_SHARE = 0.2  # of the loss; the inverse model has the rest


class CuriosityNetwork(nn.Module):
    """An encoder of observations, and two models over what it makes of them: which action leads from one to the next
    (inverse), and what an action leads to (forward). The inverse one keeps in the encoding what actions can change."""

    has_learned: Tensor  # bool[]

    def __init__(
        self, random: np.random.Generator, layout: FeatureLayout, actions: ActionSpec, settings: CuriositySettings
    ):
        super().__init__()
        network, columns = settings.network_settings, actions.continuous + actions.mask_size
        self.encoder = Body(random, layout, network)
        units = self.encoder.outputs
        self.inverse = Layers(random, [2 * units, MODEL_UNITS], "swish")
        self.action = linear(random, MODEL_UNITS, columns, "xavier")
        self.forward_model = Layers(random, [units + columns, MODEL_UNITS], "swish")
        self.next_encoding = linear(random, MODEL_UNITS, units, "xavier")
        self.register_buffer("has_learned", torch.zeros((), dtype=torch.bool))

    def encode(self, before: Features, after: Features) -> tuple[Tensor, Tensor]:
        """f32[B, H] each, in one pass."""
        both = tuple(torch.cat(pair) for pair in zip(before, after, strict=True))
        encoded, following = self.encoder(both).chunk(2)
        return encoded, following

    def predict_next(self, encoded: Tensor, actions: Tensor) -> Tensor:
        """f32[B, H]: what follows f32[B, H] after actions f32[B, C]."""
        predicted: Tensor = self.next_encoding(self.forward_model(torch.cat([encoded, actions], 1)))
        return predicted

    def predict_action(self, encoded: Tensor, following: Tensor) -> Tensor:
        """f32[B, C]: the continuous action between them, and the logits of every branch."""
        predicted: Tensor = self.action(self.inverse(torch.cat([encoded, following], 1)))
        return predicted


class CuriosityReward(LearnedSignal[CuriositySettings, CuriosityNetwork]):
    """Pays half the squared error of the forward model, at most what `strength` makes 1, and nothing before it has
    learned."""

    def make_network(self) -> CuriosityNetwork:
        """All three parts."""
        return CuriosityNetwork(self.random, self.layout, self.context.spec.actions, self.settings)

    def rewards(self, transitions: Transitions) -> Tensor:
        """f32[B]."""
        encoded, following = self._encode(transitions)
        predicted = self.network.predict_next(encoded, self.actions(transitions))
        error = 0.5 * (following - predicted).square().sum(1)
        if self.settings.strength > 0:
            error = error.clamp(max=1 / self.settings.strength)
        return error * self.network.has_learned

    def loss(self, transitions: Transitions) -> tuple[Tensor, Numbers]:
        """Of both models. Gradients of both reach the encoder."""
        self.network.has_learned.fill_(True)
        encoded, following = self._encode(transitions)
        predicted = self.network.predict_next(encoded, self.actions(transitions))
        forward = 0.5 * predicted.shape[1] * functional.mse_loss(predicted, following)  # the mean over B of sums over H
        inverse = self._inverse_loss(self.network.predict_action(encoded, following), transitions)
        loss = LOSS_SCALE * (FORWARD_SHARE * forward + (1 - FORWARD_SHARE) * inverse)
        return loss, {"Losses/Curiosity Forward Loss": forward, "Losses/Curiosity Inverse Loss": inverse}

    def _encode(self, transitions: Transitions) -> tuple[Tensor, Tensor]:
        before, after = self.features(transitions.observations), self.features(transitions.next_observations)
        return self.network.encode(before, after)

    def _inverse_loss(self, predicted: Tensor, transitions: Transitions) -> Tensor:
        """f32[]: the squared error of continuous actions, and the cross entropy of every branch, means over B."""
        spec, place = self.context.spec.actions, self._trained.place
        continuous, *logits = torch.split(predicted, [spec.continuous, *spec.branches], 1)
        loss = predicted.new_zeros(())
        if spec.continuous:
            taken = place(transitions.continuous_actions)
            loss = loss + spec.continuous * functional.mse_loss(continuous, taken)
        for own, chosen in zip(logits, place(transitions.discrete_actions).T, strict=True):
            loss = loss + functional.cross_entropy(own, chosen)
        return loss
