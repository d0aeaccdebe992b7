"""Generative adversarial imitation: a reward for acting like demonstrations (Ho and Ermon 2016), in ML-Agents' form.

With `use_vail`, the discriminator sees only a noisy code of its inputs (Peng et al. 2019).

Shapes: B steps, C columns of an action, Z of a code, H hidden units.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rl_tui.engine.learning.acting.distributions import bounded
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.learning.encoders.observations import ObservationEncoder
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.networks.body import Core
from rl_tui.engine.learning.networks.layers import linear, make_twice_differentiable
from rl_tui.engine.learning.rewards.base import Numbers
from rl_tui.engine.learning.rewards.learned import LearnedSignal
from rl_tui.engine.learning.rewards.settings import GAILSettings
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import CUT

CODE_SIZE = 128  # Z; this and all that follow are ML-Agents' values
PENALTY = 10.0  # weight of the gradient's penalty, as in Gulrajani et al. 2017
BETA_RATE = 5e-4  # of `beta` for each nat of the code's information above the limit
INFORMATION = 0.5  # nats: the limit
SMALLEST = 1e-7  # keeps logarithms and roots finite


class Inputs(NamedTuple):
    """What a discriminator judges B steps by. columns: of actions and ends, f32[B, C + 1], or with no column."""

    features: Features
    columns: Tensor

    def joined(self, other: Inputs) -> Inputs:
        """All steps, these first."""
        features = tuple(torch.cat(pair) for pair in zip(self.features, other.features, strict=True))
        return Inputs(features, torch.cat([self.columns, other.columns]))


class Discriminator(nn.Module):
    """Judges from an observation, and with `use_actions` from the action and the end, whether a step is demonstrated.

    beta: f32[], what a nat of information in the code costs.
    """

    beta: Tensor

    def __init__(self, random: np.random.Generator, layout: FeatureLayout, columns: int, settings: GAILSettings):
        """columns: beside the observations."""
        super().__init__()
        network = settings.network_settings
        self.encoder = ObservationEncoder(random, layout, network)
        self.core = Core(random, self.encoder.outputs + columns, network, goals=self.encoder.goal_outputs)
        self.code = linear(random, self.core.outputs, CODE_SIZE, gain=0.1) if settings.use_vail else None
        self.sigma = nn.Parameter(torch.ones(CODE_SIZE)) if settings.use_vail else None
        self.judge = linear(random, CODE_SIZE if settings.use_vail else self.core.outputs, 1, "xavier", gain=0.2)
        self.register_buffer("beta", torch.zeros(()))
        make_twice_differentiable(self)

    def encode(self, inputs: Inputs) -> Tensor:
        """f32[B, Z], the mean of the code, or f32[B, H] without one."""
        encoded = self.encoder(inputs.features)
        hidden: Tensor = self.core(torch.cat([encoded, inputs.columns], 1), None, self.encoder.goals(encoded))
        return hidden if self.code is None else self.code(hidden)

    def estimate(self, code: Tensor, noise: Tensor | None = None) -> Tensor:
        """f32[B]: the probability that a step is demonstrated. noise: f32[B, Z] of the code, which has a deviation."""
        if self.sigma is not None and noise is not None:
            code = code + noise * self.sigma
        return torch.sigmoid(self.judge(code))[:, 0]

    def information(self, code: Tensor, other: Tensor) -> Tensor:
        """f32[B]: what two codes f32[B, Z] say of their inputs, in nats: the divergence from a normal distribution."""
        assert self.sigma is not None
        variance = self.sigma.square()
        squares = 0.5 * code.square() + 0.5 * other.square()
        return -(1 + variance.log() - squares - variance).sum(1)


class GAILReward(LearnedSignal[GAILSettings, Discriminator]):
    """Pays -ln(1 - D) for a step that the discriminator takes to be demonstrated with probability D."""

    _demonstrations: Demonstrations

    def make_network(self) -> Discriminator:
        """The discriminator."""
        actions = self.context.spec.actions
        columns = actions.continuous + actions.mask_size + 1 if self.settings.use_actions else 0
        return Discriminator(self.random, self.layout, columns, self.settings)

    def use_demonstrations(self, demonstrations: Demonstrations) -> None:
        """Imitate these."""
        self._demonstrations = demonstrations

    def rewards(self, transitions: Transitions) -> Tensor:
        """f32[B]."""
        estimate = self.network.estimate(self.network.encode(self._inputs(self._as_demonstrated(transitions))))
        return -torch.log(1 - estimate * (1 - SMALLEST))

    def loss(self, transitions: Transitions) -> tuple[Tensor, Numbers]:
        """Of these steps beside as many demonstrated ones, drawn with replacement."""
        network, played = self.network, self._inputs(self._as_demonstrated(transitions))
        shown = self._inputs(self._draw(transitions.num_rows))
        code = network.encode(played.joined(shown))
        ours, theirs = network.estimate(code, self._noise(code)).chunk(2)
        cross_entropy = -((theirs + SMALLEST).log() + (1 - ours + SMALLEST).log()).mean()
        penalty = PENALTY * self._steepness(played, shown)
        numbers = {
            "Policy/GAIL Policy Estimate": ours.mean(),
            "Policy/GAIL Expert Estimate": theirs.mean(),
            "Losses/GAIL Loss": cross_entropy,
            "Policy/GAIL Grad Mag Loss": penalty,
        }
        loss = cross_entropy + penalty
        if self.settings.use_vail:
            information = network.information(*code.chunk(2))
            self._change_beta(information.detach())  # before the loss: it is the one whose gradient ML-Agents takes
            beta = network.beta.clone()
            loss = loss + beta * (information.mean() - INFORMATION)
            numbers |= {"Policy/GAIL Beta": beta, "Losses/GAIL KL Loss": information.mean()}
        return loss, numbers

    def _steepness(self, played: Inputs, shown: Inputs) -> Tensor:
        """f32[]: by how much the length of the gradient for the observations differs from 1, squared, between played
        and demonstrated steps (Gulrajani et al. 2017, equation 3)."""
        between = self._between(played, shown)
        for feature in between.features:
            feature.requires_grad_()
        code = self.network.encode(between)
        estimate = self.network.estimate(code, self._noise(code)).sum()
        gradients = torch.autograd.grad(estimate, between.features, create_graph=True)
        squares = torch.cat([gradient.flatten(1) for gradient in gradients], 1).square().sum(1)
        return ((squares + SMALLEST).sqrt() - 1).square().mean()

    def _between(self, played: Inputs, shown: Inputs) -> Inputs:
        """At random places on the way from one to the other, another one for each number of it."""
        features = tuple(self._mixed(*pair) for pair in zip(played.features, shown.features, strict=True))
        return Inputs(features, self._mixed(played.columns, shown.columns))

    def _mixed(self, first: Tensor, second: Tensor) -> Tensor:
        share = self._trained.place(self.random.random(first.shape, np.float32))
        return share * _as_numbers(first, share.dtype) + (1 - share) * _as_numbers(second, share.dtype)

    def _noise(self, code: Tensor) -> Tensor | None:
        """f32[B, Z], with `use_vail`."""
        if not self.settings.use_vail:
            return None
        return self._trained.place(self.random.standard_normal(code.shape, np.float32))

    def _change_beta(self, information: Tensor) -> None:
        """Let information cost more where there is more than the limit, of all ranks, and less where there is less."""
        beta = self.network.beta
        excess = self.context.sync.mean(information) - INFORMATION
        beta.add_(BETA_RATE * excess).clamp_(min=0)

    def _draw(self, num_rows: int) -> Transitions:
        """Demonstrated steps; the normalizer includes them."""
        rows = self.random.integers(self._demonstrations.num_steps, size=num_rows)
        drawn = self._demonstrations.transitions(rows, with_next=False)
        if self._normalizer is not None:
            self._normalizer.update(self.layout.vectors(drawn.observations))
        return drawn

    def _as_demonstrated(self, transitions: Transitions) -> Transitions:
        """With continuous actions as the environment gets them: a demonstration has no others."""
        if self.context.config.hyperparameters.squashes_actions or not self.context.spec.actions.continuous:
            return transitions
        return replace(transitions, continuous_actions=bounded(transitions.continuous_actions))

    def _inputs(self, transitions: Transitions) -> Inputs:
        features = self.features(transitions.observations)
        if not self.settings.use_actions:
            return Inputs(features, self._trained.place(np.empty((transitions.num_rows, 0), np.float32)))
        ends = transitions.endings != CUT
        columns = self.actions(transitions), self._trained.place(ends[:, None].astype(np.float32))
        return Inputs(features, torch.cat(columns, 1))


def _as_numbers(feature: Tensor, dtype: torch.dtype) -> Tensor:
    """Bytes of an image as numbers from 0 to 1, which encoders read in the same way."""
    return feature if feature.is_floating_point() else feature.to(dtype) / 255
